"""The page of a centre that is served: a process of its own beside it.

Whoever reaches its port can take its connections, its files and its time, and none of the centre's.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from pathlib import Path

from leafcast.ui.page_place import PagePlace
from relay.adapters.server.guard import ProcessGuard
from relay.adapters.server.logged_process import LoggedProcess
from relay.ports import Clock

ADDRESS_FILE = "page-address"
"""In the data directory: the address that lets the next browser in."""
SERVED = "the page is served"
AGAIN_SECONDS = 5.0
TOLD_LINES = 3

log = logging.getLogger("leafcast")


async def keep_page(place: PagePlace, data_dir: Path, clock: Clock) -> None:
    """Have the page of a data directory served until cancelled.

    One that ended is started again, and so is one that could not be started.
    """
    while True:
        try:
            # A guard of its own each time: one that is lost starts nothing any more.
            async with ProcessGuard() as guard:
                ended = await _serve(guard, place, data_dir)
        # No file, no process, no thread, or a guard that is lost.
        except (OSError, RuntimeError) as error:
            log.warning("the page cannot be started: %s; tried again in %g s", error, AGAIN_SECONDS)
        else:
            log.warning("the page ended: %s", ended or "without a word")
        await clock.sleep(AGAIN_SECONDS)


async def _serve(guard: ProcessGuard, place: PagePlace, data_dir: Path) -> str:
    """Serve it until it ends; its last words."""
    process = LoggedProcess(
        guard, list(_command(place, data_dir)), name="page", cwd=data_dir, says_ready=SERVED
    )
    try:
        if await process.until_ready(float("inf")):
            file = data_dir / ADDRESS_FILE
            log.info("%s; the address for the next browser is in %s", SERVED, file)
        await process.ended.wait()
    finally:
        await process.stop()
    return " ".join(process.log[-TOLD_LINES:])


def _command(place: PagePlace, data_dir: Path) -> Iterator[str]:
    yield from (sys.executable, "-P", "-m", "leafcast", "ui", "--data-dir", str(data_dir))
    yield from ("--host", place.host, "--port", str(place.port))
    for name in place.names:
        yield from ("--name", name)
    if place.tls is not None:
        yield from ("--tls-cert", str(place.tls.certificate), "--tls-key", str(place.tls.key))
    yield from ("--address-file", str(data_dir / ADDRESS_FILE))
