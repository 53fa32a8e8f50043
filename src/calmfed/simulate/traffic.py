"""What a real exchange would move for a plan."""

from collections.abc import Mapping

from calmfed.methods import Plan


def transfers(plan: Plan) -> list[tuple[str, str]]:
    """The snapshots that travel, as (whose model, to whom), each once.

    A host fetches every frozen model it needs and does not own; the outcome of a lesson abroad
    goes home; an owner fetches the models that it merges with its own.
    """
    to_hosts = {
        (name, lesson.host)
        for lesson in plan.lessons
        for name in (lesson.student, *lesson.teachers)
        if name != lesson.host
    }
    homewards = [(lesson.student, lesson.student) for lesson in plan.lessons if not lesson.at_home]
    to_owners = {(name, m.owner) for m in plan.merges for name in m.models if name != m.owner}
    return [*sorted(to_hosts), *homewards, *sorted(to_owners)]


def bytes_moved(plan: Plan, sizes: Mapping[str, int]) -> int:
    """The bytes of all transfers of a plan, given the size of each client's snapshot."""
    return sum(sizes[name] for name, _ in transfers(plan))
