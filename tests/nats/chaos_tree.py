"""A tree of real processes for chaos tests: a centre's daemon, and a `leafcast join` for each node.

Each process has a nats-server of its own beside it. What an edge holds is read from its own server,
so that it is known whoever else is away. ConfigMaps stand for workloads: nothing but the syncer
writes them, so that each write to an edge's space is one that the syncer made.
"""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from leafcast.bundle import read_bundle, write_bundle
from leafcast.data_dir import DataDir
from leafcast.session import CallFailed, NotRunning, open_session
from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.embedded_space import EmbeddedSpace
from relay.adapters.request_reply import CannotConnect, brief_connection
from relay.ports import SpaceError
from schemas.identity import NodePath
from schemas.objects import ObjectKey
from tests.nats.chaos_link import Wire

ROOT = Path(__file__).resolve().parents[2]
WAIT_SECONDS = 60
LOOK_SECONDS = 0.03
PRODUCTION = {"env": "prod"}
KILLED, PAUSED, GOES_ON = signal.SIGKILL, signal.SIGSTOP, signal.SIGCONT


@dataclass(frozen=True)
class Stored:
    """One object as a space holds it: written again it has another version, made anew another uid."""

    value: str
    uid: str
    version: str


@dataclass(frozen=True)
class Space:
    """All ConfigMaps of a space by name, and how many writes it ever saw."""

    objects: Mapping[str, Stored]
    writes: int

    @property
    def values(self) -> dict[str, str]:
        return {name: stored.value for name, stored in self.objects.items()}


class Member:
    """One node's process, its folder, and its server's process."""

    def __init__(self, path: str, folder: Path, command: list[str], settings: Mapping) -> None:
        self.path = NodePath.parse(path)
        self.folder = folder
        self.command = command
        self.settings = dict(settings)
        self.process: subprocess.Popen | None = None
        self.wire: Wire | None = None
        self.log = folder.with_name(f"{folder.name}.log")

    @property
    def node_folder(self) -> Path:
        return DataDir(self.folder).node(self.path)

    @property
    def said(self) -> str:
        return self.log.read_text() if self.log.exists() else ""

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.nats.chaos_node", json.dumps(self.settings)]
                + self.command,
                env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=ROOT,
                start_new_session=True,
            )

    def kill(self, number: int = KILLED) -> None:
        """Send the node's process a signal; the guardian then ends the server of one that died."""
        self.process.send_signal(number)

    async def ended(self) -> int:
        """Wait until the process is gone, and its server with it; its exit code."""
        await until(lambda: self.process.poll() is not None, lambda: self.said[-2000:])
        await until(lambda: not self.server_pids(), lambda: f"a server of {self.path} runs on")
        return self.process.returncode

    async def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            for pid in self.server_pids():
                os.kill(pid, signal.SIGCONT)
            self.process.terminate()
            await self.ended()

    async def restart(self) -> None:
        await self.stop()
        self.start()

    def server_pids(self) -> list[int]:
        """The processes of the node's nats-server."""
        config = os.fsencode(self.node_folder / "nats.conf")
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    words = (entry / "cmdline").read_bytes().split(b"\0")
                except OSError:
                    continue
                if config in words and b"nats-server" in words[0]:
                    found.append(int(entry.name))
        return found

    def strike_server(self, number: int = KILLED) -> None:
        for pid in self.server_pids():
            os.kill(pid, number)

    def rss_bytes(self) -> int:
        """Resident memory of the node: its process and its server."""
        pages = 0
        for pid in (self.process.pid, *self.server_pids()):
            pages += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def stored_bytes(self) -> int:
        """What the server's store takes on disk."""
        files = (self.node_folder / "jetstream").rglob("*")
        return sum(file.stat().st_size for file in files if file.is_file())

    @asynccontextmanager
    async def client(self, account: str = "space"):
        ports = json.loads((self.node_folder / "ports.json").read_text())
        seed = json.loads((self.node_folder / "accounts.json").read_text())[account]
        url = f"nats://127.0.0.1:{ports['client']}"
        async with brief_connection(url, seed, "chaos test") as client:
            yield client

    @asynccontextmanager
    async def space(self):
        """The edge's own cluster, as someone with access to it sees it."""
        async with self.client() as client:
            clock, dice = SystemClock(), SystemDice()
            yield EmbeddedSpace(client, "wec", clock, dice, domain=self.path.domain)

    async def look(self) -> Space:
        """What its cluster holds now; raises what tells that its server is away."""
        async with self.space() as space:
            listing = await space.list("", "configmaps")
        objects = {
            obj["metadata"]["name"]: Stored(
                obj["data"]["value"], obj["metadata"]["uid"], obj["metadata"]["resourceVersion"]
            )
            for obj in listing.objects
        }
        return Space(objects, int(listing.revision.partition(".")[0]))


AWAY = (CannotConnect, SpaceError, OSError, KeyError, CallFailed, NotRunning, TimeoutError)


@dataclass
class ChaosTree:
    """The tree below `folder`; `wanted` is what each placement's objects should be now."""

    folder: Path
    settings: Mapping[str, object] = field(default_factory=dict)
    members: dict[str, Member] = field(default_factory=dict)
    wanted: dict[str, dict[str, str]] = field(default_factory=dict)

    async def start(self) -> None:
        """Start the centre alone."""
        folder = self.folder / "tree"
        self.add("/", folder, ["leafcast.daemon", str(folder), "0", "1", "3"])
        self.members["/"].start()
        await self.serving()

    def add(self, path: str, folder: Path, command: list[str], settings: Mapping = {}) -> Member:
        member = Member(path, folder, command, {**self.settings, **settings})
        self.members[path] = member
        return member

    async def close(self) -> None:
        for member in reversed(self.members.values()):
            await member.stop()
            if member.wire is not None:
                await member.wire.close()

    @property
    def centre(self) -> Member:
        return self.members["/"]

    @asynccontextmanager
    async def session(self):
        async with open_session(self.centre.folder) as session:
            yield session

    async def call(self, verb: str, **arguments: object):
        """Have the daemon do something, waiting out its starts."""
        return await patiently(self._call, verb, arguments)

    async def _call(self, verb: str, arguments: Mapping):
        async with self.session() as session:
            return await session.call(verb, **arguments)

    async def serving(self) -> None:
        await self.call("tree")

    async def bundle(
        self, path: str, *, relay: bool = False, labels: Mapping | None = None
    ) -> Path:
        given = {} if relay else {"labels": dict(PRODUCTION if labels is None else labels)}
        made = await self.call("node-add", path=path, relay=relay, **given)
        file = self.folder / f"{path.strip('/').replace('/', '-')}-{time.monotonic_ns()}.json"
        file.write_text(made["bundle"])
        return file

    async def join(
        self,
        path: str,
        *,
        relay: bool = False,
        wired: bool = False,
        labels: Mapping | None = None,
        settings: Mapping = {},
    ) -> Member:
        """Start a new node; `wired` puts a wire between it and its parent."""
        file = await self.bundle(path, relay=relay, labels=labels)
        wire = await self.lay(file) if wired else None
        folder = self.folder / path.strip("/").replace("/", "-")
        command = ["leafcast", "join", str(file), "--data-dir", str(folder)]
        member = self.add(path, folder, command, settings)
        member.wire = wire
        member.start()
        return member

    async def lay(self, file: Path) -> Wire:
        """Have a bundle lead its node over a wire."""
        bundle = read_bundle(file)
        wire = Wire(int(bundle.parents[0].rpartition(":")[2]))
        await wire.open()
        write_bundle(file, replace(bundle, parents=(wire.url,)))
        return wire

    async def place(self, placement: str, selector: Mapping = PRODUCTION) -> None:
        """Have a placement select its objects, and the edges with these labels."""
        self.wanted.setdefault(placement, {})
        await self.apply(placement_object(placement, selector))

    async def put(self, placement: str, **values: str) -> None:
        self.wanted[placement].update(values)
        await self.apply(*(config_map(placement, *item) for item in values.items()))

    async def drop(self, placement: str, *names: str) -> None:
        for name in names:
            del self.wanted[placement][name]
        await self.delete(*(ObjectKey("", "configmaps", "default", name) for name in names))

    async def withdraw(self, placement: str) -> None:
        """Delete a placement; its objects stay in the centre's space."""
        del self.wanted[placement]
        await self.delete(ObjectKey("edge.kubestellar.io", "edgeplacements", "", placement))

    async def apply(self, *objects: Mapping) -> None:
        async def once() -> None:
            async with self.session() as session:
                for obj in objects:
                    await session.workloads.apply(obj, "leafcast-apply")

        await patiently(once)

    async def delete(self, *keys: ObjectKey) -> None:
        async def once() -> None:
            async with self.session() as session:
                for key in keys:
                    await session.workloads.delete(key)

        await patiently(once)

    def meant(self, *placements: str) -> dict[str, str]:
        """What the objects of these placements should be, of all of them if none is named."""
        chosen = placements or tuple(self.wanted)
        return {name: value for one in chosen for name, value in self.wanted[one].items()}

    async def exact(self, paths: Iterable[str], *placements: str, seconds: float = WAIT_SECONDS):
        """Wait until these edges hold exactly what they should; `{path: Space}`."""
        return {p: await self.holds(p, self.meant(*placements), seconds) for p in paths}

    async def holds(self, path: str, values: Mapping[str, str], seconds: float = WAIT_SECONDS):
        """Wait until an edge holds exactly these values; what it holds then."""
        until_s, seen, member = time.monotonic() + seconds, None, self.members[path]
        while True:
            try:
                seen = await member.look()
            except AWAY as error:
                seen = error
            if isinstance(seen, Space) and seen.values == values:
                return seen
            if time.monotonic() > until_s:
                raise AssertionError(f"{path}: {seen}, not {values}\n{member.said[-3000:]}")
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self, paths: Iterable[str]) -> dict[str, Space]:
        return {path: await self.members[path].look() for path in paths}

    async def counted(self, placement: str, **states: int) -> dict:
        """Wait until the centre's counts are complete and say so; the placement's form."""
        found: dict = {}

        async def met() -> bool:
            try:
                form = (await self._call("status", {"placement": placement}))["placements"][0]
            except AWAY:
                return False
            found.update(form)
            return form["complete"] and {k: v for k, v in form["states"].items() if v} == states

        await until(met, lambda: f"{placement}: {found}, not {states}")
        return found


def placement_object(name: str, selector: Mapping) -> dict:
    clause = {
        "apiGroup": "",
        "resources": ["configmaps"],
        "namespaces": ["default"],
        "labelSelectors": [{"matchLabels": {"of": name}}],
    }
    return {
        "apiVersion": "edge.kubestellar.io/v2alpha1",
        "kind": "EdgePlacement",
        "metadata": {"name": name},
        "spec": {"locationSelectors": [{"matchLabels": dict(selector)}], "downsync": [clause]},
    }


def config_map(placement: str, name: str, value: str) -> dict:
    metadata = {"name": name, "namespace": "default", "labels": {"of": placement}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value}}


async def until(met, what=lambda: "it did not come to be", seconds: float = WAIT_SECONDS) -> float:
    """Wait until a condition holds; how long that took, in seconds."""
    began = time.monotonic()
    while True:
        result = met()
        if await result if asyncio.iscoroutine(result) else result:
            return time.monotonic() - began
        assert time.monotonic() - began < seconds, what()
        await asyncio.sleep(LOOK_SECONDS)


async def patiently(work, *arguments):
    """Do it again until nothing on the way is away."""
    end = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            return await work(*arguments)
        except AWAY:
            if time.monotonic() > end:
                raise
        await asyncio.sleep(LOOK_SECONDS)


def copy_folder(source: Path, target: Path) -> None:
    """A backup of a node's disk, or its return."""
    if target.exists():
        shutil.rmtree(target)
    shutil.copytree(source, target)
