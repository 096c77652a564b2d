"""What waits for a person's word: removals that nobody said, and what to do with them."""

from __future__ import annotations

import asyncio
from typing import Any

from controllers.centre import Controllers
from leafcast.api import Api, ApiError
from leafcast.tree import LocalTree

INVENTORY = "inventory"
SETTLED_SECONDS_MAX = 30.0

Json = dict[str, Any]


class Custody:
    """The verbs `held` and `accept` of a daemon."""

    def __init__(self, tree: LocalTree) -> None:
        self._tree = tree

    async def held(self) -> Json:
        """`{placements: {name: why}, inventory: {synctargets|locations: why}}`."""
        controllers = self._controllers()
        return {"placements": dict(controllers.translator.held), INVENTORY: _inventory(controllers)}

    async def accept(self, placement: str = "", *, inventory: bool = False) -> Json:
        """Let what is held now go: `{accepted: what was held}`; raises ApiError if nothing is."""
        controllers = self._controllers()
        async with asyncio.timeout(SETTLED_SECONDS_MAX):
            await controllers.caught_up()
        if inventory:
            held = _inventory(controllers)
            if not held:
                raise _nothing_held("the inventory")
            controllers.mailboxes.accept_removals()
            return {"accepted": "; ".join(held.values())}
        why = controllers.translator.held.get(placement)
        if why is None:
            raise _nothing_held(f'EdgePlacement "{placement}"')
        controllers.translator.accept_removals(placement)
        async with asyncio.timeout(SETTLED_SECONDS_MAX):
            await controllers.caught_up()
        return {"accepted": why}

    def _controllers(self) -> Controllers:
        if self._tree.controllers is None:
            raise ApiError("Restarting", "the centre is starting", "try again in a moment")
        return self._tree.controllers


def register_custody(api: Api, tree: LocalTree) -> None:
    """Answer the verbs about what waits for a person's word."""
    custody = Custody(tree)
    api.register("held", custody.held)
    api.register("accept", custody.accept)


def _inventory(controllers: Controllers) -> dict[str, str]:
    """What is held of SyncTargets and Locations, and why."""
    end = "/RemovalHeld"
    errors = controllers.mailboxes.errors.items()
    return {name.removesuffix(end): why for name, why in errors if name.endswith(end)}


def _nothing_held(what: str) -> ApiError:
    remedy = "`leafcast accept` without a name lists what is held"
    return ApiError("NotHeld", f"no removal of {what} is held", remedy)
