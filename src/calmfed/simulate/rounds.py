"""The walk of one round: draw, freeze, plan, carry out, adopt, merge, check, record."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from calmfed.aids import PUBLIC
from calmfed.methods import Merge, Plan, Round
from calmfed.simulate.checkpoint import ClientState, Counters, Progress
from calmfed.simulate.commons import RoundCommons
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

    def start(self) -> Progress:
        """Before the first round: all clients with their initial models."""
        states = {}
        for name, client in self._venue.federation.clients.items():
            state = state_of(self._venue.federation.initial_model(name))
            ref = self._venue.store.put(state)
            score = client.check(state, self._venue.workshop, self._recipe.teacher_batch)
            states[name] = ClientState(ref, score, ref, score)
        return Progress(0, states, Counters(), 0, {"rounds": 0.0, "evaluation": 0.0})

    def walk(self, progress: Progress, done: Done) -> RoundReport:
        """Walk the next round.

        Args:
            progress: Where the run stands; brought up to date, but for what is written to files.
            done: Called after each lesson.
        """
        number = progress.round + 1
        federation, clients, counters = self._venue.federation, progress.clients, progress.counters
        active = federation.active(number)
        round_ = Round(number, active, federation.members.specs, self._recipe, self._seed)
        commons = RoundCommons(self._venue, number, clients, counters, progress.memory)
        self._method.before(round_, commons)
        frozen = {name: clients[name].last for name in active}
        plan = self._method.plan(round_)
        _check_plan(plan, round_)
        tasks = [
            LessonTask(
                lesson,
                frozen,
                {
                    name: progress.memory[name]
                    for aid in lesson.aids
                    for name in aid.handouts
                    if name != PUBLIC
                },
                len(federation.members.training[lesson.host]),
            )
            for lesson in plan.lessons
        ]
        reports = self._engine.perform(tasks, done)
        for lesson, report in zip(plan.lessons, reports, strict=True):
            counters.lessons += 1
            counters.samples_studied += report.samples_studied
            counters.teacher_passes += report.teacher_passes
            counters.unheard += report.unheard
            if report.trust is not None:
                commons.tell(lesson.student, "trust", float(report.trust.trust.mean()))
            commons.decide(lesson.student, report.state, at_home=lesson.at_home)
        self._merge(plan.merges, clients, commons)
        counters.bytes_moved += bytes_moved(plan, {n: ref.nbytes for n, ref in frozen.items()})
        self._method.after(round_, commons)
        for _ in range(len(active) - len(plan.lessons)):  # a joint phase took their place
            done()
        for name in active:
            _check(commons, name, number, clients[name])
        progress.round = number
        lessons = {
            (t.lesson.student, t.lesson.host): r for t, r in zip(tasks, reports, strict=True)
        }
        return RoundReport(commons.events, lessons)

    def _merge(
        self, merges: Sequence[Merge], clients: Mapping[str, ClientState], commons: RoundCommons
    ) -> None:
        """Average the models that were adopted, all frozen before the first merge."""
        store = self._venue.store
        frozen = {name: clients[name].last for merge in merges for name in merge.models}
        means: dict[tuple[str, ...], StateRef] = {}
        for merge in merges:
            if merge.models not in means:
                mean = average([store.get(frozen[name]) for name in merge.models])
                means[merge.models] = store.put(mean)
            commons.decide(merge.owner, means[merge.models])


def _check_plan(plan: Plan, round_: Round) -> None:
    """Refuse a plan that cannot be carried out; a method of somebody's own may make one."""
    named = {n for lesson in plan.lessons for n in (lesson.student, lesson.host, *lesson.teachers)}
    named |= {n for merge in plan.merges for n in (merge.owner, *merge.models)}
    if strangers := sorted(named - set(round_.active)):
        raise ValueError(f"the method plans with {strangers[0]!r}, who is not active")
    for merge in plan.merges:
        if len({round_.specs[name] for name in (merge.owner, *merge.models)}) > 1:
            raise ValueError(f"the method merges models of several architectures: {merge.models}")


def _check(commons: RoundCommons, name: str, number: int, state: ClientState) -> None:
    """Keep the best checkpoint beside the last, by the client's own validation split."""
    if state.score.better_than(state.best_score):
        state.best, state.best_score, state.best_round = state.last, state.score, number
    commons.tell(name, "val_accuracy", state.score.accuracy)
    commons.tell(name, "val_loss", state.score.loss)
