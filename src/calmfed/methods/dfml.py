"""`dfml`: the active models meet at one client and learn there from its labels and each other.

Khalil et al., "DFML: decentralized federated mutual learning", TMLR 2024; abstract and reviews
were read, the details are from memory. One aggregator a round sees one client's samples, where
the methods at home see those of all active clients: compare the samples studied.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from calmfed import checks
from calmfed.data.views import lay_out
from calmfed.joint.mutual import study_together
from calmfed.methods.base import Commons, Method, Plan, Round
from calmfed.methods.registry import register_method
from calmfed.models import ModelSpec
from calmfed.snapshot import state_of

FIRST_CYCLE = 10
GROWTH = 1.5


@dataclass(frozen=True)
class Phase:
    """Where a round stands in the cycles of the mutual share.

    Attributes:
        cycle: 0 for the first.
        share: a, from 0 at the first round of a cycle to its maximum at the last.
    """

    cycle: int
    share: float


@register_method("dfml")
@dataclass(frozen=True)
class DFML(Method):
    """Mutual learning at an aggregator that is drawn each round; the share of the others cycles.

    Attributes:
        share_max: The largest share of the others in the loss.
    """

    summary = "the active models train together on one drawn client's samples (details from memory)"
    recipe = {"ce": "prior"}  # noqa: RUF012 - a ClassVar by its base

    share_max: float = 0.5

    def __post_init__(self) -> None:
        checks.fraction("share_max", self.share_max)

    def plan(self, round_: Round) -> Plan:
        """No lesson: the active models train in one place, together."""
        return Plan(())

    def aggregator(self, round_: Round) -> str:
        """The client on whose samples all train."""
        return round_.active[
            int(round_.stream("aggregator").generator().integers(len(round_.active)))
        ]

    def after(self, round_: Round, commons: Commons) -> None:
        """The models travel to the aggregator, train together and go home."""
        host, now = self.aggregator(round_), phase(round_.number, self.share_max)
        samples, stream = commons.samples(host), round_.stream("mutual", host)
        students = [commons.model(round_.specs[n], commons.state(n)) for n in round_.active]
        height, width = samples.x.shape[2:]
        view = lay_out(
            len(samples),
            round_.recipe.epochs,
            round_.recipe.augment,
            (height, width),
            stream.generator(),
        )
        sizes = [sum(p.numel() for p in student.parameters()) for student in students]
        with stream.torch_generator():
            study_together(students, sizes, samples, view, round_.recipe, now.share)
        commons.studied(len(students) * len(view))
        for name, student in zip(round_.active, students, strict=True):
            outcome = state_of(student)
            if name != host:
                commons.moved(commons.state(name))
            commons.bring_home(name, outcome, at_home=name == host)
            self._keep_peak(name, now, commons)

    def also(self, clients: Mapping[str, ModelSpec]) -> Mapping[str, Mapping[str, str]]:
        """The peak models: what each client had after its round of the highest share."""
        return {"peak": {name: f"peak/{name}" for name in clients}}

    def _keep_peak(self, name: str, now: Phase, commons: Commons) -> None:
        mark, peak = f"peak of/{name}", f"peak/{name}"
        before = None
        if mark in commons.memory:
            cycle, share = commons.memory[mark]["phase"].tolist()
            before = Phase(int(cycle), share)
        if self.replaces(now, before):
            commons.memory[peak] = commons.state(name)
            commons.memory[mark] = {"phase": torch.tensor([now.cycle, now.share]).double()}

    def replaces(self, now: Phase, before: Phase | None) -> bool:
        """Whether a model of this round becomes the peak: its cycle's highest share so far.

        A peak of an earlier cycle stands until the share has passed half of its maximum again.
        """
        if before is None or (now.cycle == before.cycle and now.share >= before.share):
            return True
        return now.cycle > before.cycle and now.share >= self.share_max / 2


def phase(number: int, share_max: float) -> Phase:
    """The share of the others in round ``number``: half a cosine from 0 to its maximum.

    The first cycle has ten rounds, each one half as many again as the one before.

    >>> [round(phase(number, 0.5).share, 2) for number in (1, 2, 10, 11, 25)]
    [0.0, 0.02, 0.5, 0.0, 0.5]
    """
    cycle, place, length = 0, number - 1, FIRST_CYCLE
    while place >= length:
        place -= length
        cycle += 1
        length = round(FIRST_CYCLE * GROWTH**cycle)
    return Phase(cycle, share_max * (1 - math.cos(math.pi * place / (length - 1))) / 2)
