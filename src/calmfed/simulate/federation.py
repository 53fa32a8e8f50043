"""A federation as its configuration describes it: who is there, and who holds what."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from calmfed.client import Client
from calmfed.config import Config
from calmfed.data.dataset import Dataset, Images, Labels
from calmfed.data.partition import (
    Indices,
    check_numbers,
    digest,
    partition,
    stratified,
    validation_split,
)
from calmfed.data.views import Normalisation, Samples
from calmfed.errors import UserError
from calmfed.models import ModelSpec
from calmfed.streams import Stream

SMALLEST_SIDE = 8


@dataclass(frozen=True)
class Arrays:
    """The samples that all clients together hold, and the test set; raw, as they were published.

    The public samples are there if the configuration wants them.
    """

    train_x: Images
    train_y: Labels
    test_x: Images
    test_y: Labels
    public_x: Images | None = None

    def save(self, folder: Path) -> None:
        """Write them where other processes can map them."""
        for name, array in self._held().items():
            np.save(folder / f"{name}.npy", array)

    @classmethod
    def mapped(cls, folder: Path) -> "Arrays":
        """Map them into memory: however many processes do, they are there once."""
        return cls(**{p.stem: np.load(p, mmap_mode="r") for p in folder.glob("*.npy")})

    def digest(self) -> str:
        """The sha256 of all of them."""
        hasher = hashlib.sha256()
        for name, held in self._held().items():
            array = np.ascontiguousarray(held)
            hasher.update(f"{name} {array.dtype} {array.shape}".encode())
            hasher.update(array.data)
        return hasher.hexdigest()

    def _held(self) -> dict[str, NDArray[Any]]:
        held = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {name: array for name, array in held.items() if array is not None}


@dataclass(frozen=True)
class Membership:
    """Who takes part and who holds what: everything but the samples themselves.

    Attributes:
        names: The clients, sorted.
        specs: Their architectures.
        training: Indices of each one's training samples.
        validation: Indices of each one's validation samples.
        labels: The classes by name.
        normalisation: The constants that all share.
        evaluation: Indices of the part of the test set for measurements on the way.
    """

    names: tuple[str, ...]
    specs: dict[str, ModelSpec]
    training: dict[str, Indices]
    validation: dict[str, Indices]
    labels: tuple[str, ...]
    normalisation: Normalisation
    evaluation: Indices


@dataclass(frozen=True)
class Federation:
    """Members and samples together."""

    config: Config
    members: Membership
    arrays: Arrays

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width of a sample."""
        channels, height, width = self.arrays.train_x.shape[1:]
        return channels, height, width

    def samples(self, name: str) -> Samples:
        """A client's training samples, ready for a model."""
        return self._prepared(self.members.training[name])

    @cached_property
    def clients(self) -> dict[str, Client]:
        """All clients by name."""
        return {
            name: Client(
                name=name,
                spec=self.members.specs[name],
                validation=self._prepared(self.members.validation[name]),
                log_frequencies=Samples(
                    torch.empty(0),
                    torch.from_numpy(self.arrays.train_y[self.members.training[name]]),
                    len(self.members.labels),
                ).log_frequencies(),
                tolerance=self.config.adopt_tolerance,
            )
            for name in self.members.names
        }

    @cached_property
    def public(self) -> torch.Tensor:
        """The public samples, ready for a model."""
        if self.arrays.public_x is None:
            raise ValueError("this federation was made without public samples")
        return self.members.normalisation(self.arrays.public_x)

    def active(self, round_: int) -> tuple[str, ...]:
        """Who is active in a round: drawn uniformly, sorted by name."""
        rng = Stream(self.config.seed, "schedule", round_).generator()
        drawn = rng.choice(self.config.clients, self.config.active, replace=False)
        return tuple(self.members.names[i] for i in sorted(drawn))

    def initial_model(self, name: str) -> torch.nn.Module:
        """A client's model before the first round."""
        with Stream(self.config.seed, "initialise", client=name).torch_generator():
            return self.members.specs[name].build()

    def partition_digest(self) -> str:
        """The sha256 of who trains and who validates on what."""
        parts = [*self.members.training.values(), *self.members.validation.values()]
        return digest(parts)

    def _prepared(self, indices: Indices) -> Samples:
        return Samples(
            self.members.normalisation(self.arrays.train_x[indices]),
            torch.from_numpy(self.arrays.train_y[indices]),
            len(self.members.labels),
        )


def assemble(config: Config, dataset: Dataset) -> Federation:
    """Deal a data set out to the clients of a configuration."""
    if (dataset.train_y == dataset.train_y[0]).all():
        raise UserError(
            f"{dataset.name}: all training labels are {dataset.train_y[0]}, "
            "but at least two classes are needed"
        )
    arrays = _reduced(config, dataset)
    check_numbers(config.clients, config.min_samples, len(arrays.train_y))
    names = tuple(client_name(i, config.clients) for i in range(config.clients))
    channels, classes = arrays.train_x.shape[1], dataset.classes
    parts = partition(
        arrays.train_y,
        config.clients,
        Stream(config.seed, "partition").generator(),
        kind=config.partition,
        dirichlet_alpha=config.dirichlet_alpha,
        classes_per_client=config.classes_per_client,
        min_samples=config.min_samples,
    )
    training, validation = {}, {}
    for name, mine in zip(names, parts, strict=True):
        rng = Stream(config.seed, "validation split", client=name).generator()
        train, val = validation_split(arrays.train_y[mine], rng, config.val_fraction)
        training[name], validation[name] = mine[train], mine[val]
    members = Membership(
        names=names,
        specs={name: config.spec(i, channels, classes) for i, name in enumerate(names)},
        training=training,
        validation=validation,
        labels=dataset.labels,
        normalisation=Normalisation.of(arrays.train_x),
        # fixed: the same samples whatever the seed, so that runs can be compared
        evaluation=stratified(
            arrays.test_y, config.eval_samples, Stream(0, "evaluation part").generator()
        ),
    )
    return Federation(config, members, arrays)


def client_name(index: int, clients: int) -> str:
    """The name of a client: numbered so that names sort as numbers do.

    >>> client_name(3, 20)
    'c03'
    """
    return f"c{index:0{len(str(clients - 1))}}"


def shrunk(images: Images, factor: int) -> Images:
    """Images [n, C, H, W] with each side divided by a factor, by the means of squares.

    Rows and columns that do not fill a square are left out.
    """
    if factor == 1:
        return images
    n, channels, height, width = images.shape
    rows, columns = height // factor, width // factor
    cut = images[:, :, : rows * factor, : columns * factor]
    squares = cut.reshape(n, channels, rows, factor, columns, factor)
    means: NDArray[np.float32] = squares.mean(axis=(3, 5), dtype=np.float32)
    return means


def _reduced(config: Config, dataset: Dataset) -> Arrays:
    """The samples that the configuration uses, as small as it wants them."""
    _, height, width = dataset.shape
    sides = (height // config.shrink, width // config.shrink)
    if min(sides) < SMALLEST_SIDE:
        raise UserError(
            f"{dataset.name}: samples of {height}x{width} with shrink={config.shrink} are "
            f"{sides[0]}x{sides[1]}, but models need at least {SMALLEST_SIDE}x{SMALLEST_SIDE}"
        )
    chosen: Indices | slice = slice(None)
    if config.train_samples is not None:
        rng = Stream(config.seed, "training samples").generator()
        chosen = stratified(dataset.train_y, config.train_samples, rng)
    public_x = None
    if config.method_setup().method.reads_public and not config.wants_public():
        # not refused as a setting: the other cells of a study's grid can be run
        raise UserError(f"method {config.method!r} reads public samples, but public is false")
    if config.wants_public():
        check_public(dataset)
        assert dataset.public_x is not None  # noqa: S101 - for the type checker: just checked
        public_x = shrunk(dataset.public_x, config.shrink)
    return Arrays(
        shrunk(dataset.train_x[chosen], config.shrink),
        dataset.train_y[chosen],
        shrunk(dataset.test_x, config.shrink),
        dataset.test_y,
        public_x,
    )


def check_public(dataset: Dataset) -> None:
    """Refuse a data set without public samples, or with some that are clients' or test samples."""
    if dataset.public_x is None or not len(dataset.public_x):
        raise UserError(f"{dataset.name} has no public samples, which this needs")
    known = {_fingerprint(x): i for i, x in enumerate(dataset.public_x)}
    for part in ("train", "test"):
        for i, x in enumerate(dataset.part(part)[0]):
            if (place := known.get(_fingerprint(x))) is not None:
                raise UserError(
                    f"{dataset.name}: public sample {place} is also sample {i} of the {part} set: "
                    "public samples must be others than those"
                )


def _fingerprint(sample: NDArray[Any]) -> bytes:
    return hashlib.sha256(np.ascontiguousarray(sample).data).digest()
