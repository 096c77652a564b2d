"""The daemon of a tree on this machine, with all its nodes in one program: what `up` starts."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from leafcast.centre.centre import Centre, CentreOptions
from leafcast.centre.copying import (
    RunsAlone,
    bring_over,
    end_broken_change,
    end_membership,
    is_moving_in,
)
from leafcast.daemon.centre_member import CentreMember
from leafcast.daemon.daemon import Daemon
from leafcast.daemon.logs import format_told, set_up_logs
from leafcast.daemon.trio_daemon import TrioDaemon
from leafcast.data_dir import DataDir, DataDirUnusable
from leafcast.errors import said
from leafcast.join.relay_member import RelayMember
from leafcast.local.tree import LocalTree
from leafcast.local.tree_kube import TreeKube
from leafcast.local.views import CENTRE_ALONE, TreeShape
from leafcast.members.member import Member
from leafcast.members.settings import FILE as MEMBER_FILE
from leafcast.members.settings import MemberSettings, kept_member
from leafcast.node.health_endpoint import HealthAddress
from leafcast.node.options import ActiveMember, RunBeside
from leafcast.service.watchdog import attended
from leafcast.signals import EndedBySignal, run_until_signal
from leafcast.space_settings import CentreSpaces
from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.server.cluster_settings import MEMBERS
from schemas.values.identity import NodePath

LOG_BYTES_MAX = 2_000_000

log = logging.getLogger("leafcast.daemon")


class TreeHere:
    """Runs the nodes of a shape below a centre; `kube` says which of all have an API server."""

    def __init__(self, place: DataDir, shape: TreeShape, kube: str | None = None) -> None:
        self.tiers = shape.tiers()
        self._place, self._shape = place, shape
        self._kube = TreeKube(place, shape, kube, SystemClock(), SystemDice()) if kube else None

    async def run(self, centre: Centre) -> None:
        """Run the centre and them until cancelled."""
        async with AsyncExitStack() as stack:
            clusters = {}
            if self._kube is not None:
                await stack.enter_async_context(self._kube.running(centre.progress))
                clusters = self._kube.spaces
                space = clusters[NodePath()]
                self._place.write_spaces(CentreSpaces((space,), (space,)))
            await LocalTree(self._shape, centre, clusters).run()


def local_daemon(
    place: DataDir,
    shape: TreeShape,
    kube: str | None = None,
    *,
    take_over: bool = False,
    health: HealthAddress | None = None,
) -> Daemon:
    """The daemon of a tree of this shape on a directory, which must be locked."""
    options = CentreOptions(take_over=take_over, relays=shape.relays())
    return Daemon(place, options, TreeHere(place, shape, kube), health)


def centre_member(
    place: DataDir,
    settings: MemberSettings,
    *,
    take_over: bool = False,
    health: HealthAddress | None = None,
) -> Member:
    """One member of a centre on its directory, which must be locked; nothing runs below it.

    With `take_over` its first tenure takes hubs of others that are silent, unless another member
    was active before that: who was told so, too, has done it.
    """
    clock, dice = SystemClock(), SystemDice()
    is_first = iter([take_over])

    def centre_of(member: ActiveMember, beside: RunBeside) -> Daemon:
        # Whoever took a hub from this tree after that is not to lose it again.
        takes = next(is_first, False) and not member.follows
        return Daemon(place, CentreOptions(take_over=takes, member=member, beside=beside))

    member = CentreMember(place, settings, clock, dice, centre_of)
    return Member(settings, member, clock, dice, health)


def relay_member(
    folder: Path, settings: MemberSettings, health: HealthAddress | None = None
) -> Member:
    """One member of a relay on its directory, which must be locked."""
    clock, dice = SystemClock(), SystemDice()
    return Member(settings, RelayMember(folder, settings, clock, dice), clock, dice, health)


def run_daemon(
    place: DataDir,
    shape: TreeShape,
    kube: str | None = None,
    *,
    take_over: bool = False,
    trios: bool = False,
    health: HealthAddress | None = None,
) -> int:
    """Run on the directory until a signal; the exit code. Errors are in the log.

    With `trios` the centre and the relays are processes of their own, three each.
    """

    def run() -> Coroutine[Any, Any, None]:
        if place.tree() is None:
            form = shape.form() | ({"kube": kube} if kube else {})
            place.write_tree(form | ({"members": MEMBERS} if trios else {}))
        if trios:
            return TrioDaemon(place, shape, kube, take_over=take_over, health=health).run()
        return _run_centre(place, shape, kube, take_over=take_over, health=health)

    return _run_logged(place, run)


async def _run_centre(
    place: DataDir,
    shape: TreeShape,
    kube: str | None,
    *,
    take_over: bool,
    health: HealthAddress | None = None,
) -> None:
    """Run what the directory is of, a centre alone or a member; it may become the other."""
    while True:
        end_broken_change(place)
        settings = kept_member(place.folder)
        if settings is None:
            run = local_daemon(place, shape, kube, take_over=take_over, health=health).run()
        else:
            run = run_centre_member(place, settings, take_over=take_over, health=health)
        # A task of its own: below Python 3.13 one counts as cancelled once a group of it failed.
        async with asyncio.TaskGroup() as group:
            group.create_task(run, name=str(place.folder))
        # It was said of the kind that it had.
        take_over = False


async def run_centre_member(
    place: DataDir,
    settings: MemberSettings,
    *,
    take_over: bool = False,
    health: HealthAddress | None = None,
) -> None:
    """Run a member of a centre until cancelled, or until the centre is to run here alone."""
    place.forget_ending()
    if is_moving_in(place.folder, settings.name):
        await bring_over(place, SystemClock(), SystemDice())
    try:
        await centre_member(place, settings, take_over=take_over, health=health).run()
    except* RunsAlone:
        end_membership(place)


def run_member(place: DataDir, *, take_over: bool = False) -> int:
    """Run the member of a node whose directory it is, as `run_daemon`."""

    def run() -> Coroutine[Any, Any, None]:
        settings = kept_member(place.folder)
        if settings is None:
            reason, remedy = f"it has no {MEMBER_FILE}", "name the data directory of a member"
            raise DataDirUnusable(place.folder, reason, remedy)
        return run_here(place, take_over=take_over)

    return _run_logged(place, run)


async def run_here(
    place: DataDir, health: HealthAddress | None = None, *, take_over: bool = False
) -> None:
    """Run the member whose directory it is, which must be locked, until cancelled.

    A centre may be told meanwhile to run here alone. Raises MemberUnusable and what ends it.
    """
    settings = kept_member(place.folder)
    if settings is not None and not settings.path.is_root:
        await relay_member(place.folder, settings, health).run()
        return
    if place.tree() is None:
        place.write_tree(CENTRE_ALONE.form())
    await _run_centre(place, CENTRE_ALONE, None, take_over=take_over, health=health)


def _run_logged(place: DataDir, run: Callable[[], Coroutine[Any, Any, None]]) -> int:
    # A log that cannot be written must not hide why.
    logging.raiseExceptions = False
    handler = RotatingFileHandler(place.log, maxBytes=LOG_BYTES_MAX, backupCount=1)
    set_up_logs(format_told(), [handler])
    try:
        with place.locked():
            log.info("starting, process %d", os.getpid())
            run_until_signal(attended(run(), ready=False))
    except EndedBySignal as end:
        log.info("stopped: %s", end)
        return 0
    except Exception as error:
        if os.environ.get("LEAFCAST_TRACEBACK"):
            log.exception("the daemon failed")
        for line in said(error):
            log.error("%s", line)  # noqa: TRY400 - its cause is said; the place is for us
            # The log may lie on the very disk that fails.
            sys.stderr.write(f"{line}\n")
        return 1
    return 0
