"""`fedavg`: a server averages what the active clients learned; one architecture for all.

McMahan et al., "Communication-efficient learning of deep networks from decentralized data",
AISTATS 2017. A reference only: it needs what this project does without.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from calmfed.methods.base import Commons, Method, Plan, Round
from calmfed.methods.registry import register_method
from calmfed.models import ModelSpec
from calmfed.snapshot import average

SERVER = "server"


@register_method("fedavg")
@dataclass(frozen=True)
class FedAvg(Method):
    """The server's model goes out, is trained on each active client's samples, and is averaged."""

    summary = "a server averages the active models by samples (reference only: one architecture)"
    one_architecture = True

    def before(self, round_: Round, commons: Commons) -> None:
        """Whoever is active begins from the server's model."""
        if SERVER not in commons.memory:
            commons.memory[SERVER] = commons.initial(round_.specs[round_.active[0]])
        for name in round_.active:
            commons.send(name, commons.memory[SERVER])

    def plan(self, round_: Round) -> Plan:
        """One lesson a client at home, on labels alone."""
        return Plan(tuple(round_.lesson(name, name) for name in round_.active))

    def after(self, round_: Round, commons: Commons) -> None:
        """The mean, weighed by samples, is the server's next model, and theirs."""
        states = [commons.state(name) for name in round_.active]
        for state in states:
            commons.moved(state)
        commons.memory[SERVER] = average(states, [commons.held(n) for n in round_.active])
        for name in round_.active:
            commons.send(name, commons.memory[SERVER])

    def also(self, clients: Mapping[str, ModelSpec]) -> Mapping[str, Mapping[str, str]]:
        """The server's model, as if all had it."""
        return {SERVER: dict.fromkeys(clients, SERVER)}
