"""The daemon of a tree on this machine, with all its nodes in one program: what `up` starts."""

from __future__ import annotations

import logging
import os
import sys
from contextlib import AsyncExitStack
from logging.handlers import RotatingFileHandler

from leafcast.centre.centre import Centre, CentreOptions
from leafcast.daemon.centre_member import CentreMember
from leafcast.daemon.daemon import Daemon
from leafcast.daemon.logs import set_up_logs
from leafcast.data_dir import DataDir
from leafcast.errors import said
from leafcast.local.tree import LocalTree
from leafcast.local.tree_kube import TreeKube
from leafcast.local.views import TreeShape
from leafcast.members.member import Member
from leafcast.members.settings import MemberSettings, kept_member
from leafcast.node.options import ActiveMember
from leafcast.signals import EndedBySignal, run_until_signal
from leafcast.space_settings import CentreSpaces
from relay.adapters.clock import SystemClock, SystemDice
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
    place: DataDir, shape: TreeShape, kube: str | None = None, *, take_over: bool = False
) -> Daemon:
    """The daemon of a tree of this shape on a directory, which must be locked."""
    options = CentreOptions(take_over=take_over, relays=shape.relays())
    return Daemon(place, options, TreeHere(place, shape, kube))


def centre_member(place: DataDir, settings: MemberSettings, *, take_over: bool = False) -> Member:
    """One member of a centre on its directory, which must be locked; nothing runs below it."""
    clock, dice = SystemClock(), SystemDice()

    async def start(member: ActiveMember) -> None:
        await Daemon(place, CentreOptions(take_over=take_over, member=member)).run()

    return Member(settings, CentreMember(place, settings, dice, start), clock, dice)


def run_daemon(
    place: DataDir, shape: TreeShape, kube: str | None = None, *, take_over: bool = False
) -> int:
    """Run on the directory until a signal; the exit code. Errors are in the log."""
    # A log that cannot be written must not hide why.
    logging.raiseExceptions = False
    handler = RotatingFileHandler(place.log, maxBytes=LOG_BYTES_MAX, backupCount=1)
    set_up_logs("text", [handler])
    try:
        with place.locked():
            if place.tree() is None:
                place.write_tree(
                    {
                        "shape": [shape.regions, shape.sites, shape.depth],
                        **({"kube": kube} if kube else {}),
                    }
                )
            log.info("starting, process %d", os.getpid())
            settings = kept_member(place.folder)
            if settings is None:
                run_until_signal(local_daemon(place, shape, kube, take_over=take_over).run())
            else:
                run_until_signal(centre_member(place, settings, take_over=take_over).run())
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
