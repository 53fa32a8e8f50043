"""How well trust tells targets that are right from targets that are wrong.

A target is *right* where its largest entry is the label. ``lambda_dis`` (Eq. 7) does not know the
label; ``g`` (Eq. 8) and so ``lambda`` (Eq. 9) do, and are scored on the label that is in them.
"""

import zipfile
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from calmfed.errors import DataError
from calmfed.study.bootstrap import Interval, auroc_interval

BINS = 20
_UNITS = (0.25, 0.1, 0.05, 0.02, 0.01)


@dataclass(frozen=True)
class TrustSamples:
    """What a rule thought of samples, [n] each, as ``trust.npz`` keeps it.

    Attributes:
        trust: lambda of Eq. 9.
        lambda_dis: Of Eq. 7; equal to lambda for a rule without gates.
        g: Of Eq. 8; one for a rule without gates.
        right: Whether the target's largest entry is the label.
        client: Whose sample it is.
    """

    trust: NDArray[np.float64]
    lambda_dis: NDArray[np.float64]
    g: NDArray[np.float64]
    right: NDArray[np.bool_]
    client: NDArray[np.int64]

    @classmethod
    def read(cls, path: Path) -> "TrustSamples":
        """Read a run's ``trust.npz``; nothing in it is unpickled."""
        try:
            with np.load(path, allow_pickle=False) as told:
                found = cls(
                    trust=told["trust"].astype(np.float64),
                    lambda_dis=told["lambda_dis"].astype(np.float64),
                    g=told["g"].astype(np.float64),
                    right=told["right"].astype(np.bool_),
                    client=told["client"].astype(np.int64),
                )
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise DataError(f"{path} is damaged: {error}") from None
        shapes = {getattr(found, f.name).shape for f in fields(found)}
        if len(shapes) != 1 or len(shapes.pop()) != 1:
            raise DataError(f"{path} is damaged: its columns differ in length")
        return found

    @classmethod
    def pooled(cls, parts: Iterable["TrustSamples"]) -> "TrustSamples":
        """The samples of several runs as one; of at least one run.

        A client of one run is nobody of another: they hold other samples.
        """
        listed, first = [], 0
        for part in parts:
            listed.append(replace(part, client=part.client + first))
            first += int(part.client.max(initial=-1)) + 1
        return cls(
            *(np.concatenate([getattr(part, f.name) for part in listed]) for f in fields(cls))
        )


@dataclass(frozen=True)
class Separation:
    """How a score in [0, 1] stands to whether targets are right.

    Attributes:
        auroc: The chance that a right target scores above a wrong one, ties counting half; None
            where all are right or all are wrong.
        median_right: Of the right targets; None where there is none.
        median_wrong: Of the wrong ones; None where there is none.
        constant: Whether all scores are one and the same, so that the AUROC is .5 by definition.
        interval: The AUROC's 95 % interval by the bootstrap over clients; None without one.
    """

    auroc: float | None
    median_right: float | None
    median_wrong: float | None
    constant: bool
    interval: Interval | None = None


@dataclass(frozen=True)
class Reliability:
    """Trust and its two factors, scored on the same samples.

    Attributes:
        n: How many samples.
        right: Of those, how many have a right target.
        trust: lambda.
        lambda_dis: Its label-free factor.
        g: Its factor that knows the label.
    """

    n: int
    right: int
    trust: Separation
    lambda_dis: Separation
    g: Separation


@dataclass(frozen=True)
class Histogram:
    """Shares by score, each group by itself; None for a group without samples.

    Attributes:
        edges: Of the bins, [b + 1].
        right: Shares of the right targets, [b], adding up to one.
        wrong: Shares of the wrong targets, [b], adding up to one.
    """

    edges: NDArray[np.float64]
    right: NDArray[np.float64] | None
    wrong: NDArray[np.float64] | None


def reliability(samples: TrustSamples) -> Reliability:
    """Score trust and its factors on the same question: is the target right?"""
    return Reliability(
        n=len(samples.right),
        right=int(samples.right.sum()),
        trust=separation(samples.trust, samples.right, samples.client),
        lambda_dis=separation(samples.lambda_dis, samples.right, samples.client),
        g=separation(samples.g, samples.right, samples.client),
    )


def separation(
    score: NDArray[np.float64],
    right: NDArray[np.bool_],
    client: NDArray[np.int64] | None = None,
) -> Separation:
    """How a score [n] separates right targets from wrong ones [n]; surely, if clients are known.

    >>> separation(np.array([0.1, 0.4, 0.4, 0.9]), np.array([False, True, False, True]))
    Separation(auroc=0.875, median_right=0.65, median_wrong=0.25, constant=False, interval=None)
    """
    both = bool(right.any()) and not bool(right.all())
    constant = bool(np.all(score == score[:1]))
    return Separation(
        auroc=_auroc(score, right) if both else None,
        median_right=_median(score[right]),
        median_wrong=_median(score[~right]),
        constant=constant,
        interval=None if client is None or constant else auroc_interval(score, right, client),
    )


def histogram(score: NDArray[np.float64], right: NDArray[np.bool_], bins: int = BINS) -> Histogram:
    """Lay scores in [0, 1] out in equal bins, the right and the wrong each as shares of their own.

    Within its group, because one group is often many times the other. The bins span the range in
    which the scores lie, which is often a small part of [0, 1].
    """
    score = np.clip(score, 0, 1)  # float32 may put a one a hair above one
    edges = np.linspace(*_span(score), bins + 1)
    return Histogram(edges, _shares(score[right], edges), _shares(score[~right], edges))


def _span(score: NDArray[np.float64]) -> tuple[float, float]:
    """Round ends around all scores, not much further apart than these are."""
    low, high = float(score.min(initial=1)), float(score.max(initial=0))
    for unit in _UNITS:
        first = min(int(np.floor(low / unit + 1e-6)), round(1 / unit) - 1)
        last = max(int(np.ceil(high / unit - 1e-6)), first + 1)
        if (last - first) * unit <= 2 * (high - low) or unit == _UNITS[-1]:
            break
    return first * unit, last * unit


def _auroc(score: NDArray[np.float64], right: NDArray[np.bool_]) -> float:
    from sklearn.metrics import roc_auc_score  # slow to import, and most callers need no AUROC

    return float(roc_auc_score(right, score))


def _median(score: NDArray[np.float64]) -> float | None:
    return float(np.median(score)) if len(score) else None


def _shares(score: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.float64] | None:
    if not len(score):
        return None
    # what rounding puts a hair outside the outermost edges still falls into a bin
    counts, _ = np.histogram(np.clip(score, edges[0], edges[-1]), edges)
    shares: NDArray[np.float64] = counts / len(score)
    return shares
