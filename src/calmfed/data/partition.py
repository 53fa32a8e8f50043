"""Who holds what: the training samples dealt out to clients, and each client's validation split."""

import hashlib
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from calmfed.errors import UserError, nearest

Indices = NDArray[np.int64]

KINDS = ("dirichlet", "iid", "shards")


def partition(
    labels: NDArray[np.int64],
    clients: int,
    rng: np.random.Generator,
    *,
    kind: str = "dirichlet",
    dirichlet_alpha: float = 0.3,
    classes_per_client: int = 2,
    min_samples: int = 10,
) -> list[Indices]:
    """Deal samples out to clients; each sample goes to exactly one.

    Args:
        labels: Class of each sample, [n].
        clients: How many clients there are.
        rng: Where the draw comes from.
        kind: ``"dirichlet"``: each class is split over the clients in proportions drawn from a
            Dirichlet distribution. ``"iid"``: a random deal into equal parts. ``"shards"``: each
            client holds ``classes_per_client`` classes, each class split evenly over its holders.
        dirichlet_alpha: Concentration; smaller is more skewed.
        classes_per_client: For ``"shards"``.
        min_samples: No client ends with fewer (see `repair`).

    Returns:
        The sorted indices of each client's samples.

    >>> deal = partition(np.arange(100) % 10, 4, np.random.default_rng(0))
    >>> [len(d) for d in deal], sum(len(d) for d in deal)
    ([19, 10, 32, 39], 100)
    """
    if clients < 1:
        raise UserError(f"clients must be at least 1, got {clients}")
    if len(labels) == 0:
        raise UserError("labels holds no sample to deal out")
    check_numbers(clients, min_samples, len(labels))
    deals: dict[str, Callable[[], list[list[Indices]]]] = {
        "dirichlet": lambda: _dirichlet(labels, clients, rng, dirichlet_alpha),
        "iid": lambda: _iid(labels, clients, rng),
        "shards": lambda: _shards(labels, clients, rng, classes_per_client),
    }
    if kind not in deals:
        raise UserError(f"unknown partition {kind!r}: {nearest(kind, deals)}")
    held = deals[kind]()
    repair(held, min_samples)
    return [np.sort(np.concatenate(by_class)) for by_class in held]


def check_numbers(clients: int, min_samples: int, samples: int) -> None:
    """Refuse what cannot be: more clients times their minimum than there are samples."""
    if clients * min_samples > samples:
        raise UserError(
            f"{clients} clients with at least {min_samples} samples each need "
            f"{clients * min_samples} training samples, but there are {samples}"
        )


def repair(held: list[list[Indices]], min_samples: int) -> None:
    """Bring every client up to the minimum by moving samples, in place.

    The rule: while a client is short, look at the classes that it already holds and at the
    clients that can spare samples (those above the minimum). The one that holds most of such a
    class gives: at most what is missing, at most what it can spare, and at most half of what it
    has of that class (at least one). Only where nobody can spare a class that the client holds,
    or it holds none, may it be any class. Ties go to the earlier client and class, so the outcome
    is fixed. The skew stays: a poor client gets more of what it has.

    Args:
        held: Per client and class, the indices it holds.
        min_samples: The minimum; clients times it must not exceed the number of samples.
    """
    counts = np.array([[len(indices) for indices in by_class] for by_class in held])
    totals = counts.sum(axis=1)
    for client in np.flatnonzero(totals < min_samples):
        while totals[client] < min_samples:
            able = totals > min_samples  # never the client itself, which is short
            offers = np.where(able[:, None], counts, 0)
            wanted = np.where(counts[client] > 0, offers, 0)
            if not wanted.any():
                wanted = offers
            giver, label = np.unravel_index(wanted.argmax(), wanted.shape)
            moved = min(
                min_samples - totals[client],
                totals[giver] - min_samples,
                max(1, counts[giver, label] // 2),
            )
            given = held[giver][label]
            held[giver][label] = given[:-moved]
            held[client][label] = np.concatenate([held[client][label], given[-moved:]])
            for who, change in ((giver, -moved), (client, moved)):
                counts[who, label] += change
                totals[who] += change


def validation_split(
    labels: NDArray[np.int64], rng: np.random.Generator, fraction: float
) -> tuple[Indices, Indices]:
    """Split a client's samples into training and validation, stratified by class.

    The validation part holds ``fraction`` of the samples, rounded, at least one, each class by
    its largest remainder. Each class keeps a sample for training unless there are too many classes
    for that, and at least two samples stay for training.

    Args:
        labels: Class of each of the client's samples, [n].
        rng: Where the draw comes from.
        fraction: Of the samples, above zero and below one.

    Returns:
        Positions of the training and of the validation samples, each sorted.
    """
    n = len(labels)
    if n < 3:
        raise UserError(f"a client needs at least 3 samples to set one aside, got {n}")
    if not 0 < fraction < 1:
        raise UserError(f"val_fraction must lie between 0 and 1, got {fraction}")
    size = min(max(1, round(fraction * n)), n - 2)
    counts = np.bincount(labels)
    keep = 1 if np.maximum(counts - 1, 0).sum() >= size else 0
    taken = allocate(counts, size, keep)
    order = rng.permutation(n)
    validation = _first_of_each_class(labels, order, taken)
    return np.setdiff1d(np.arange(n), validation), validation


def stratified(labels: NDArray[np.int64], size: int, rng: np.random.Generator) -> Indices:
    """Draw ``size`` samples so that each class keeps its share; all of them if there are fewer."""
    if size >= len(labels):
        return np.arange(len(labels))
    order = rng.permutation(len(labels))
    return _first_of_each_class(labels, order, allocate(np.bincount(labels), size))


def allocate(counts: NDArray[np.int64], size: int, keep: int = 0) -> NDArray[np.int64]:
    """Split ``size`` over classes in proportion to their counts, by the largest remainder.

    At least ``keep`` samples of each class that has any stay untaken.

    >>> allocate(np.array([6, 3, 1]), 5).tolist()
    [3, 2, 0]
    """
    room = np.maximum(counts - keep, 0)
    ideal = counts * (size / counts.sum())
    taken: Indices = np.minimum(np.floor(ideal).astype(np.int64), room)
    remainder = ideal - taken
    while taken.sum() < size:
        label = np.where(taken < room, remainder, -np.inf).argmax()
        taken[label] += 1
        remainder[label] -= 1
    return taken


def _first_of_each_class(
    labels: NDArray[np.int64], order: Indices, taken: NDArray[np.int64]
) -> Indices:
    return np.sort(
        np.concatenate([order[labels[order] == label][:k] for label, k in enumerate(taken)])
    )


def digest(parts: list[Indices]) -> str:
    """The sha256 of a partition: of every client's sorted indices, in order."""
    hasher = hashlib.sha256()
    for indices in parts:
        hasher.update(len(indices).to_bytes(8, "little"))
        hasher.update(indices.astype("<i8").tobytes())
    return hasher.hexdigest()


def _dirichlet(
    labels: NDArray[np.int64], clients: int, rng: np.random.Generator, alpha: float
) -> list[list[Indices]]:
    if not 0 < alpha < np.inf:
        raise UserError(f"dirichlet_alpha must be above zero and finite, got {alpha}")
    held: list[list[Indices]] = [[] for _ in range(clients)]
    for label in range(_classes(labels)):
        mine = rng.permutation(np.flatnonzero(labels == label))
        shares = rng.dirichlet(np.full(clients, alpha))
        cuts = np.round(np.cumsum(shares)[:-1] * len(mine)).astype(np.int64)
        for client, part in enumerate(np.split(mine, cuts)):
            held[client].append(part)
    return held


def _iid(labels: NDArray[np.int64], clients: int, rng: np.random.Generator) -> list[list[Indices]]:
    parts = np.array_split(rng.permutation(len(labels)), clients)
    return [[part[labels[part] == label] for label in range(_classes(labels))] for part in parts]


def _shards(
    labels: NDArray[np.int64], clients: int, rng: np.random.Generator, per_client: int
) -> list[list[Indices]]:
    classes = _classes(labels)
    if not 1 <= per_client <= classes:
        raise UserError(f"classes_per_client must lie in 1..{classes}, got {per_client}")
    if clients * per_client < classes:
        raise UserError(
            f"{clients} clients with {per_client} classes each cannot hold all {classes} classes"
        )
    # Each client takes the classes that are held least so far, ties at random: so the classes
    # are spread evenly and none is left out.
    holders: list[list[int]] = [[] for _ in range(classes)]
    for client in range(clients):
        counts = np.array([len(h) for h in holders])
        for label in np.lexsort((rng.random(classes), counts))[:per_client]:
            holders[label].append(client)
    held = [[np.empty(0, np.int64) for _ in range(classes)] for _ in range(clients)]
    for label, of_label in enumerate(holders):
        mine = rng.permutation(np.flatnonzero(labels == label))
        for client, part in zip(of_label, np.array_split(mine, len(of_label)), strict=True):
            held[client][label] = part
    return held


def _classes(labels: NDArray[np.int64]) -> int:
    return int(labels.max()) + 1
