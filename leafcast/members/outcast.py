"""A member whose place another machine has, and that was away then, learns that nobody wants it."""

from __future__ import annotations

from collections.abc import Callable

from leafcast.members.newcomers import members_in
from leafcast.members.settings import MemberSettings
from relay.adapters.server.route_peer import route_authority
from relay.ports import Clock

SILENT_SECONDS, LOOK_SECONDS = 10.0, 5.0


async def until_outcast(
    settings: Callable[[], MemberSettings], silent_seconds: Callable[[], float], clock: Clock
) -> str:
    """Who the members are, once others show that this one is none of them.

    Its server is let in at no route then. What is shown there says whom it is of, and only one that
    hears of nobody looks at it: who could deceive it has cut it off already.
    """
    while True:
        await clock.sleep(LOOK_SECONDS)
        own = settings()
        tls = own.cluster.tls
        if tls is None or silent_seconds() < SILENT_SECONDS:
            continue
        for route in own.cluster.routes:
            members = members_in(await route_authority(route, tls))
            if members and own.name not in members:
                return ", ".join(members)
