"""Scenes on a tree in memory: real controllers, relays and syncers, and minutes that are leapt.

The figures are those that a node's health port shows, written as it writes them. There is no
nats-server and no process of a node: `leafcast_nats_up` and `process_*` are left out.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leafcast.centre.centre_readings import centre_readings
from leafcast.metrics.exposition import exposed
from leafcast.metrics.reading import MetricReading
from leafcast.node.node_readings import EdgeFigures, NodeFigures, node_readings
from leafcast.node.process_readings import process_readings
from leafcast.node.runtime import NOT_IN_SESSION
from relay.adapters.jetstream.member_presence import ACTIVE
from relay.space_errors import SpaceError
from schemas.values.identity import NodePath
from tests.alert_scenes.series import Series
from tests.doubles.memory.keeping_back import KeepingBack
from tests.doubles.memory_space import MemorySpace
from tests.leaping_time import LeapingLoop
from tests.memory_tree import MANAGER, MemoryTree, config_map, inventory, memory_tree, placement

REGION, ONE, TWO = (NodePath.parse(path) for path in ("/r1", "/r1/s1", "/r1/s2"))
PATHS = ("/r1", "/r1/s1", "/r1/s2")
EDGES_OF_A_LAG = 1_001
DISK_BYTES, FILLING_BYTES = 300_000_000, 150_000_000
_NOT_THERE = re.compile(r"^(?:leafcast_nats_up|process_\w+)[ {].*\n", re.MULTILINE)


class Cluster(MemorySpace):
    """Of an edge: refuses all, once it is told why."""

    def __init__(self, clock, dice) -> None:
        super().__init__(clock, dice)
        self.refuses = ""

    async def apply(self, obj, manager, **options):
        if self.refuses:
            raise SpaceError("Forbidden", self.refuses)
        return await super().apply(obj, manager, **options)


class Hub(MemorySpace):
    """Of the centre: may hang as a status is written."""

    def __init__(self, clock, dice) -> None:
        super().__init__(clock, dice)
        self.answers = asyncio.Event()
        self.answers.set()

    async def set_status(self, key, status):
        await self.answers.wait()
        return await super().set_status(key, status)


@dataclass
class Scene:
    """A tree that is watched: each minute its figures are scraped."""

    tree: MemoryTree
    hub: Hub
    # That of the first edge.
    cluster: Cluster
    series: Series = field(default_factory=Series)

    async def pass_minutes(
        self, count: int, meanwhile: Callable[[int], Awaitable[None]] | None = None
    ) -> None:
        """Let so many minutes pass, and do something in each."""
        for number in range(count):
            self._scrape()
            if meanwhile is not None:
                await meanwhile(number)
            await asyncio.sleep(60)

    def _scrape(self) -> None:
        """Of one process with all nodes but the first edge, which has one of its own."""
        tree = self.tree
        readings = [*process_readings(tree.controllers.unready(), ACTIVE)]
        readings += centre_readings(tree.controllers)
        for path in tree.drivers.keys() - {ONE}:
            readings += self._of_node(path)
        session = "" if tree.drivers[ONE].node.ready else NOT_IN_SESSION
        checks = {"session": session, "cluster": tree.syncers[ONE].unready}
        own = [*process_readings(checks, ACTIVE), *self._of_node(ONE)]
        for instance, shown in (("tree", readings), ("edge", own)):
            text = exposed(shown, "")[1].decode()
            self.series.scrape(_NOT_THERE.sub("", text), instance)
        self.series.end()

    def _of_node(self, path: NodePath) -> Iterator[MetricReading]:
        syncer = self.tree.syncers.get(path)
        edge = EdgeFigures(syncer.applied, syncer.kept, syncer.results) if syncer else None
        role = "centre" if path.is_root else "edge" if edge else "relay"
        driver = self.tree.drivers[path]
        return node_readings(NodeFigures(str(path), role, self.tree.folder, driver, edge))

    @property
    def liar(self) -> KeepingBack:
        """The bus of the region."""
        bus = self.tree.network.bus(REGION)
        assert isinstance(bus, KeepingBack)
        bus.lied_to = ONE.name
        return bus

    async def change(self, number: int) -> None:
        """A new version of the shop."""
        await self.tree.apply(config_map("settings", "shop", a=f"v{number}"))


async def all_is_well(scene: Scene) -> None:
    """A change each minute."""
    await scene.pass_minutes(45, scene.change)


async def node_away(scene: Scene) -> None:
    """The link of an edge is cut for half an hour."""
    await scene.pass_minutes(5)
    scene.tree.network.cut(ONE)
    await scene.pass_minutes(30)
    scene.tree.network.heal(ONE)
    await scene.pass_minutes(15)


async def old_view(scene: Scene) -> None:
    """A relay keeps all snapshots from an edge, and later shows them again."""
    await scene.pass_minutes(2)
    scene.liar.show_no_newer()
    await scene.pass_minutes(40)
    scene.liar.show_all()
    await scene.pass_minutes(15)


async def records_altered(scene: Scene) -> None:
    """A relay alters what the centre signed, once."""
    await scene.pass_minutes(5)
    scene.liar.altered = {await scene.tree.placement_key("shop")}
    await scene.change(1)
    await scene.pass_minutes(3)
    scene.liar.show_all()
    await scene.change(2)
    await scene.pass_minutes(25)


async def mail_unread(scene: Scene) -> None:
    """A region that is away for twenty minutes gets a thousand edges meanwhile."""
    await scene.pass_minutes(2)
    scene.tree.network.cut(REGION)
    for number in range(EDGES_OF_A_LAG):
        target, _ = inventory([REGION.child(f"new-{number}")])
        await scene.tree.inventory.apply(target, MANAGER)
    await scene.tree.controllers.caught_up()
    await scene.pass_minutes(20)
    scene.tree.network.heal(REGION)
    await scene.pass_minutes(5)


async def objects_refused(scene: Scene) -> None:
    """A cluster refuses the new version for half an hour, for want of quota."""
    cluster = scene.cluster
    await scene.pass_minutes(3)
    cluster.refuses = "exceeded quota: object-counts"
    await scene.change(1)
    await scene.pass_minutes(30)
    cluster.refuses = ""
    await scene.pass_minutes(10)


async def record_kept_back(scene: Scene) -> None:
    """A relay keeps the new version from an edge for three quarters of an hour."""
    await scene.pass_minutes(3)
    scene.liar.all_of = {await scene.tree.placement_key("shop")}
    await scene.change(1)
    await scene.pass_minutes(45)
    scene.liar.show_all()
    await scene.pass_minutes(10)


async def link_flaps(scene: Scene) -> None:
    """A link is cut for seventy seconds of each three minutes, just as a change goes out."""
    await scene.pass_minutes(3, scene.change)

    async def change(number: int) -> None:
        if number % 3 == 0:
            scene.tree.network.cut(ONE)
            await scene.change(100 + number)
            await asyncio.sleep(70)
            scene.tree.network.heal(ONE)

    await scene.pass_minutes(30, change)
    await scene.pass_minutes(15, scene.change)


async def hub_hangs(scene: Scene) -> None:
    """The centre's hub takes no status for a quarter of an hour."""
    await scene.pass_minutes(3)
    hub = scene.hub
    hub.answers.clear()
    await scene.tree.apply(placement("another", "shop"))
    await scene.pass_minutes(15)
    hub.answers.set()
    await scene.pass_minutes(5)


async def person_waited_for(scene: Scene) -> None:
    """A Rollout waits for approval, and another one is not valid: played at one minute an hour."""
    scene.series.interval = "1h"
    await scene.pass_minutes(2)
    await scene.tree.apply(rollout(approval="before"))
    await scene.pass_minutes(1)
    await scene.change(1)
    await scene.pass_minutes(27)
    await scene.tree.apply(rollout())
    await scene.pass_minutes(3)


def rollout(**wave: str) -> dict[str, Any]:
    """Of the shop, in one wave."""
    return {
        "apiVersion": "leafcast.io/v1alpha1",
        "kind": "Rollout",
        "metadata": {"name": "shop"},
        "spec": {
            "placement": {"kind": "EdgePlacement", "name": "shop"},
            "waves": [{"name": "all", "percent": 100, **wave}],
        },
    }


async def disk_filled(scene: Scene) -> None:
    """The disk of a folder is nearly full for ten minutes; it is one of 300 MB."""
    await scene.pass_minutes(3)
    filling = scene.tree.folder / "filling"
    filling.write_bytes(bytes(FILLING_BYTES))
    await scene.pass_minutes(10)
    filling.unlink()
    await scene.pass_minutes(3)


SCENES: Mapping[str, Callable[[Scene], Awaitable[None]]] = {
    told.__name__.replace("_", "-"): told
    for told in (
        all_is_well,
        node_away,
        old_view,
        records_altered,
        mail_unread,
        objects_refused,
        record_kept_back,
        link_flaps,
        hub_hangs,
        person_waited_for,
        disk_filled,
    )
}


async def _scraped(told: Callable[[Scene], Awaitable[None]]) -> Series:
    made: list[Scene] = []

    def prepare(tree: MemoryTree) -> None:
        scene = Scene(tree, Hub(tree.clock, tree.dice), Cluster(tree.clock, tree.dice))
        tree.workloads, tree.spaces[ONE] = scene.hub, scene.cluster
        made.append(scene)

    with disk() as folder:
        async with memory_tree(folder, PATHS, KeepingBack, prepare) as tree:
            await tree.apply(placement("shop", "shop"), config_map("settings", "shop", a="v0"))
            await tree.until("shop", lambda c: c.exact and c.summary.states == {"synced": 2})
            [scene] = made
            await told(scene)
            return scene.series


@contextmanager
def disk() -> Iterator[Path]:
    """A small disk of its own; only root may have one."""
    with tempfile.TemporaryDirectory() as folder:
        size = f"size={DISK_BYTES}"
        subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", folder], check=True)
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", folder], check=True)


def has_disks() -> bool:
    """Whether a disk may be mounted here."""
    try:
        with disk():
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


def scraped(name: str) -> Series:
    """What is scraped of a scene as it is played now."""
    with asyncio.Runner(loop_factory=LeapingLoop) as runner:
        return runner.run(_scraped(SCENES[name]))
