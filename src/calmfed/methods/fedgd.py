"""`fedgd`: "FedGD-style": a server's generator invents the samples on which clients agree.

Ours, after the code of two data-free methods (`calmfed.joint.generator`): what the reference
cites under this name is a method for classes that come one after the other.
"""

from dataclasses import dataclass

import torch
from torch import nn

from calmfed import checks
from calmfed.aids import Rehearsal
from calmfed.errors import UserError
from calmfed.joint.generator import Generator, Invention, draw, ensemble, invent
from calmfed.methods.base import Commons, Method, Plan, Round
from calmfed.methods.registry import register_method
from calmfed.snapshot import State, state_of

GENERATOR, STUDENT, INVENTED = "generator", "server student", "invented"


@register_method("fedgd")
@dataclass(frozen=True)
class FedGDStyle(Invention, Method):
    """Snapshots go to a server, invented samples come back; clients train on them beside theirs.

    The other settings are those of `Invention`.

    Attributes:
        samples: Invented samples a round, as many of each class as can be.
        weight: Of the divergence from the ensemble on them, beside the labels.
    """

    summary = "FedGD-style (ours): clients agree on samples that a server's generator invents"

    samples: int = 500
    weight: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.samples < 2:
            raise UserError(f"samples must be at least 2, got {self.samples}")
        checks.at_least_zero("weight", self.weight)

    def before(self, round_: Round, commons: Commons) -> None:
        """The server trains its generator against the active snapshots and sends what it invents.

        Its student is of the smallest active architecture; it only serves to find out where the
        ensemble is not yet understood.
        """
        for name in round_.active:
            commons.moved(commons.state(name))
        stream = round_.stream("generator")
        with stream.torch_generator():
            generator = Generator(commons.shape, round_.classes)
            if GENERATOR in commons.memory:
                generator.load_state_dict(commons.memory[GENERATOR])
            sound = commons.score(round_.active, draw(generator, self.samples))
            teachers = [commons.model(round_.specs[n], commons.state(n)).eval() for n in sound]
            material = None
            if teachers:
                material = self._invented(generator, teachers, round_, commons)
        if material is None:  # nobody had anything to say, or the generator broke: begin anew
            commons.memory.pop(GENERATOR, None)
            material = {
                "x": torch.empty(0, *commons.shape),
                "target": torch.empty(0, round_.classes),
            }
        commons.memory[INVENTED] = material
        commons.moved(material, times=len(round_.active))

    def _invented(
        self, generator: Generator, teachers: list[nn.Module], round_: Round, commons: Commons
    ) -> State | None:
        """What the generator makes after this round's training; None if that is not finite."""
        smallest = min(
            round_.active, key=lambda name: sum(t.numel() for t in commons.state(name).values())
        )
        spec = round_.specs[smallest]
        kept = f"{STUDENT}/{spec.name}"
        student = commons.model(spec, commons.memory.get(kept) or commons.initial(spec))
        studied, passes = invent(generator, student, teachers, self, round_.recipe.lr)
        x = draw(generator, self.samples)
        with torch.no_grad():
            target = ensemble(teachers, x).softmax(dim=1)
        commons.studied(studied)
        commons.passed(passes + len(teachers) * len(x))
        if not torch.isfinite(target).all():
            return None
        commons.memory[GENERATOR] = state_of(generator)
        commons.memory[kept] = state_of(student)
        return {"x": x, "target": target}

    def plan(self, round_: Round) -> Plan:
        """One lesson a client at home, with the invented samples beside its own."""
        aids = (Rehearsal(INVENTED, self.weight),)
        return Plan(tuple(round_.lesson(name, name, aids=aids) for name in round_.active))
