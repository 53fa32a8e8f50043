"""What was run, in plain words, computed from the configurations."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch

from calmfed.models import ModelSpec
from calmfed.study.subject import Run, Subject
from calmfed.study.wording import compact, listed, plural, setting

_TOLD = 8  # methods that the text names


@dataclass(frozen=True)
class Overview:
    """The head of the report.

    Attributes:
        sentences: What was run.
        unfinished: The runs that are not finished and how far each is.
        total: How many runs there are.
    """

    sentences: tuple[str, ...]
    unfinished: tuple[tuple[str, str], ...]
    total: int


def overview(subject: Subject) -> Overview:
    """Tell what was run and what of it is not finished."""
    return Overview(
        sentences=(_who(subject), _partition(subject), _models(subject), _what(subject)),
        unfinished=tuple((r.cell.name, r.status) for r in subject.runs if r.result is None),
        total=len(subject.runs),
    )


def parameters(spec: ModelSpec) -> int:
    """How many numbers a model learns."""
    with torch.random.fork_rng(devices=[]):
        return sum(p.numel() for p in spec.build().parameters())


def spec_of(run: Run, architecture: str) -> ModelSpec | None:
    """A model of a run; None before it began."""
    if run.partition is None:
        return None
    channels, classes = run.partition["shape"][0], len(run.partition["labels"])
    return ModelSpec(architecture, channels, classes, run.cell.config.width)


def _who(subject: Subject) -> str:
    clients, active = _either(subject, "clients"), _either(subject, "active")
    rounds = subject.values("rounds")
    data = listed([f"“{name}”" for name in subject.values("data")], "or")
    amount = _samples(subject)
    return (
        f"{clients} clients, each with its own part of {data}"
        f"{f' ({amount})' if amount else ''}, learn for "
        f"{listed([f'{n:,}' for n in rounds], 'or')} {'round' if rounds == [1] else 'rounds'}; "
        f"in each round {active} of them, drawn at random, take part."
    )


def _partition(subject: Subject) -> str:
    kinds = subject.values("partition")
    told = {
        "dirichlet": "The clients hold the classes in unlike proportions: each class is dealt out "
        f"by a Dirichlet distribution of concentration {_either(subject, 'dirichlet_alpha')} "
        "(the smaller, the more skewed).",
        "shards": f"Each client holds {_either(subject, 'classes_per_client')} of the classes.",
        "iid": "The samples are dealt out evenly, without skew.",
    }
    if len(kinds) == 1:
        return told.get(str(kinds[0]), f"The samples are dealt out by {kinds[0]!r}.")
    return (
        f"The samples are dealt out in more than one way: {_either(subject, 'partition', 'and')}."
    )


def _models(subject: Subject) -> str:
    names = list(dict.fromkeys(name for value in subject.values("models") for name in value))
    told = []
    for name in names:
        specs = {
            spec
            for run in subject.runs
            if name in run.cell.config.models and (spec := spec_of(run, name)) is not None
        }
        counts = sorted({parameters(spec) for spec in specs})
        size = listed([compact(n) for n in counts], "or")
        told.append(f"{name} ({size} parameters)" if size else name)
    if len(told) == 1:
        return f"All have one architecture: {told[0]}."
    return f"They are given {len(told)} architectures in turn: {listed(told)}."


def _what(subject: Subject) -> str:
    methods = subject.values("method")
    seeds = sorted(subject.values("seed"))
    names = listed([f"“{method}”" for method in methods])
    told = f": {names}" if len(methods) <= _TOLD else " (see the table)"
    times = f"with {plural(len(seeds), 'seed')} ({', '.join(map(str, seeds))})"
    if not subject.is_study:
        return f"This is a single run of the method {names}, seed {seeds[0]}: it shows no spread."
    others = [key for key in subject.keys if key != "method"]
    varied = listed([f"{key} ({_either(subject, key, 'and')})" for key in others])
    if len(methods) == 1:
        what = f"The method {names} was run {times}"
    else:
        what = f"{len(methods)} methods were run {times}{told}; those of one seed and otherwise "
        what += "equal settings share partition, schedule and initial models"
    return what + (f"; what varies besides is {varied}." if varied else ".")


def _samples(subject: Subject) -> str:
    """Of the first run of each data set that has begun."""
    first: dict[str, str] = {}
    for run in subject.runs:
        if run.partition is not None and run.cell.config.data not in first:
            held = sum(
                sum(client["samples_by_class"]) for client in run.partition["clients"].values()
            )
            labels = len(run.partition["labels"])
            first[run.cell.config.data] = f"{held:,} samples of {labels} classes"
    return listed(first.values())


def _either(subject: Subject, key: str, joint: str = "or") -> str:
    values: Iterable[object] = subject.values(key)
    return listed([setting(value) for value in values], joint)
