"""The verb `keys-seal`: a tree whose content is in clear seals it from now on."""

from __future__ import annotations

from typing import Any

from leafcast.ask.api import Api, ApiError
from leafcast.centre.centre import Centre, running
from relay.ports import Dice
from schemas.records.records import DeltaHead, Profile


def register_sealing(api: Api, centre: Centre, dice: Dice) -> None:
    """Answer the verb."""

    async def seal() -> dict[str, Any]:
        """Make the first master, and issue all anew under keys that follow from it.

        `{destinations, keyless, placements, later}`: how many get the fleet key, the names of those
        whose node has no key yet, how many placements are sealed, and the names of those that
        stay in clear until they have another revision. Raises ApiError, BusBroken.
        """
        controllers = running(centre.controllers)
        if controllers.keys.sealing.seals:
            remedy = "for other keys: leafcast keys rotate fleet"
            raise ApiError("Sealed", "content is sealed already", remedy)
        await controllers.rotate_fleet(dice)
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

    api.register("keys-seal", seal)
