"""All that a syncer has to do, at once: what it decides object by object."""

from collections.abc import Callable, Collection, Mapping

from relay.core.destination.claims import DesiredObject
from relay.syncer.plan import ObjectAction, action_for, rank
from schemas.objects.objects import ObjectKey
from schemas.reports.reports import Done


def plan(
    wanted: Mapping[ObjectKey, DesiredObject],
    applied: Mapping[ObjectKey, Done],
    *,
    may_prune: Callable[[ObjectKey], bool],
    drifted: Collection[ObjectKey] = frozenset(),
) -> list[ObjectAction]:
    """Applies in ascending order, then prunes in descending order; nothing if all is done."""
    actions = [
        action
        for key in wanted.keys() | applied.keys()
        if (
            action := action_for(
                wanted.get(key), applied.get(key), may_prune=may_prune(key), drifted=key in drifted
            )
        )
    ]
    return sorted(actions, key=rank)
