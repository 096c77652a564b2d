"""Other keys for content: what is in force is sealed anew, and who opens it is told first."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from controllers.centre import Controllers
from relay.ports import Dice
from schemas.identity import MailKey

PROFILES_SECONDS_MAX = 60.0
"""A delta that comes before the profile with its key waits for that at the edge."""


async def rotate_fleet(controllers: Controllers, dice: Dice) -> None:
    """Put another fleet key in force, and with it another key for each placement.

    The ring holds it when this returns, and profiles are on their way; what a crash of the centre
    leaves to be done the next start does, as it finds that the ledger says something else.
    """
    controllers.keys.sealing.rotate(dice)
    with suppress(TimeoutError):
        async with asyncio.timeout(PROFILES_SECONDS_MAX):
            for mailboxes in controllers.inventories:
                await mailboxes.registered_anew()
    for one in controllers.workload_spaces:
        one.translator.look_at(one.translator.workloads.objects)


def rotate_placement(controllers: Controllers, name: str) -> MailKey | None:
    """Put another key for a placement in force; None if no space has a placement of this name."""
    found = [
        one.translator
        for one in controllers.workload_spaces
        if name in one.translator.workloads.objects
    ]
    for translator in found[:1]:
        key = translator.source(name).key
        controllers.keys.sealing.renew(key)
        translator.look_at([name])
        return key
    return None
