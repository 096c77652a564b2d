"""A region of three members with many edges loses the active one: until all are served again.

`python -m benchmarks.trio_region [EDGES] [TIMES]`: what is said is the worst of these times. The
members' processes are this module, too, called with a data directory. The same is done to a region
that runs once, by killing its server.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from benchmarks.counts import is_synced
from benchmarks.report import Report
from benchmarks.wide_tree import WideTree, clients_let_in
from controllers.issuing.nodes import add_node
from leafcast.daemon.local_daemon import run_member
from leafcast.daemon.trios import MEMBER_NAMES
from leafcast.data_dir import DataDir
from leafcast.join.folder import GRANT_FILE
from leafcast.join.kept_grant import KeptGrant, write_grant
from leafcast.join.relay_member import relay_state
from leafcast.members.layout import PortPool, copy_state, lay_out_members
from leafcast.members.settings import kept_member
from leafcast.node.credentials.account_seeds import account_seeds
from leafcast.node.known_children import KnownChildren
from leafcast.node.options import NodeEnvironment
from relay.adapters.server.guard import ProcessGuard
from relay.adapters.server.nkey_pairs import new_user_nkey
from schemas.values.identity import NodePath
from tests.memory_tree import config_map, placement
from tests.nats.chaos_member import Member, until
from tests.nats.trio_tree import role_of

EDGES, TIMES, LOOK_SECONDS, SERVED_SECONDS = 2000, 1, 0.2, 600.0
REST_SECONDS, HEARD_SECONDS = 10.0, 15.0


class TrioRegionTree(WideTree):
    """One whose only region is a trio, each member a process of its own."""

    def __init__(self, folder: Path, edges: int) -> None:
        super().__init__(folder, 1, edges)
        self.members: dict[str, Member] = {}

    async def _start_region(
        self, world: NodeEnvironment, region: NodePath, group: asyncio.TaskGroup
    ) -> asyncio.Task[None]:
        made = await add_node(self.controllers.issuer, region, self.dice.entropy(32), new_user_nkey)
        await self.centre.until(lambda node: region.name in node.children())
        parents = (self.nodes[NodePath()].server.leaf_url,)
        folders = {name: self.folder / f"{region.domain}-{name}" for name in MEMBER_NAMES}
        first, *others = folders.values()
        account_seeds(first / region.domain, self.dice)
        grant = KeptGrant(
            world.tree, region, relay=True, parents=parents, seed=made.seed, roots=world.roots
        )
        write_grant(first / GRANT_FILE, grant)
        lay_out_members(folders, region.domain, world.tree, region, self.dice, PortPool())
        for other in others:
            copy_state(first, other, relay_state(region))
        for name, folder in folders.items():
            self.members[name] = Member(
                str(region), folder, ["benchmarks.trio_region", str(folder)], {}
            )
            self.members[name].start()
        settings = kept_member(first)
        assert settings is not None
        server: Any = SimpleNamespace(url=",".join(settings.client_urls.values()), pid=os.getpid())
        self.nodes[region] = SimpleNamespace(server=server)  # type: ignore[assignment]
        await until(self.active, lambda: "no member is active", SERVED_SECONDS)
        return group.create_task(self._keep())

    async def _keep(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            for member in self.members.values():
                await member.stop()

    async def _until_known(self, region: NodePath) -> None:
        wanted = len(self.edges[region])

        def is_known() -> bool:
            folders = [member.node_folder for member in self.members.values()]
            return all(len(KnownChildren(folder).nkeys) == wanted for folder in folders)

        await until(is_known, lambda: "not all are known", SERVED_SECONDS)
        await asyncio.sleep(REST_SECONDS)

    def active(self) -> str:
        """The member that is active; "" if none is."""
        roles = {name: role_of(it)[1] for name, it in self.members.items() if it.process}
        return next((name for name, role in roles.items() if role == "is active"), "")


def _strike(tree: WideTree) -> None:
    """Lose the active member, process and server, or the server of the region that runs once."""
    if not isinstance(tree, TrioRegionTree):
        os.kill(tree.server(tree.regions[0]).pid, signal.SIGKILL)
        return
    member = tree.members[tree.active()]
    servers = member.server_pids()
    member.kill()
    for pid in servers:
        os.kill(pid, signal.SIGKILL)
    member.process = None


async def _lost(tree: WideTree, edges: int, text: str) -> dict[str, float]:
    """What happens until all are served again, without a change and then with one."""
    await tree.apply(config_map("one", "shop", text=text), placement("shop", "shop"))
    former = await tree.until("shop", lambda count: is_synced(count, edges), SERVED_SECONDS)
    await asyncio.sleep(REST_SECONDS)
    lines = ("mail", "welcomes", "reports")
    before = {line: await tree._said_to_edges(line) for line in lines}
    writes = await tree.cluster_writes()
    began = time.perf_counter()
    _strike(tree)
    while await tree._said_to_edges("welcomes") - before["welcomes"] < edges:
        assert time.perf_counter() - began < SERVED_SECONDS, "not all edges are welcomed again"
        await asyncio.sleep(LOOK_SECONDS)
    heard = time.perf_counter() - began
    await asyncio.sleep(REST_SECONDS)
    after = {line: await tree._said_to_edges(line) - before[line] for line in lines}
    after["writes"] = await tree.cluster_writes() - writes
    changed = time.perf_counter()
    await tree.apply(config_map("one", "shop", text=f"{text}, again"))
    await tree.until("shop", lambda count: is_synced(count, edges, former), SERVED_SECONDS)
    return {"heard": heard, "changed": time.perf_counter() - changed, **after}


async def _stands_again(tree: WideTree) -> None:
    """Wait until nothing is lost any more that was."""
    if not isinstance(tree, TrioRegionTree):
        return
    for member in tree.members.values():
        if member.process is None:
            member.start()
            is_back = lambda m=member: role_of(m)[1] == "stands by"  # noqa: E731
            await until(is_back, lambda: "it does not stand by", SERVED_SECONDS)
    await asyncio.sleep(REST_SECONDS)


async def measure(tree: WideTree, edges: int, times: int) -> dict[str, float]:
    worst: dict[str, float] = {}
    async with ProcessGuard() as guard, asyncio.TaskGroup() as group:
        tasks = await tree.start(group, guard)
        try:
            for number in range(times):
                seen = await _lost(tree, edges, f"change {number}")
                print({name: round(value, 2) for name, value in seen.items()}, flush=True)
                worst = {name: max(seen[name], worst.get(name, 0.0)) for name in seen}
                await _stands_again(tree)
            return worst
        finally:
            await tree.stop(tasks)


async def main(edges: int, times: int) -> None:
    columns = ("a region", "heard again, s", "mail", "reports", "writes", "a change after, s")
    report = Report("trio_region", f"{edges} edges lose the active member of their region", columns)
    seen: dict[str, float] = {}
    for name in ("once", "trio"):
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            tree = TrioRegionTree(place, edges) if name == "trio" else WideTree(place, 1, edges)
            seen = await measure(tree, edges, times)
        report.row(name, *(seen[it] for it in ("heard", "mail", "reports", "writes", "changed")))
    report.goal("seconds until all are heard again", seen["heard"], HEARD_SECONDS)
    report.goal("mail judged again, an edge", seen["mail"] / edges, 0)
    report.goal("objects written again, an edge", seen["writes"] / edges, 0)
    report.goal("reports said again, an edge", seen["reports"] / edges, 1)
    report.finish()


if __name__ == "__main__":
    if sys.argv[1:] and not sys.argv[1].isdigit():
        with clients_let_in():
            sys.exit(run_member(DataDir(Path(sys.argv[1]))))
    given = [*map(int, sys.argv[1:]), *(EDGES, TIMES)[len(sys.argv) - 1 :]]
    asyncio.run(main(*given))
