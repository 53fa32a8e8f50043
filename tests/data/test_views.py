"""What a lesson shows: order, crops, flips, batches; and how samples are made ready."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from calmfed.data.dataset import Images
from calmfed.data.views import AUGMENTATIONS, Normalisation, Samples, View, lay_out
from calmfed.errors import UserError


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def images(n: int, channels: int, height: int, width: int) -> Tensor:
    """Samples in which every value is another one, none of them zero."""
    return 1 + torch.arange(n * channels * height * width).reshape(
        n, channels, height, width
    ).float().contiguous(memory_format=torch.channels_last)


WHOLE = slice(0, None)

# The order of a stream.


@given(n=st.integers(1, 50), epochs=st.integers(1, 5), augment=st.sampled_from(AUGMENTATIONS))
def test_every_pass_shows_every_sample_once(n: int, epochs: int, augment: str) -> None:
    view = lay_out(n, epochs, augment, (8, 8), rng())
    assert len(view) == n * epochs
    for start in range(0, len(view), n):
        assert sorted(view.order[start : start + n]) == list(range(n))


def test_passes_are_shuffled_anew_and_a_stream_draws_the_same_again() -> None:
    view = lay_out(40, 2, "crop_flip", (8, 8), rng())
    assert view.order[:40].tolist() != view.order[40:].tolist()
    again = lay_out(40, 2, "crop_flip", (8, 8), rng())
    for name in ("order", "shifts", "flips"):
        assert np.array_equal(getattr(view, name), getattr(again, name))


def test_only_an_augmented_view_shows_a_sample_differently_each_time() -> None:
    augmented = {name: lay_out(4, 1, name, (8, 8), rng()).augmented for name in AUGMENTATIONS}
    assert augmented == {"none": False, "crop": True, "crop_flip": True}


def test_an_unknown_augmentation_is_told_with_the_nearest_right_one() -> None:
    with pytest.raises(UserError, match="unknown augmentation 'crops': did you mean 'crop'"):
        lay_out(4, 1, "crops", (8, 8), rng())


# Batches.


@given(n=st.integers(1, 40), epochs=st.integers(1, 4), size=st.integers(1, 50))
def test_batches_cover_the_stream_in_order_and_none_crosses_the_end_of_a_pass(
    n: int, epochs: int, size: int
) -> None:
    spans = lay_out(n, epochs, "none", (8, 8), rng()).batches(size)
    places = [place for span in spans for place in range(span.start, span.stop)]
    assert places == list(range(n * epochs))
    for span in spans:
        assert span.start // n == (span.stop - 1) // n
        length = span.stop - span.start
        assert length <= size + 1
        if n > 1 and size > 1:
            assert length >= 2  # batch norm cannot train on one sample


@pytest.mark.parametrize(
    ("n", "size", "lengths"),
    [
        (8, 4, [4, 4]),
        (9, 4, [4, 5]),  # a trailing batch of one joins the one before
        (10, 4, [4, 4, 2]),
        (3, 4, [3]),
        (1, 4, [1]),
        (5, 5, [5]),
        (5, 2, [2, 3]),
    ],
)
def test_batches_by_hand(n: int, size: int, lengths: list[int]) -> None:
    spans = lay_out(n, 2, "none", (8, 8), rng()).batches(size)
    assert [span.stop - span.start for span in spans] == lengths * 2


# Showing.


def slowly_shown(x: Tensor, view: View, place: int) -> Tensor:
    """One shown sample, pixel by pixel: moved down and right, zeros from outside, then mirrored."""
    sample = x[int(view.order[place])]
    _, height, width = sample.shape
    down, right = (0, 0) if view.shifts is None else view.shifts[place].tolist()
    out = torch.zeros_like(sample)
    for row in range(height):
        for column in range(width):
            if 0 <= row - down < height and 0 <= column - right < width:
                out[:, row, column] = sample[:, row - down, column - right]
    if view.flips is not None and view.flips[place]:
        mirrored = torch.zeros_like(out)
        for column in range(width):
            mirrored[:, :, column] = out[:, :, width - 1 - column]
        return mirrored
    return out


@given(
    n=st.integers(1, 4),
    channels=st.integers(1, 3),
    height=st.integers(1, 17),
    width=st.integers(1, 17),
    augment=st.sampled_from(AUGMENTATIONS),
    seed=st.integers(0, 99),
)
def test_showing_agrees_with_a_loop_over_pixels(
    n: int, channels: int, height: int, width: int, augment: str, seed: int
) -> None:
    x = images(n, channels, height, width)
    view = lay_out(n, 2, augment, (height, width), rng(seed))
    shown = view.show(x, WHOLE)
    expected = torch.stack([slowly_shown(x, view, place) for place in range(len(view))])
    assert torch.equal(shown, expected)


@given(start=st.integers(0, 19), stop=st.integers(1, 20), augment=st.sampled_from(AUGMENTATIONS))
def test_a_span_is_shown_as_it_would_be_in_the_whole(start: int, stop: int, augment: str) -> None:
    x = images(10, 2, 9, 8)
    view = lay_out(10, 2, augment, (9, 8), rng())
    assert torch.equal(view.show(x, slice(start, stop)), view.show(x, WHOLE)[start:stop])


def test_a_shift_by_hand() -> None:
    x = torch.tensor([[[[1.0, 2, 3], [4, 5, 6], [7, 8, 9]]]])
    view = View(np.array([0, 0]), np.array([[1, 0], [0, -1]]), None, 1)
    down, left = view.show(x, WHOLE)[:, 0]
    assert down.tolist() == [[0, 0, 0], [1, 2, 3], [4, 5, 6]]
    assert left.tolist() == [[2, 3, 0], [5, 6, 0], [8, 9, 0]]


def test_a_flip_by_hand_mirrors_left_and_right() -> None:
    x = torch.tensor([[[[1.0, 2, 3], [4, 5, 6]]]])
    view = View(np.array([0, 0]), None, np.array([True, False]), 1)
    flipped, plain = view.show(x, WHOLE)[:, 0]
    assert flipped.tolist() == [[3, 2, 1], [6, 5, 4]]
    assert plain.tolist() == [[1, 2, 3], [4, 5, 6]]


def test_shifts_reach_an_eighth_of_each_side_in_both_directions() -> None:
    view = lay_out(2000, 1, "crop", (32, 101), rng())
    assert view.shifts is not None
    assert view.flips is None
    assert np.unique(view.shifts[:, 0]).tolist() == list(range(-4, 5))
    assert np.unique(view.shifts[:, 1]).tolist() == list(range(-12, 13))
    small = lay_out(200, 1, "crop", (5, 5), rng()).shifts
    assert small is not None
    assert np.unique(small).tolist() == [-1, 0, 1]


def test_flips_come_every_other_time() -> None:
    view = lay_out(2000, 1, "crop_flip", (8, 8), rng())
    assert view.shifts is not None
    assert view.flips is not None
    assert 0.45 < view.flips.mean() < 0.55


def test_what_is_shown_is_laid_out_channels_last_and_leaves_the_samples_alone() -> None:
    x = images(3, 2, 8, 8)
    before = x.clone()
    for augment in AUGMENTATIONS:
        shown = lay_out(3, 1, augment, (8, 8), rng()).show(x, WHOLE)
        assert shown.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(x, before)


# Normalisation.


def test_normalisation_by_hand() -> None:
    pixels = np.array([[0, 10], [5, 5], [2, 8], [9, 1]], np.uint8).reshape(4, 2, 1, 1)
    normalisation = Normalisation.of(pixels)
    # First channel 0, 5, 2, 9: mean 4, squares 16, 1, 4, 25 with the mean 11.5; the second
    # 10, 5, 8, 1: mean 6, squares 16, 1, 4, 25.
    assert list(normalisation.mean) == [4, 6]
    assert normalisation.deviation == pytest.approx((math.sqrt(11.5), math.sqrt(11.5)))
    found = normalisation(pixels[:1]).flatten().tolist()
    assert found == pytest.approx([-4 / math.sqrt(11.5), 4 / math.sqrt(11.5)])


BYTES = rng().integers(0, 256, (50, 3, 9, 7)).astype(np.uint8)


@pytest.mark.parametrize("pixels", [BYTES, BYTES.astype(np.float32)], ids=["uint8", "float32"])
def test_normalised_samples_have_mean_zero_and_deviation_one(pixels: Images) -> None:
    x = Normalisation.of(pixels)(pixels)
    assert x.dtype == torch.float32
    assert x.shape == (50, 3, 9, 7)
    assert x.is_contiguous(memory_format=torch.channels_last)
    values = x.double()
    torch.testing.assert_close(
        values.mean(dim=(0, 2, 3)), torch.zeros(3).double(), atol=1e-6, rtol=0
    )
    torch.testing.assert_close(
        values.std(dim=(0, 2, 3), unbiased=False), torch.ones(3).double(), atol=1e-6, rtol=0
    )


def test_normalising_a_part_is_a_part_of_normalising_the_whole() -> None:
    pixels = rng().integers(0, 256, (20, 2, 5, 5)).astype(np.uint8)
    normalisation = Normalisation.of(pixels)
    assert torch.equal(normalisation(pixels[3:9]), normalisation(pixels)[3:9])


def test_a_channel_that_never_changes_is_only_shifted() -> None:
    pixels = np.full((3, 1, 2, 2), 7, np.uint8)
    normalisation = Normalisation.of(pixels)
    assert list(normalisation.deviation) == [1]
    assert (normalisation(pixels) == 0).all()
    assert (normalisation(pixels + 2) == 2).all()


# Label frequencies.


def samples_of(labels: list[int], classes: int) -> Samples:
    return Samples(torch.zeros(len(labels), 1, 1, 1), torch.tensor(labels), classes)


def test_log_frequencies_by_hand() -> None:
    # Of 4 samples, 3 and 1 and none: (3.5, 1.5, .5) / 5.5
    found = samples_of([0, 0, 1, 0], 3).log_frequencies()
    torch.testing.assert_close(found.exp(), torch.tensor([3.5, 1.5, 0.5]) / 5.5)
    assert found.dtype == torch.float32


@given(st.lists(st.integers(0, 5), min_size=1, max_size=50))
def test_frequencies_add_up_to_one_and_are_finite_for_absent_classes(labels: list[int]) -> None:
    found = samples_of(labels, 9).log_frequencies()
    assert found.shape == (9,)
    assert torch.isfinite(found).all()
    assert found.double().exp().sum().item() == pytest.approx(1, abs=1e-6)


def test_the_length_of_samples_is_their_number() -> None:
    assert len(samples_of([0, 1, 1], 2)) == 3
