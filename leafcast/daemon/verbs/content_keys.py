"""The verbs about keys that content is sealed with: what there is, and other ones."""

from __future__ import annotations

from typing import Any

from controllers.centre import Controllers
from controllers.core.access.keyring import Keyring
from leafcast.ask.api import ApiError
from leafcast.centre.centre import Centre, running
from relay.ports import Dice
from schemas.content.sealing import FLEET_KEYS_MAX, fleet_key, key_id
from schemas.records.placements import meant, short_title

Json = dict[str, Any]


class ContentKeys:
    """The verbs of a daemon about these; each raises BusBroken while the centre starts."""

    def __init__(self, centre: Centre, dice: Dice) -> None:
        self._centre = centre
        self._dice = dice

    async def rotate_fleet(self) -> Json:
        """Put another fleet key in force, and other keys of all placements; raises ApiError."""
        await self._sealing().rotate_fleet(self._dice)
        return {}

    async def rotate_placement(self, placement: str) -> Json:
        """Another key of one placement: `{placement: its title}`; raises ApiError."""
        controllers = self._sealing()
        for one in controllers.workload_spaces:
            known = one.translator.workloads.placements
            if (name := meant(placement, known)) in known:
                one.translator.rotate_key(name)
                return {"placement": short_title(name)}
        message = f'there is no placement "{placement}"'
        raise ApiError("NotFound", message, "`leafcast get epl,bp` lists those there are")

    def _sealing(self) -> Controllers:
        controllers = running(self._centre.controllers)
        if not controllers.keys.sealing.seals:
            raise ApiError("NotSealed", "content is not sealed", "run `leafcast keys seal`")
        return controllers


def fleet_keys(ring: Keyring) -> list[Json]:
    """The fleet keys that edges have, newest first, in the form of the other keys."""
    return [
        {
            "id": key_id(fleet_key(master)).hex(),
            "kind": "fleet",
            "scope": "-",
            "first": 0,
            "last": 0,
            "state": "ended" if at else "in use",
            "here": True,
            "records": 0,
        }
        for at, master in enumerate(ring.masters[:FLEET_KEYS_MAX])
    ]
