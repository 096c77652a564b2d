"""Which objects of a placement stay though its space does not show them: nobody said a deletion."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from controllers.core.ledger.removal import Held, hold_objects
from controllers.core.workloads.space import Workloads
from schemas.objects import ObjectKey


def held_back(
    workloads: Workloads,
    name: str,
    before: AbstractSet[ObjectKey],
    inferred: AbstractSet[ObjectKey],
) -> tuple[frozenset[ObjectKey], Held[ObjectKey]]:
    """What stays of the `inferred` removals of a placement; of these, what waits for a person.

    Of kinds that are not read now nothing is missed: once they are, that is judged.
    """
    if not inferred:
        return frozenset(), Held(frozenset())
    unread = {key for key in inferred if key.group_resource in workloads.unread}
    shown = workloads.resolver.objects.keys()
    kinds = {key.group_resource for key in shown}
    missed = inferred - unread
    held = hold_objects(before, missed, kinds, shown, missed & workloads.undefined)
    stays = held.items | unread
    # What stays needs its definition, though that is not seen any more.
    asked = workloads.needed_by(workloads.resolver.selection(name)) & inferred
    return stays | workloads.needed_by(stays) | asked, held
