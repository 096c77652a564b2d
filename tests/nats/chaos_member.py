"""One node of a chaos tree: its process, the nats-server beside it, and what its cluster holds."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from nats.js.errors import NotFoundError

from leafcast.data_dir import DataDir
from leafcast.join.folder import GRANT_FILE
from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.jetstream.request_reply import brief_connection
from relay.adapters.spaces.embedded_space import EmbeddedSpace
from schemas.values.identity import NodePath
from tests.awaiting import eventually
from tests.nats.chaos_link import Wire
from tests.nats.server_heap import ServerHeap, server_heap

ROOT = Path(__file__).resolve().parents[2]
WAIT_SECONDS = 60
LOOK_SECONDS = 0.03
_LIFE = os.pipe()
LIFELINE = _LIFE[0]
"""The writing end is ours alone, so whatever a test started with it as its input sees our end."""
KILLED, PAUSED, GOES_ON = signal.SIGKILL, signal.SIGSTOP, signal.SIGCONT


@dataclass(frozen=True)
class Stored:
    """One object in a space: written again it has another version, made anew another uid."""

    value: str
    uid: str
    version: str


@dataclass(frozen=True)
class Space:
    """All ConfigMaps of a space by name, how many writes it ever saw, and what it was asked for.

    `asked` is how often its node wanted each applied, or deleted ("-" and its name), also where
    nothing differed.
    """

    objects: Mapping[str, Stored]
    writes: int
    asked: Counter[str]

    @property
    def values(self) -> dict[str, str]:
        return {name: stored.value for name, stored in self.objects.items()}


class Member:
    """One node's process, its folder, and its server's process."""

    def __init__(self, path: str, folder: Path, command: list[str], settings: Mapping) -> None:
        self.path = NodePath.parse(path)
        self.folder = folder
        self.command = command
        self.tally = folder.with_name(f"{folder.name}.tally")
        self.clock = folder.with_name(f"{folder.name}.clock")
        self.counts = folder.with_name(f"{folder.name}.counts")
        told = {"tally": self.tally, "clock": self.clock, "counts": self.counts}
        self.settings = {**settings, **{name: str(file) for name, file in told.items()}}
        self.process: subprocess.Popen | None = None
        self.wire: Wire | None = None
        self.group: int | None = None
        self.log = folder.with_name(f"{folder.name}.log")

    @property
    def node_folder(self) -> Path:
        return DataDir(self.folder).node(self.path)

    @property
    def said(self) -> str:
        return self.log.read_text() if self.log.exists() else ""

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        program = [sys.executable, "-m", "tests.nats.chaos_node", json.dumps(self.settings)]
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                [*program, *self.command],
                env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
                stdin=LIFELINE,
                stdout=output,
                stderr=output,
                cwd=ROOT,
                start_new_session=True,
                group=self.group,
            )

    def kill(self, number: int = KILLED) -> None:
        """Send the node's process a signal; the guardian then ends the server of one that died."""
        self.process.send_signal(number)

    def set_clock(self, ahead_ms: int) -> None:
        """From now on its wall clock is so far ahead of the machine's, and of all others."""
        self.clock.write_text(str(ahead_ms))
        self.kill(signal.SIGUSR1)

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

    def wipe(self) -> None:
        """Lose the disk, all but what the node was granted."""
        kept = (self.folder / GRANT_FILE).read_bytes()
        shutil.rmtree(self.folder)
        self.folder.mkdir()
        (self.folder / GRANT_FILE).write_bytes(kept)

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

    def strike_machine(self) -> None:
        """Kill the node's process and its server at once."""
        servers = self.server_pids()
        self.kill()
        for pid in servers:
            os.kill(pid, KILLED)

    def strike_server(self, number: int = KILLED) -> None:
        for pid in self.server_pids():
            os.kill(pid, number)

    def memory(self) -> tuple[int, int]:
        """Resident bytes of the node's process, and of its server."""
        node, server = (
            sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids)
            for pids in ([self.process.pid], self.server_pids())
        )
        size = os.sysconf("SC_PAGE_SIZE")
        return node * size, server * size

    async def held(self) -> dict[str, int]:
        """What the process holds by its own count, and the open files of it and of its server."""
        self.counts.unlink(missing_ok=True)
        self.kill(signal.SIGUSR2)
        await until(self.counts.exists, lambda: f"{self.path} does not count")
        pids = [self.process.pid, *self.server_pids()]
        files = sum(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in pids)
        threads = len(list(Path(f"/proc/{self.process.pid}/task").iterdir()))
        return {**json.loads(self.counts.read_text()), "files": files, "threads": threads}

    async def server_heap(self) -> ServerHeap:
        """What its server holds in memory, and what of that are buffers of its streams."""
        async with self.client("system") as system:
            return await server_heap(system)

    async def kept(self) -> dict[str, int]:
        """How many streams and consumers its server has."""
        found = Counter[str]()
        for account in ("relay", "space"):
            async with self.client(account) as client:
                info = await client.jetstream().account_info()
            found.update(streams=info.streams, consumers=info.consumers)
        return dict(found)

    def stored_bytes(self) -> int:
        """What the server's store takes on disk."""
        total = 0
        for folder, _, names in os.walk(self.node_folder / "jetstream"):
            for name in names:
                with suppress(FileNotFoundError):  # The server removes files as we look.
                    total += (Path(folder) / name).stat().st_size
        return total

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

    async def generations(self) -> dict[str, int]:
        """The generation of each record in the node's OWN, by the record's key."""
        async with self.client("relay") as client:
            stream = client.jetstream()
            prefix = f"{self.path.prefix}._own."
            info = await stream.stream_info("OWN", subjects_filter=f"{prefix}>")
            found = {}
            for subject in info.state.subjects or {}:
                try:
                    headers = (await stream.get_last_msg("OWN", subject)).headers or {}
                except NotFoundError:
                    continue  # It was erased since its name was listed.
                if "Lc-Gen" in headers:
                    found[subject.removeprefix(prefix)] = int(headers["Lc-Gen"])
        return found

    async def look(self) -> Space:
        """What its cluster holds now; raises what tells that its server is away."""
        async with self.space() as space:
            while True:
                listing = await space.list("", "configmaps")
                writes = await space._bucket.last_revision()
                if listing.revision.startswith(f"{writes}."):
                    break
        objects = {
            obj["metadata"]["name"]: Stored(
                obj["data"]["value"], obj["metadata"]["uid"], obj["metadata"]["resourceVersion"]
            )
            for obj in listing.objects
        }
        asked = self.tally.read_text().split() if self.tally.exists() else ()
        return Space(objects, writes, Counter(asked))


def spent(before: Mapping[str, Space], after: Mapping[str, Space]) -> dict[str, tuple[int, int]]:
    """How many writes each space saw meanwhile, and how many its node asked it for."""
    return {
        path: (
            now.writes - before[path].writes,
            now.asked.total() - before[path].asked.total(),
        )
        for path, now in after.items()
    }


async def until(met, what=lambda: "it did not come to be", seconds: float = WAIT_SECONDS) -> float:
    """Wait until a condition holds; how long that took, in seconds."""
    began = time.monotonic()
    await eventually(met, what, seconds=seconds, every=LOOK_SECONDS)
    return time.monotonic() - began


def copy_folder(source: Path, target: Path) -> None:
    """A backup of a node's disk, or its return."""
    if target.exists():
        shutil.rmtree(target)
    shutil.copytree(source, target)
