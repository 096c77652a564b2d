"""A server of our own that cannot write to its store is started again once its disk has room.

A nats-server whose disk is full ends its JetStream and lives on, so nobody would start it again.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from relay.adapters.server.nats_server import EmbeddedServer
from relay.core.effects import Noted
from relay.ports import Clock

STORE_LOOK_SECONDS = 1.0

log = logging.getLogger("leafcast")


async def left_to_others() -> bool:
    """In place of the renewal of a server that someone else keeps."""
    return False


async def keep_store(
    server: EmbeddedServer,
    folder: Path,
    clock: Clock,
    note: Callable[[Noted], None],
    renew: Callable[[], Awaitable[bool]],
) -> None:
    """Look without end, and note what happens to the server.

    `renew` starts it anew if its disk has room, and says whether it did.
    """
    is_told, starts = False, 1
    while True:
        await clock.sleep(STORE_LOOK_SECONDS)
        fails = server.store_failed and not server.wiped
        is_renewed = (fails and await renew()) or (is_told and server.starts > starts)
        if is_renewed:
            is_told, starts = False, server.starts
            log.warning("node %s: its server was started again: there is room now", server.path)
            note(Noted("DiskHasRoom", str(folder), "there is room again"))
        elif fails and not is_told:
            is_told = True
            log.error("node %s: its disk %s is full: make room there", server.path, folder)
            note(Noted("DiskFull", str(folder), "its disk is full: make room"))
        if server.starts > starts:
            starts = server.starts
            detail = "it ended by itself or was killed, and was started again"
            note(Noted("ServerRestarted", "nats-server", detail))
