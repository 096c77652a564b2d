"""The process behind `up --members 3`: it keeps all members' processes, and runs the sites.

Members need nothing of it once they run: it starts those again that ended, and ends them with it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

from leafcast.ask.session import STANDING, CallFailed, NotRunning, open_session
from leafcast.daemon.process import TAKE_OVER
from leafcast.daemon.trios import MemberPlace, TrioPlaces
from leafcast.data_dir import DataDir
from leafcast.join.folder import GRANT_FILE
from leafcast.join.kept_grant import read_grant
from leafcast.local.tree_kube import TreeKube
from leafcast.local.views import TreeShape
from leafcast.node.attached_cluster import attachment
from leafcast.node.credentials.account_seeds import account_seeds
from leafcast.node.credentials.files import keep_seed
from leafcast.node.credentials.kept_store import keep_store, kept_store
from leafcast.node.freed_memory import give_back_freed
from leafcast.node.health_endpoint import HealthAddress, HealthEndpoint
from leafcast.node.options import EdgeCluster, NodeEnvironment, NodeIdentity, ParentAccess
from leafcast.node.runtime import NodeRuntime
from leafcast.space_settings import SIMULATED, CentreSpaces, SpaceSetting
from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.server.durability import DEFAULT_STORE
from relay.adapters.server.guard import ProcessGuard
from relay.adapters.server.logged_process import LoggedProcess
from relay.adapters.server.nats_config import ParentRemote
from schemas.values.identity import NodePath
from schemas.values.wording import many

AGAIN_SECONDS_MIN, AGAIN_SECONDS_MAX, CALM_SECONDS = 0.25, 10.0, 30.0
ACTIVE_SECONDS = 2.0
"""So often it is asked who is active, and so long it is waited for who says so."""
_PACKAGE = str(Path(__file__).resolve().parents[2])
_NOT_AWAITED = "\0"

log = logging.getLogger("leafcast.daemon")


class TrioDaemon:
    """One run of a tree of trios on one data directory, which must be locked.

    `kube` says which of its nodes have an API server, which outlives every member. With `take_over`
    the hubs of others that are silent become its own, at first. `health` is where it answers for
    all of them.
    """

    def __init__(
        self,
        place: DataDir,
        shape: TreeShape,
        kube: str | None = None,
        *,
        take_over: bool = False,
        health: HealthAddress | None = None,
    ) -> None:
        self._take_over, self._health = take_over, health
        self._none_active = "it is not known yet"
        self._place, self._shape = place, shape
        self._clock, self._dice = SystemClock(), SystemDice()
        self._places = TrioPlaces(place, shape)
        self._sites: dict[NodePath, NodeRuntime] = {}
        self._kube = TreeKube(place, shape, kube, self._clock, self._dice) if kube else None
        self._clusters: Mapping[NodePath, SpaceSetting] = self._kube.spaces if self._kube else {}
        self._store = DEFAULT_STORE
        self._state: dict[str, Any] = {"pid": os.getpid(), "ready": False, "doing": "starting"}

    async def run(self) -> None:
        """Keep the tree running until cancelled; raises what ends it, in groups."""
        self._say()
        try:
            async with AsyncExitStack() as stack:
                if self._kube is not None:
                    await stack.enter_async_context(self._kube.running(self._doing))
                    hub = self._clusters[NodePath()]
                    self._place.write_spaces(CentreSpaces((hub,), (hub,)))
                await self._run_nodes()
        finally:
            self._place.forget_daemon()

    async def _run_nodes(self) -> None:
        self._places.lay_out(self._dice)
        store = kept_store(self._place.folder)
        for member in self._places.each():
            keep_store(member.folder, store)
        self._store = store.settings()
        self._let_commands_in()
        async with ProcessGuard() as guard, asyncio.TaskGroup() as group:
            for member in self._places.each():
                group.create_task(self._keep(guard, member), name=str(member))
            for path in self._places.tiers()[-1]:
                site = self._sites[path] = self._site(guard, path)
                group.create_task(site.run(), name=str(path))
            group.create_task(self._announce(), name="announce")
            if (health := self._health) is not None:
                group.create_task(self._look_for_active(), name="active")
                endpoint = HealthEndpoint(self.unready, self._clock, health.port, health.host)
                group.create_task(endpoint.run(), name="health")
            group.create_task(give_back_freed(self._clock), name="memory")

    def _let_commands_in(self) -> None:
        """Commands ask at any member of the centre: whichever is active answers."""
        members = self._places.members(NodePath())
        folder = DataDir(members[0].folder).node(NodePath())
        seed = account_seeds(folder, self._dice).commands
        url = ",".join(members[0].settings().client_urls.values())
        self._place.write_admin({"url": url, "seed": seed})

    async def _keep(self, guard: ProcessGuard, member: MemberPlace) -> None:
        """Run a member's process, and again soon after it ended."""
        pause = AGAIN_SECONDS_MIN
        paths = [_PACKAGE, *filter(None, [os.environ.get("PYTHONPATH")])]
        own = [TAKE_OVER] if self._take_over and member.path.is_root else []
        while True:
            began = self._clock.now().seconds
            process = LoggedProcess(
                guard,
                [sys.executable, "-P", "-m", "leafcast.daemon", str(member.folder), *own],
                name=str(member),
                cwd=member.folder,
                says_ready=_NOT_AWAITED,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            )
            own = []
            try:
                await process.ended.wait()
            except asyncio.CancelledError:
                _say_ending(member)
                raise
            finally:
                await process.stop()
            for line in process.log:
                log.error("%s: %s", member, line)
            if self._clock.now().seconds - began > CALM_SECONDS:
                pause = AGAIN_SECONDS_MIN
            log.warning("%s ended; starting it again in %.1f s", member, pause)
            await self._clock.sleep(pause)
            pause = min(2 * pause, AGAIN_SECONDS_MAX)

    def _site(self, guard: ProcessGuard, path: NodePath) -> NodeRuntime:
        """An edge, which runs in this process; without an API server its cluster is simulated."""
        above = self._places.members(path.parent)
        grant = read_grant(above[0].folder / GRANT_FILE)
        credentials = self._places.credentials(path)
        assert credentials is not None, f"{path} was laid out"
        world = NodeEnvironment(
            guard, self._clock, self._dice, grant.tree, grant.roots, self._store
        )
        folder = self._place.node(path)
        link = ParentRemote(self._places.leaf_urls(path.parent), credentials.seed)
        return NodeRuntime(
            world,
            NodeIdentity(path, folder),
            ParentAccess(link, partial(keep_seed, folder, path)),
            EdgeCluster(attachment(self._clusters.get(path, SIMULATED))),
        )

    async def _announce(self) -> None:
        """Say how far the start is, and that the tree is up."""
        members = sum(1 for _ in self._places.each())
        self._doing(f"{many(members, 'member')} of the centre and the relays")
        if not self._sites:
            await self._until_answered()
        for path, site in self._sites.items():
            await site.until(lambda node: node.ready)
            log.info("%s is in session with its parent", path)
        tiers = self._places.tiers()
        self._state["nodes"] = [len(tier) for tier in tiers] if self._shape.nodes > 1 else []
        self._state.update(ready=True, doing="running")
        self._say()
        log.info("the tree is up: %s", many(1 + sum(map(len, tiers)), "node"))

    def unready(self) -> dict[str, str]:
        """What keeps the tree from its work now: see HealthEndpoint."""
        is_up = self._state["ready"]
        return {"tree": "" if is_up else str(self._state["doing"]), "members": self._none_active}

    async def _look_for_active(self) -> None:
        """Know whether a member of the centre is active, without end."""
        while True:
            try:
                async with open_session(self._place.folder) as session:
                    await session.call(STANDING, seconds=ACTIVE_SECONDS)
                self._none_active = ""
            except (CallFailed, NotRunning) as error:
                # The rest is for who asked for something.
                self._none_active = str(error).partition(";")[0]
            await self._clock.sleep(ACTIVE_SECONDS)

    async def _until_answered(self) -> None:
        """Wait until a member of the centre is active: no site is in session before that."""
        while True:
            with suppress(CallFailed, NotRunning):
                async with open_session(self._place.folder) as session:
                    await session.call("tree")
                    return
            await self._clock.sleep(AGAIN_SECONDS_MIN)

    def _doing(self, doing: str) -> None:
        log.info("%s", doing)
        self._state["doing"] = doing
        self._say()

    def _say(self) -> None:
        self._place.write_daemon(self._state)


def _say_ending(member: MemberPlace) -> None:
    """All members end with the tree: hubs of the centre are given back at once."""
    if member.path.is_root:
        # Without it another centre of the tree waits for as long as their leases are good.
        with suppress(OSError):
            DataDir(member.folder).say_ending()
