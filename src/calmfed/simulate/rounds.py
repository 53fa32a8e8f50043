"""The walk of one round: draw, freeze, plan, carry out, adopt, merge, check, record."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from calmfed.methods import Merge, Plan, Round
from calmfed.simulate.checkpoint import ClientState, Counters
from calmfed.simulate.engine import Done, Engine
from calmfed.simulate.record import Event
from calmfed.simulate.store import StateRef
from calmfed.simulate.traffic import bytes_moved
from calmfed.simulate.venue import LessonReport, LessonTask, Venue
from calmfed.snapshot import average, state_of


@dataclass(frozen=True)
class RoundReport:
    """What a round was: its events in order, and the reports of its lessons by (student, host)."""

    events: list[Event]
    lessons: dict[tuple[str, str], LessonReport]


class Rounds:
    """Walks rounds over the states of all clients."""

    def __init__(self, venue: Venue, engine: Engine) -> None:
        self._venue = venue
        self._engine = engine
        config = venue.federation.config
        self._method = config.method_setup().method
        self._recipe = config.recipe()
        self._seed = config.seed

    def start(self) -> dict[str, ClientState]:
        """All clients with their initial models."""
        states = {}
        for name, client in self._venue.federation.clients.items():
            state = state_of(self._venue.federation.initial_model(name))
            ref = self._venue.store.put(state)
            score = client.check(state, self._venue.workshop, self._recipe.teacher_batch)
            states[name] = ClientState(ref, score, ref, score)
        return states

    def walk(
        self, number: int, clients: dict[str, ClientState], counters: Counters, done: Done
    ) -> RoundReport:
        """Walk one round; ``clients`` and ``counters`` are brought up to date.

        Args:
            number: Of the round, 1 for the first.
            clients: Where each client stands.
            counters: The effort so far.
            done: Called after each lesson.
        """
        federation = self._venue.federation
        active = federation.active(number)
        frozen = {name: clients[name].last for name in active}
        round_ = Round(number, active, federation.members.specs, self._recipe, self._seed)
        plan = self._method.plan(round_)
        _check_plan(plan, round_)
        tasks = [
            LessonTask(lesson, frozen, len(federation.members.training[lesson.host]))
            for lesson in plan.lessons
        ]
        reports = self._engine.perform(tasks, done)
        events: list[Event] = []
        for lesson, report in zip(plan.lessons, reports, strict=True):
            counters.lessons += 1
            counters.samples_studied += report.samples_studied
            counters.teacher_passes += report.teacher_passes
            counters.unheard += report.unheard
            if report.trust is not None:
                events.append(
                    Event(number, lesson.student, "trust", float(report.trust.trust.mean()))
                )
            events += self._offer(
                number, lesson.student, report.state, clients, counters, at_home=lesson.at_home
            )
        events += self._merge(number, plan.merges, clients, counters)
        counters.bytes_moved += bytes_moved(plan, {n: ref.nbytes for n, ref in frozen.items()})
        for name in active:
            events += _check(number, name, clients[name])
        lessons = {
            (t.lesson.student, t.lesson.host): r for t, r in zip(tasks, reports, strict=True)
        }
        return RoundReport(events, lessons)

    def _merge(
        self,
        number: int,
        merges: Sequence[Merge],
        clients: dict[str, ClientState],
        counters: Counters,
    ) -> list[Event]:
        """Average the models that were adopted, all frozen before the first merge."""
        frozen = {name: clients[name].last for merge in merges for name in merge.models}
        means: dict[tuple[str, ...], StateRef] = {}
        events = []
        for merge in merges:
            if merge.models not in means:
                means[merge.models] = self._mean(merge.models, frozen)
            events += self._offer(number, merge.owner, means[merge.models], clients, counters)
        return events

    def _mean(self, names: Sequence[str], frozen: Mapping[str, StateRef]) -> StateRef:
        store = self._venue.store
        return store.put(average([store.get(frozen[name]) for name in names]))

    def _offer(
        self,
        number: int,
        name: str,
        offered: StateRef,
        clients: dict[str, ClientState],
        counters: Counters,
        *,
        at_home: bool = False,
    ) -> list[Event]:
        """Let an owner decide on a state, and keep it if it adopts."""
        store, mine = self._venue.store, clients[name]
        verdict = self._venue.federation.clients[name].adopt(
            store.get(offered),
            store.get(mine.last),
            mine.score,
            self._venue.workshop,
            self._recipe.teacher_batch,
            at_home=at_home,
        )
        events = []
        if verdict.drop is not None and not at_home:
            events.append(Event(number, name, "drop", verdict.drop))
        if verdict.refusal is not None:
            counters.refusals += 1
            events.append(Event(number, name, "refused", verdict.refusal))
        elif verdict.score is not None:
            mine.last, mine.score = offered, verdict.score
        return events


def _check_plan(plan: Plan, round_: Round) -> None:
    """Refuse a plan that cannot be carried out; a method of somebody's own may make one."""
    named = {n for lesson in plan.lessons for n in (lesson.student, lesson.host, *lesson.teachers)}
    named |= {n for merge in plan.merges for n in (merge.owner, *merge.models)}
    if strangers := sorted(named - set(round_.active)):
        raise ValueError(f"the method plans with {strangers[0]!r}, who is not active")
    for merge in plan.merges:
        if len({round_.specs[name] for name in (merge.owner, *merge.models)}) > 1:
            raise ValueError(f"the method merges models of several architectures: {merge.models}")


def _check(number: int, name: str, state: ClientState) -> list[Event]:
    """Keep the best checkpoint beside the last, by the client's own validation split."""
    if state.score.better_than(state.best_score):
        state.best, state.best_score, state.best_round = state.last, state.score, number
    return [
        Event(number, name, "val_accuracy", state.score.accuracy),
        Event(number, name, "val_loss", state.score.loss),
    ]
