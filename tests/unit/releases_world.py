"""A small release for tests, its record, and keepers beside the nodes of a tree in memory."""

import asyncio
import fcntl
import hashlib
import json
import os
from contextlib import asynccontextmanager

from controllers.core.ledger.ledger import Draft, values_of
from leafcast.upgrades.keeper import ReleaseKeeper
from schemas.content.blobs import store
from schemas.records.records import API_RELEASE, ReleaseRecord, Source
from schemas.records.release_body import RELEASE, ReleaseBody, ReleasePiece, ReleaseWave
from schemas.releases.release_folder import LAUNCHER, LAUNCHER_LOCK, PINNED, WANTED
from schemas.values.identity import NodePath
from tests.memory_tree import memory_tree

PLATFORM = "linux-amd64"
MANIFEST = b'{"signed": "by the publisher"}'
PIECES = {PLATFORM: b"wheel of amd64" * 1000, "linux-arm64": b"wheel of arm64" * 1000}
STRETCH = 5000


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def release(version="9.0.0", *waves: ReleaseWave, pieces=PIECES):
    """The body of a release of two pieces, each of some stretches, and the blobs of it."""
    stored, listed = [store(RELEASE, MANIFEST)], []
    for platform, data in pieces.items():
        parts = [data[at : at + STRETCH] for at in range(0, len(data), STRETCH)]
        stored += [store(RELEASE, part) for part in parts]
        listed.append(ReleasePiece(sha256(data), len(data), (platform,), len(parts)))
    content = tuple(each.reference for each in stored)
    body = ReleaseBody(content, version, sha256(MANIFEST), tuple(listed), waves)
    return body, values_of(*stored)


def draft(tree, body, blobs):
    """The record of a release, to be issued."""
    source = Source(API_RELEASE, tree, "", "release")
    return Draft("delta", ReleaseRecord(source, 0, "", "", body), blobs=blobs)


class LauncherLock:
    """What a launcher holds as long as it runs; until it is closed, or nobody knows it."""

    def __init__(self, folder):
        self._lock = os.open(folder / LAUNCHER_LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def close(self):
        if self._lock >= 0:
            os.close(self._lock)
        self._lock = -1

    __del__ = close


class Places:
    """The folders that the nodes of a tree share with their launchers, and their keepers."""

    def __init__(self, folder):
        self.folder = folder
        self.keepers = {}
        self.locks = {}
        self._tree = self._group = None
        self._programs = {}

    def of(self, path):
        return self.folder / NodePath.parse(path).domain

    def launcher(self, path, running="1.0.0", state="healthy", program="", **more):
        """Say what a launcher says there; the publisher is pinned.

        It runs that, unless the program that runs still is another one.
        """
        folder = self.of(path)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / PINNED).write_text("{}")
        said = {"running": running, "former": "", "state": state, "why": "", "since": "", **more}
        draft = folder / "launcher.new"
        draft.write_text(json.dumps(said))
        draft.replace(folder / LAUNCHER)
        if path not in self.locks:
            self.locks[path] = LauncherLock(folder)
        node, former = NodePath.parse(path), self._programs.get(path, "1.0.0")
        self._programs[path] = program or running
        if node in self.keepers and self._programs[path] != former:
            self.keepers[node].cancel()
            self._keep(node)

    def end_launcher(self, path):
        """It runs no more; what it said lies there still."""
        self.locks.pop(path).close()

    def wanted(self, path):
        """What the launcher there is told to run; None if nothing."""
        file = self.of(path) / WANTED
        return json.loads(file.read_text())["version"] if file.exists() else None

    def attempt(self, path):
        """Which try of it the launcher there is told to make."""
        return json.loads((self.of(path) / WANTED).read_text())["attempt"]

    async def until_wanted(self, path, version):
        while self.wanted(path) != version:
            await asyncio.sleep(0.02)

    async def start(self, tree, group, paths):
        """Run keepers beside these nodes."""
        self._tree, self._group = tree, group
        for path in map(NodePath.parse, paths):
            self._keep(path)

    def _keep(self, path):
        """Run the keeper of the program that runs there."""
        keeper = ReleaseKeeper(
            self.folder / path.domain,
            self._programs.get(str(path), "1.0.0"),
            self._tree.clock,
            platform=PLATFORM,
            look_seconds=0.05,
            of_centre=path.is_root,
        )
        self.keepers[path] = self._group.create_task(keeper.run(self._tree.drivers[path]))


@asynccontextmanager
async def upgraded_tree(folder, paths):
    """A tree in memory with a keeper beside each of these nodes, and the centre."""
    async with memory_tree(folder / "tree", paths) as tree:
        places = Places(folder / "places")
        await places.start(tree, tree.group, ["/", *paths])
        try:
            yield tree, places
        finally:
            for task in places.keepers.values():
                task.cancel()


def told(tree):
    """By version, wanted version, wave and state: how many nodes the centre counts."""
    said = tree.centre.node.running().counts
    return {(it.version, it.wanted, it.wave, str(it.state)): it.count for it in said}


async def until_told(tree, met):
    """Wait until the centre's counts meet the condition; what they are then."""
    await tree.centre.until(lambda _: met(told(tree)))
    return told(tree)


def signed_manifest(version, pieces=PIECES, wire=(2, 2)):
    """A manifest as a publisher's file has it; nobody here looks at who signed it."""
    targets = {
        f"{platform}/leafcast-{version}-py3-none-{platform}.whl": {
            "length": len(data),
            "hashes": {"sha256": sha256(data)},
        }
        for platform, data in pieces.items()
    }
    own = {"version": version, "nats_server": "2.12.0", "upgrades_from": "0.1.0"}
    own["wire"] = [*wire]
    signed = {"_type": "targets", "targets": targets, "leafcast": own}
    return json.dumps({"signed": signed, "signatures": []})


def leafcast_release(version, *waves, **more):
    """An object that has the tree run a release."""
    listed = list(waves) or [{"name": "all", "percent": 100}]
    return {
        "apiVersion": "leafcast.io/v1alpha1",
        "kind": "LeafcastRelease",
        "metadata": {"name": version},
        "spec": {"version": version, "manifest": signed_manifest(version), "waves": listed, **more},
    }
