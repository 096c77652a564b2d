"""The verbs about keys that content is sealed with: what there is, the first, and other ones."""

from __future__ import annotations

from typing import Any

from controllers.centre import Controllers
from controllers.core.access.keyring import Keyring
from leafcast.ask.api import ApiError, verb
from leafcast.centre.centre import Centre, running
from relay.ports import Dice
from schemas.content.sealing import FLEET_KEYS_MAX, fleet_key, key_id
from schemas.records.placements import meant, short_title
from schemas.records.records import DeltaHead, Profile

Json = dict[str, Any]


class ContentKeys:
    """The verbs of a daemon about these; each raises BusBroken while the centre starts."""

    def __init__(self, centre: Centre, dice: Dice) -> None:
        self._centre = centre
        self._dice = dice

    @verb("keys-rotate-fleet")
    async def rotate_fleet(self) -> Json:
        """Put another fleet key in force, and other keys of all placements; raises ApiError."""
        await self._sealing().rotate_fleet(self._dice)
        return {}

    @verb("keys-rotate-placement")
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

    @verb("keys-seal")
    async def seal(self) -> Json:
        """Make the first master, and issue all anew under keys that follow from it.

        `{destinations, keyless, placements, later}`: how many get the fleet key, the names of those
        whose node has no key yet, how many placements are sealed, and the names of those that
        stay in clear until they have another revision. Raises ApiError, BusBroken.
        """
        controllers = running(self._centre.controllers)
        if controllers.keys.sealing.seals:
            remedy = "for other keys: leafcast keys rotate fleet"
            raise ApiError("Sealed", "content is sealed already", remedy)
        await controllers.rotate_fleet(self._dice)
        records = [*controllers.issuer.records.values()]
        profiles = [record for record in records if isinstance(record, Profile)]
        later = [
            name
            for one in controllers.workload_spaces
            for name, issued in one.translator.placements.standing().items()
            if issued.entries and issued.sealed_under is None
        ]
        return {
            "destinations": sum(bool(profile.fleet_key) for profile in profiles),
            "keyless": sorted(p.source.name for p in profiles if not p.fleet_key),
            "placements": sum(isinstance(it, DeltaHead) for it in records) - len(later),
            "later": sorted(later),
        }

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
