"""What waits for a person's word: removals that nobody said."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from controllers.centre import Controllers
from leafcast.ask.api import ApiError, verb
from leafcast.centre.centre import Centre, running
from schemas.records.placements import bare_name, kind_of, meant
from schemas.records.records import Record
from schemas.values.wording import many, some_of

SETTLED_SECONDS_MAX = 30.0
NAMED_MAX = 5
HELD_END = "/RemovalHeld"
"""How names among the errors of the inventory end that say what is held."""

Json = dict[str, Any]


class Approvals:
    """The verbs of a daemon about what waits; each raises BusBroken while the centre starts."""

    def __init__(self, centre: Centre) -> None:
        self._centre = centre

    @verb("held")
    async def held(self) -> Json:
        """What is held, and why.

        `{placements: {name: why}, inventory: {synctargets|locations: why}, spaces: {id: what},
        ledger: why or ""}`.
        """
        controllers = running(self._centre.controllers)
        return {
            "placements": dict(controllers.translator.placements.held),
            "inventory": held_inventory(controllers),
            "spaces": lost_spaces(controllers),
            "ledger": lost_records(controllers),
        }

    @verb("accept")
    async def accept(
        self, placement: str = "", *, inventory: bool = False, ledger: bool = False, space: str = ""
    ) -> Json:
        """Let what is held now go: `{accepted: what was held}`; raises ApiError if nothing is.

        Of a placement the answer says in `placement` which one was meant.
        """
        controllers = running(self._centre.controllers)
        await settle(controllers)
        if inventory:
            why = "; ".join(held_inventory(controllers).values())
            return _accepted("the inventory", why, controllers.mailboxes.accept_removals)
        if ledger:
            lost, issuer = lost_records(controllers), controllers.issuer
            return _accepted("what the ledger lost", lost, issuer.forget_lost)
        if space:
            return {"accepted": await _accept_lost_space(controllers, space)}
        held = controllers.translator.placements.held
        placement = meant(placement, held)
        what = f'{kind_of(placement).kind} "{bare_name(placement)}"'
        let_go = partial(controllers.translator.accept_removals, placement)
        accepted = _accepted(what, held.get(placement, ""), let_go)
        await settle(controllers)
        return {**accepted, "placement": placement}


def held_inventory(controllers: Controllers) -> dict[str, str]:
    """What is held of SyncTargets and Locations, and why."""
    errors = controllers.mailboxes.registry.errors.items()
    return {name.removesuffix(HELD_END): why for name, why in errors if name.endswith(HELD_END)}


def lost_spaces(controllers: Controllers) -> dict[str, str]:
    """What spaces said that are gone, by the spaces' ids."""
    return {space: _named(records) for space, records in controllers.lost_spaces().items()}


def lost_records(controllers: Controllers) -> str:
    """What the centre's ledger lost, and its nodes hold; "" if nothing."""
    lost = len(controllers.issuer.lost)
    said = "in force in the tree, and the centre's ledger lost what they say"
    return f"{many(lost, 'record')} {said}" if lost else ""


async def settle(controllers: Controllers) -> None:
    """Wait until the ledger says what the spaces hold; raises ApiError if that takes too long."""
    try:
        async with asyncio.timeout(SETTLED_SECONDS_MAX):
            await controllers.caught_up()
    except TimeoutError as error:
        message = f"the centre is behind its spaces, still after {SETTLED_SECONDS_MAX:g} s"
        raise ApiError("Timeout", message, "try again, or see `leafcast doctor`") from error


def _accepted(what: str, why: str, let_go: Callable[[], object]) -> Json:
    """Let go of it; raises ApiError if nothing keeps it."""
    if not why:
        remedy = "`leafcast accept` without a name lists what is held"
        raise ApiError("NotHeld", f"no removal of {what} is held", remedy)
    let_go()
    return {"accepted": why}


async def _accept_lost_space(controllers: Controllers, space: str) -> str:
    held = lost_spaces(controllers)
    found = [known for known in held if known.startswith(space)]
    if len(found) != 1:
        known = ", ".join(sorted(held)) or "none"
        remedy = f"lost spaces: {known}"
        raise ApiError("NotHeld", f'no lost space, or more than one, begins with "{space}"', remedy)
    await controllers.accept_lost_space(found[0])
    return held[found[0]]


def _named(records: Sequence[Record]) -> str:
    kinds = defaultdict[str, list[str]](list)
    for record in records:
        kinds[record.source.api.rpartition("/")[2]].append(record.source.name)
    said = []
    for kind, names in sorted(kinds.items()):
        said.append(f"{many(len(names), kind)} ({some_of(sorted(names), NAMED_MAX)})")
    return ", ".join(said)
