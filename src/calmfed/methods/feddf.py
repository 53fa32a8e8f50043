"""`feddf`: one average per architecture, each distilled from all on public samples.

Lin et al., "Ensemble distillation for robust model fusion in federated learning", NeurIPS 2020;
the steps are fixed, because stopping early would need labels that nobody has.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from calmfed import checks
from calmfed.errors import UserError
from calmfed.joint.distil import distil
from calmfed.methods.base import Commons, Method, Plan, Round
from calmfed.methods.registry import register_method
from calmfed.models import ModelSpec
from calmfed.snapshot import average, state_of
from calmfed.streams import Stream


@register_method("feddf")
@dataclass(frozen=True)
class FedDF(Method):
    """The server keeps one model of each architecture; all of them learn from all clients.

    Attributes:
        steps: Batches that each of the server's models studies a round.
        server_batch: Public samples a step.
        server_lr: Learning rate of Adam there.
    """

    summary = "a server averages each architecture and distils it from all on public samples"
    reads_public = True

    steps: int = 200
    server_batch: int = 128
    server_lr: float = 1e-3

    def __post_init__(self) -> None:
        for name, least in (("steps", 1), ("server_batch", 2)):
            if getattr(self, name) < least:
                raise UserError(f"{name} must be at least {least}, got {getattr(self, name)}")
        checks.at_least_zero("server_lr", self.server_lr)

    def before(self, round_: Round, commons: Commons) -> None:
        """Whoever is active begins from the server's model of its architecture."""
        for name in round_.active:
            spec = round_.specs[name]
            if server(spec) not in commons.memory:
                commons.memory[server(spec)] = commons.initial(spec)
            commons.send(name, commons.memory[server(spec)])

    def plan(self, round_: Round) -> Plan:
        """One lesson a client at home, on labels alone."""
        return Plan(tuple(round_.lesson(name, name) for name in round_.active))

    def after(self, round_: Round, commons: Commons) -> None:
        """Averages per architecture, weighed by samples, learn from the mean logits of all."""
        for name in round_.active:
            commons.moved(commons.state(name))
        said = commons.score(round_.active, commons.public)
        target = torch.stack(list(said.values())).mean(dim=0).softmax(dim=1) if said else None
        for spec in dict.fromkeys(round_.specs[name] for name in round_.active):
            equals = [name for name in round_.active if round_.specs[name] == spec]
            states = [commons.state(name) for name in equals]
            mean = average(states, [commons.held(name) for name in equals])
            student = commons.model(spec, mean)
            if target is not None:
                self._distil(student, target, round_.stream("server", spec.name), commons)
            commons.memory[server(spec)] = state_of(student)
        for name in round_.active:
            commons.send(name, commons.memory[server(round_.specs[name])])

    def _distil(self, student: nn.Module, target: Tensor, stream: Stream, commons: Commons) -> None:
        with stream.torch_generator():
            passes = distil(
                student,
                commons.public,
                target,
                stream.generator(),
                steps=self.steps,
                batch=self.server_batch,
                lr=self.server_lr,
            )
        commons.studied(passes)

    def also(self, clients: Mapping[str, ModelSpec]) -> Mapping[str, Mapping[str, str]]:
        """The server's models, as if all clients had theirs."""
        return {"server": {name: server(spec) for name, spec in clients.items()}}


def server(spec: ModelSpec) -> str:
    """Where the server's model of an architecture is remembered."""
    return f"server/{spec.name}"
