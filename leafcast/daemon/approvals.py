"""What waits for a person's word: removals that nobody said, orphans, and a ledger not read back.

An orphan is a placement in force that no object of the centre's space says: it is kept, until
someone adopts or withdraws it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from controllers.adoption import CannotAdopt, objects_of, write_back
from controllers.centre import Controllers
from controllers.core.recovery import Orphan
from leafcast.ask.api import Api, ApiError
from leafcast.daemon.running_centre import running
from leafcast.local.tree import LocalTree
from schemas.identity import NodePath
from schemas.records import DeltaHead

INVENTORY = "inventory"
SETTLED_SECONDS_MAX = 30.0
HELD_END = "/RemovalHeld"
"""How names among the errors of the inventory end that say what is held."""

Json = dict[str, Any]


class Approvals:
    """The verbs of a daemon about what waits; each raises BusBroken while the centre starts."""

    def __init__(self, tree: LocalTree) -> None:
        self._tree = tree

    async def held(self) -> Json:
        """`{placements: {name: why}, inventory: {synctargets|locations: why}}`."""
        controllers = self._sure()
        return {
            "placements": dict(controllers.translator.held),
            INVENTORY: held_inventory(controllers),
        }

    async def accept(self, placement: str = "", *, inventory: bool = False) -> Json:
        """Let what is held now go: `{accepted: what was held}`; raises ApiError if nothing is."""
        controllers = self._sure()
        await _settle(controllers)
        if inventory:
            held = held_inventory(controllers)
            if not held:
                raise _nothing_held("the inventory")
            controllers.mailboxes.accept_removals()
            return {"accepted": "; ".join(held.values())}
        why = controllers.translator.held.get(placement)
        if why is None:
            raise _nothing_held(f'EdgePlacement "{placement}"')
        if placement not in controllers.translator.workloads.objects and any(
            orphan.name == placement for orphan in controllers.orphans()
        ):
            remedy = f"say `leafcast adopt {placement}` or `leafcast withdraw {placement}`"
            raise ApiError("Orphan", f"{placement} was read back, and no object says it", remedy)
        controllers.translator.accept_removals(placement)
        await _settle(controllers)
        return {"accepted": why}

    async def orphans(self) -> Json:
        """`{recovering: [path], orphans: [{name, space, here}], strangers}`.

        `recovering` are awaited; `strangers` counts SyncTargets and Locations of a lost inventory.
        """
        awaited = awaited_for_ledger(self._controllers())
        if awaited is not None:
            return {"recovering": awaited, "orphans": [], "strangers": 0}
        found = self._sure().orphans()
        listed = [{"name": o.name, "space": o.space, "here": o.here} for o in found]
        strangers = len(self._sure().mailboxes.strangers())
        return {"recovering": [], "orphans": listed, "strangers": strangers}

    async def adopt(self, placement: str, space: str = "") -> Json:
        """Write an orphan's objects into the space, as a placement: `{objects: how many}`.

        What is there already stays as it is. Raises ApiError.
        """
        controllers = self._sure()
        orphan = self._orphan(placement, space)
        if placement in controllers.translator.workloads.objects:
            remedy = f"withdraw the orphan with `leafcast withdraw {placement}`, or rename yours"
            raise ApiError("Exists", f'there is an EdgePlacement "{placement}" already', remedy)
        head = controllers.issuer.records[orphan.key]
        assert isinstance(head, DeltaHead)
        assert self._tree.workloads is not None
        centre = running(self._tree.nodes[NodePath()].driver)
        try:
            objects = await objects_of(centre, orphan, head)
        except CannotAdopt as error:
            raise ApiError("CannotAdopt", str(error), "apply its manifests again") from error
        count = await write_back(self._tree.workloads, objects)
        await _settle(controllers)
        if not orphan.here:
            # What it holds is another placement's now, and stays.
            await controllers.translator.withdraw(orphan)
        return {"objects": count}

    async def adopt_inventory(self) -> Json:
        """Bring the SyncTargets and Locations of a lost inventory back: `{objects: how many}`."""
        mailboxes = self._sure().mailboxes
        if not mailboxes.strangers():
            raise ApiError("NotFound", "no inventory was lost", "there is nothing to adopt")
        return {"objects": await mailboxes.adopt()}

    async def withdraw(self, placement: str, space: str = "") -> Json:
        """Let an orphan go, everywhere. Raises ApiError."""
        controllers = self._sure()
        orphan = self._orphan(placement, space)
        if orphan.here:
            controllers.translator.accept_removals(placement)
        else:
            await controllers.translator.withdraw(orphan)
        await _settle(controllers)
        return {}

    async def go_on_without(self, path: str) -> Json:
        """Wait no more for a child of the centre. Raises ApiError, BadIdentity."""
        recovery = self._controllers().recovery
        where = NodePath.parse(path)
        awaited = recovery.awaited if recovery is not None else frozenset[str]()
        if recovery is None or where.is_root or where.name not in awaited or where.names[1:]:
            known = ", ".join(f"/{name}" for name in sorted(awaited))
            remedy = f"awaited are: {known}" if known else "no child is: the ledger is here"
            raise ApiError("NotAwaited", f"nothing is awaited from {where}", remedy)
        recovery.go_on_without(where.name)
        return {}

    def _orphan(self, name: str, space: str) -> Orphan:
        orphans = self._sure().orphans()
        found = [o for o in orphans if o.name == name and o.space.startswith(space)]
        if len(found) == 1:
            return found[0]
        if found:
            spaces = ", ".join(orphan.space for orphan in found)
            raise ApiError("Ambiguous", f"{name} is in spaces {spaces}", "name one with --space")
        known = ", ".join(f"{o.name} (space {o.space})" if space else o.name for o in orphans)
        remedy = f"there are: {known}" if known else "there are none"
        where = f' of a space "{space}"' if space else ""
        raise ApiError("NotFound", f'there is no orphan "{name}"{where}', remedy)

    def _sure(self) -> Controllers:
        """The controllers, once they are sure of their ledger; raises ApiError before."""
        controllers = self._controllers()
        awaited = awaited_for_ledger(controllers)
        if awaited is not None:
            raise reading_back(awaited)
        return controllers

    def _controllers(self) -> Controllers:
        return running(self._tree.controllers)


def register_approvals(api: Api, tree: LocalTree) -> None:
    """Answer the verbs about what waits for a person's word."""
    approvals = Approvals(tree)
    api.register("held", approvals.held)
    api.register("accept", approvals.accept)
    api.register("orphans", approvals.orphans)
    api.register("adopt", approvals.adopt)
    api.register("adopt-inventory", approvals.adopt_inventory)
    api.register("withdraw", approvals.withdraw)
    api.register("go-on-without", approvals.go_on_without)


def awaited_for_ledger(controllers: Controllers) -> list[str] | None:
    """The children that a centre which lost its ledger waits for; None if it has it."""
    recovery = controllers.recovery
    if recovery is None or recovery.done.is_set():
        return None
    return [f"/{name}" for name in sorted(recovery.awaited)]


def orphan_names(controllers: Controllers) -> list[str]:
    """The placements in force that no EdgePlacement says, by name."""
    there = controllers.translator.workloads.objects.keys()
    return sorted({orphan.name for orphan in controllers.orphans()} - there)


def orphan_remedy(name: str) -> str:
    """What a person can do about one."""
    return (
        f"bring it back with `leafcast adopt {name}`, or remove it with `leafcast withdraw {name}`"
    )


def reading_back(awaited: Sequence[str]) -> ApiError:
    """That the centre cannot tell yet, for it waits for these."""
    remedy = "wait, or see `leafcast adopt` for how to go on without one"
    named = ", ".join(awaited) or "its children"
    return ApiError("Recovering", f"the centre reads its ledger back from {named}", remedy)


async def _settle(controllers: Controllers) -> None:
    """Wait until the ledger says what the spaces hold; raises ApiError if that takes too long."""
    try:
        async with asyncio.timeout(SETTLED_SECONDS_MAX):
            await controllers.caught_up()
    except TimeoutError as error:
        message = f"the centre is behind its spaces, still after {SETTLED_SECONDS_MAX:g} s"
        raise ApiError("Timeout", message, "try again, or see `leafcast doctor`") from error


def held_inventory(controllers: Controllers) -> dict[str, str]:
    """What is held of SyncTargets and Locations, and why."""
    errors = controllers.mailboxes.errors.items()
    return {name.removesuffix(HELD_END): why for name, why in errors if name.endswith(HELD_END)}


def _nothing_held(what: str) -> ApiError:
    remedy = "`leafcast accept` without a name lists what is held"
    return ApiError("NotHeld", f"no removal of {what} is held", remedy)
