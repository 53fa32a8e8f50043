"""Models as bytes and back, compared and averaged."""

import json
import math
from contextlib import suppress

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from calmfed.errors import DataError
from calmfed.snapshot import State, average, decode, encode, is_finite, misfit, same, state_of

STATE: State = {
    "weight": torch.tensor([[1.0, -2.0], [0.5, 3.0]]),
    "half": torch.tensor([1.5], dtype=torch.float16),
    "seen": torch.tensor(3),
    "flag": torch.tensor([True, False]),
    "none": torch.empty(0, 2),
}
BYTES = encode(STATE)


def test_a_round_trip_loses_nothing() -> None:
    assert same(decode(BYTES, "here"), STATE)


def test_nan_and_infinity_survive_the_round_trip() -> None:
    state = {"w": torch.tensor([math.nan, math.inf, -math.inf, -0.0])}
    found = decode(encode(state), "here")["w"]
    assert torch.equal(found.view(torch.int32), state["w"].view(torch.int32))


def test_the_same_state_has_the_same_bytes_however_it_is_laid_out() -> None:
    backwards = dict(reversed(STATE.items()))
    assert encode(backwards) == BYTES
    image = torch.arange(24.0).reshape(1, 2, 3, 4)
    last = image.contiguous(memory_format=torch.channels_last)
    assert encode({"w": last}) == encode({"w": image})
    assert torch.equal(decode(encode({"w": last}), "here")["w"], image)


def test_another_state_has_other_bytes() -> None:
    assert encode({**STATE, "seen": torch.tensor(4)}) != BYTES


def header(dtype: str, nbytes: int) -> bytes:
    text = json.dumps({"w": {"dtype": dtype, "shape": [8], "data_offsets": [0, nbytes]}}).encode()
    return len(text).to_bytes(8, "little") + text + bytes(nbytes)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not a snapshot",
        b"\xff" * 64,
        BYTES[:-1],
        BYTES[:20],
        BYTES + b"\0",
        header("F8_E8M0", 8),  # a type that the format has and torch has not
        header("F6_E2M3", 6),
        header("nonsense", 8),
        header("F64", 8),
    ],
)
def test_damaged_bytes_are_a_data_error_that_names_their_origin(data: bytes) -> None:
    with pytest.raises(DataError, match="round 3 of c04 is not a readable safetensors snapshot"):
        decode(data, "round 3 of c04")


@given(st.integers(0, len(BYTES) - 1), st.integers(0, 255))
def test_a_changed_byte_is_read_or_refused_but_never_anything_else(place: int, value: int) -> None:
    data = bytearray(BYTES)
    data[place] = value
    with suppress(DataError):
        decode(bytes(data), "here")


def test_state_of_is_a_copy_of_everything_a_model_has_learned() -> None:
    model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3))
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    state = state_of(model)
    assert state.keys() == model.state_dict().keys()
    assert "1.num_batches_tracked" in state
    before = state["0.weight"].clone()
    with torch.no_grad():
        next(model.parameters()).add_(1)
    assert torch.equal(state["0.weight"], before)
    assert not state["0.weight"].requires_grad
    assert all(tensor.is_contiguous() for tensor in state.values())


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (STATE, None),
        ({**STATE, "weight": torch.ones(2, 2)}, None),
        ({n: t for n, t in STATE.items() if n != "seen"}, "lacks seen"),
        ({"seen": STATE["seen"], "flag": STATE["flag"]}, "lacks half and 2 more"),
        ({**STATE, "x": torch.ones(1)}, "has x, which the architecture does not"),
        (
            {**STATE, "weight": torch.ones(2, 3)},
            "weight is torch.float32 [2, 3], not torch.float32 [2, 2]",
        ),
        (
            {**STATE, "weight": torch.ones(2, 2, dtype=torch.float64)},
            "weight is torch.float64 [2, 2], not torch.float32 [2, 2]",
        ),
        ({**STATE, "seen": torch.tensor([3])}, "seen is torch.int64 [1], not torch.int64 []"),
    ],
)
def test_misfit_says_why_a_state_is_not_of_an_architecture(
    state: State, reason: str | None
) -> None:
    assert misfit(state, STATE) == reason


def test_finite_means_no_nan_and_no_infinity_in_any_tensor() -> None:
    assert is_finite(STATE)
    assert is_finite({})
    for bad in (math.nan, math.inf, -math.inf):
        assert not is_finite({**STATE, "half": torch.tensor([bad], dtype=torch.float16)})


def test_average_by_hand() -> None:
    mean = average(
        [
            {"w": torch.tensor([1.0, -4.0]), "seen": torch.tensor(10)},
            {"w": torch.tensor([2.0, 0.0]), "seen": torch.tensor(20)},
            {"w": torch.tensor([6.0, 1.0]), "seen": torch.tensor(23)},
        ]
    )
    assert same(mean, {"w": torch.tensor([3.0, -1.0]), "seen": torch.tensor(18)})


def test_average_keeps_types_and_the_states_it_is_given() -> None:
    states = [STATE, {**STATE, "half": torch.tensor([2.5], dtype=torch.float16)}]
    mean = average(states)
    assert same(mean, {**STATE, "half": torch.tensor([2.0], dtype=torch.float16)})
    assert torch.equal(STATE["half"], torch.tensor([1.5], dtype=torch.float16))


def test_the_average_of_a_state_with_itself_is_the_state() -> None:
    generator = torch.Generator().manual_seed(0)
    state = {"w": torch.randn(1000, generator=generator), "seen": torch.tensor(2**40 + 1)}
    for times in (1, 2, 3, 7):
        assert same(average([state] * times), state)


def test_large_counters_are_averaged_exactly() -> None:
    # float32 could not tell these two apart
    states = [{"seen": torch.tensor(2**30 + 1)}, {"seen": torch.tensor(2**30 + 3)}]
    assert average(states)["seen"].item() == 2**30 + 2


def test_statistics_of_batch_norms_are_averaged_as_well() -> None:
    norms = [nn.BatchNorm2d(2), nn.BatchNorm2d(2)]
    for value, norm in zip((1.0, 4.0), norms, strict=True):
        for tensor in norm.state_dict().values():
            tensor.fill_(value)
    mean = average([state_of(norm) for norm in norms])
    assert {name: tensor.flatten().tolist() for name, tensor in mean.items()} == {
        "weight": [2.5, 2.5],
        "bias": [2.5, 2.5],
        "running_mean": [2.5, 2.5],
        "running_var": [2.5, 2.5],
        "num_batches_tracked": [2],  # 2.5, to the even one
    }
