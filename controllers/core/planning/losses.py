"""How many copies a change would take of each placement, before it is made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain

from controllers.core.inventory.make_before_break import MOVED, is_hold
from controllers.core.ledger.destination_counts import SelectedDestinations
from controllers.core.ledger.weighing import NOTHING_DELIVERED, Delivered, Loss, weigh
from controllers.core.planning.states import Delivery, PlannedState
from relay.objects.policies import on_removal
from schemas.content.manifest import removal_word
from schemas.objects.annotations import DELETE
from schemas.records.records import Alternative
from schemas.values.identity import MailKey


def losses(before: PlannedState, after: PlannedState) -> Mapping[str, Loss]:
    """What each placement loses that loses anything, by its name.

    What is held already is lost by an earlier change.
    """
    were, are = before.placements, after.placements
    moved = before.profiles is not after.profiles or before.locations is not after.locations
    concerned = [key for key, delivery in were.items() if moved or are.get(key) is not delivery]
    if not concerned:
        return {}
    first = _inventory(before)
    inventory = first, _inventory(after) if moved else first
    found = {}
    for key in concerned:
        loss = weigh(
            inventory,
            _delivered(were[key]),
            _delivered(are.get(key)),
            _others(after, key),
            moves=_moves(key, before, after),
        )
        if loss.copies:
            found[were[key].name] = replace(loss, kept=_kept(inventory, key, before, after))
    return found


def _moves(key: MailKey, before: PlannedState, after: PlannedState) -> bool:
    """Whether who loses a placement keeps it until who gains it is healthy.

    That labels move it does so; who says another selector, or deletes a Location, takes it at once.
    """
    were, are = before.placements[key], after.placements.get(key)
    if are is None or _meant(were) != _meant(are):
        return False
    if not any(is_hold(each, MOVED) for each in were.alternatives):
        return False
    if before.locations is after.locations:
        return True
    now = after.locations
    return all(
        slot in now and now[slot].instance_selector == location.instance_selector
        for slot, location in before.locations.items()
    )


def _inventory(state: PlannedState) -> SelectedDestinations:
    return SelectedDestinations(chain(state.profiles.values(), state.locations.values()))


def _others(state: PlannedState, key: MailKey) -> Iterator[Delivered]:
    return (_delivered(it) for other, it in state.placements.items() if other != key)


def _kept(
    inventory: tuple[SelectedDestinations, SelectedDestinations],
    key: MailKey,
    before: PlannedState,
    after: PlannedState,
) -> int:
    """How many of the copies that a placement loses stay where they are."""
    were, are = before.placements[key], after.placements.get(key)
    stays = {
        obj
        for obj, entry in were.entries.items()
        if on_removal(obj, removal_word(entry.flags)) != DELETE
    }
    if not stays:
        return 0
    had, has = _delivered(were), _delivered(are)
    loss = weigh(
        inventory,
        had._replace(objects=stays),
        has._replace(objects=stays & has.objects),
        _others(after, key),
        moves=_moves(key, before, after),
    )
    return loss.copies


def _meant(delivery: Delivery) -> tuple[Alternative, ...]:
    return tuple(each for each in delivery.alternatives if not is_hold(each))


def _delivered(delivery: Delivery | None) -> Delivered:
    if delivery is None:
        return NOTHING_DELIVERED
    meant = tuple(each for each in delivery.alternatives if not is_hold(each, MOVED))
    return Delivered(meant, delivery.entries.keys())
