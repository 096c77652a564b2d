"""Which objects of a placement stay though its space does not show them: nobody said a deletion."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from controllers.core.ledger.destination_counts import count_destinations
from controllers.core.ledger.removal import LOST, HeldRemoval, hold_objects, removals_max
from controllers.core.translation.translate import IssuedDelta
from controllers.core.workloads.space import Workloads
from schemas.objects.objects import GroupResource, ObjectKey
from schemas.records.records import Record


def held_back(
    workloads: Workloads,
    name: str,
    before: AbstractSet[ObjectKey],
    inferred: AbstractSet[ObjectKey],
) -> tuple[frozenset[ObjectKey], HeldRemoval[ObjectKey]]:
    """What stays of the `inferred` removals of a placement; of these, what waits for a person.

    Of kinds that are not read now nothing is missed: once they are, that is judged.
    """
    if not inferred:
        return frozenset(), HeldRemoval(frozenset())
    unread = {key for key in inferred if key.group_resource in workloads.unread}
    shown = workloads.resolver.objects.keys()
    kinds = {key.group_resource for key in shown}
    missed = inferred - unread
    kinds |= _told_by_one_deletion(workloads, name, missed, kinds)
    held = hold_objects(before, missed, kinds, shown, missed & workloads.undefined)
    if lost := workloads.lost_among(missed):
        held = HeldRemoval(held.items | lost, held.reason or LOST)
    stays = held.items | unread
    # What stays needs its definition, though that is not seen any more.
    asked = workloads.needed_by(workloads.resolver.selection(name)) & inferred
    return stays | workloads.needed_by(stays) | asked, held


def _told_by_one_deletion(
    workloads: Workloads,
    name: str,
    missed: AbstractSet[ObjectKey],
    shown: AbstractSet[GroupResource],
) -> frozenset[GroupResource]:
    """The kind of which a list shows nothing any more, as its last object was deleted.

    It is one object, of a kind that was listed whole, and the space shows others that the placement
    selects: a space that lacks more than that is taken for blind.
    """
    blind = {key for key in missed if key.group_resource not in shown}
    kinds = {key.group_resource for key in blind}
    alike = [key for key in workloads.unseen if key.group_resource in kinds]
    is_one = len(blind) == 1 and len(alike) == 1 and not blind & workloads.undefined
    if is_one and kinds <= workloads.trusted and workloads.resolver.count(name):
        return frozenset(kinds)
    return frozenset()


def too_large(before: IssuedDelta, records: Iterable[Record]) -> str:
    """Why a placement that is not seen is too large to go for that; empty if it is not."""
    if before.entries is None or len(before.entries) > removals_max(len(before.entries)):
        return "all its objects would go at once"
    count = count_destinations(records, before.head.alternatives)
    return f"all its {count} destinations would lose it" if count > removals_max(count) else ""
