"""What `leafcast run` runs of a centre: apart, as a relay and an edge run without all of this."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from leafcast.centre.centre import CentreOptions
from leafcast.daemon.daemon import Daemon
from leafcast.daemon.local_daemon import run_here
from leafcast.data_dir import DataDir
from leafcast.doctor.space_checks import look_at_spaces
from leafcast.node.health_endpoint import HealthAddress
from leafcast.node.run_config import RunConfig
from leafcast.signals import run_until_signal
from leafcast.space_settings import CentreSpaces
from leafcast.ui.page_place import PagePlace
from leafcast.ui.page_process import keep_page
from relay.adapters.clock import SystemClock, SystemDice

log = logging.getLogger("leafcast")
NO_NODES_HERE = (0, 0, 3)
"""The shape of a tree whose centre alone runs here: its regions, sites and depth."""


def run_member(place: DataDir, health: HealthAddress | None, *, take_over: bool) -> None:
    """Run the member of a node, of the centre or of a relay, until it is told to end."""
    run_until_signal(run_here(place, health, take_over=take_over))


def run_centre(
    config: RunConfig,
    folder: Path,
    health: HealthAddress | None,
    page: PagePlace | None,
    *,
    take_over: bool,
) -> None:
    """Run the centre of a file, with its page if that is asked for, until it is told to end."""
    place = DataDir(folder.parent)
    with place.locked():
        place.write_spaces(config.centre_spaces(folder))
        if place.tree() is None:
            place.write_tree({"shape": list(NO_NODES_HERE)})
        options = CentreOptions(config.server_place(folder), take_over)
        daemon = Daemon(place, options, health=health)
        run_until_signal(_looking(daemon, place, page))


async def _looking(daemon: Daemon, place: DataDir, page: PagePlace | None) -> None:
    """Run the centre, and say in the log what is wrong with its spaces: they may be away now."""
    async with asyncio.TaskGroup() as group:
        group.create_task(_warn(place.spaces()), name="spaces")
        serving = None
        if page is not None:
            serving = group.create_task(keep_page(page, place.folder, SystemClock()), name="page")
        await daemon.run()
        if serving is not None:
            serving.cancel()


async def _warn(spaces: CentreSpaces) -> None:
    for fact in await look_at_spaces(spaces, SystemClock(), SystemDice()):
        if fact.trouble:
            log.warning("%s", fact)
