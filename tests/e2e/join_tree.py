"""A running tree and the sites that join it, by their commands, as users run them."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from benchmarks.report import resident_mb
from leafcast.join.folder import GRANT_FILE
from tests.awaiting import until
from tests.processes import alive

ROOT = Path(__file__).resolve().parents[2]
WAIT_SECONDS = 80
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80"}


class Site:
    """A `leafcast join` in the foreground of a second terminal, as it were."""

    def __init__(
        self,
        source: Path,
        folder: Path | None,
        *more: str,
        environment: Mapping[str, str] = ENVIRONMENT,
    ) -> None:
        self.source, self.folder, self.environment = source, folder, environment
        command = [sys.executable, "-m", "leafcast", "join", source, *more]
        command += ["--data-dir", folder] if folder is not None else []
        # What runs the tests may ignore Ctrl-C, and what it starts would inherit that.
        self.process = subprocess.Popen(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
        )
        self._said: list[str] = []
        self._heard = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    @property
    def said(self) -> str:
        return "".join(self._said)

    def until(self, text: str, times: int = 1) -> None:
        """Wait until it has said this so many times."""
        with self._heard:
            said = self._heard.wait_for(lambda: self.said.count(text) >= times, WAIT_SECONDS)
        assert said, self.said

    def until_resident(self, megabytes: float) -> None:
        """Wait until it takes at most so much; what it frees it gives back 10 s after its start."""
        pid = self.process.pid
        until(lambda: resident_mb(pid) <= megabytes, lambda: f"{resident_mb(pid):.1f} MB")
        print(f"a joined edge: {resident_mb(pid):.1f} MB")

    def end(self, number: int = signal.SIGINT) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            code = self.process.wait(WAIT_SECONDS)
        finally:
            self.process.kill()
        self._reader.join()
        self.process.stdout.close()
        return code

    def _read(self) -> None:
        for line in self.process.stdout:
            with self._heard:
                self._said.append(line)
                self._heard.notify_all()


class Tree:
    """A running tree, asked through its commands."""

    def __init__(self, folder: Path, environment: Mapping[str, str] = ENVIRONMENT) -> None:
        self.folder = folder
        self.environment = {**environment, "LEAFCAST_DATA_DIR": str(folder / "tree")}
        self.sites: list[Site] = []

    def run(self, *arguments: object, code: int = 0, stdin: str | None = None) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "leafcast", *map(str, arguments)],
            env=self.environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=WAIT_SECONDS,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def kill(self) -> None:
        """End its daemon without a word."""
        daemon = json.loads((self.folder / "tree" / "daemon.json").read_text())["pid"]
        os.kill(daemon, signal.SIGKILL)
        until(lambda: not alive(daemon))

    @contextmanager
    def without_server(self, node: str) -> Iterator[None]:
        """Without the nats-server in this folder of the tree: its daemon starts it afterwards."""
        daemon = json.loads((self.folder / "tree" / "daemon.json").read_text())["pid"]
        config = str(self.folder / "tree" / node / "nats.conf")
        (server,) = (int(it.name) for it in Path("/proc").iterdir() if config in _words_of(it))
        os.kill(daemon, signal.SIGSTOP)
        try:
            os.kill(server, signal.SIGKILL)
            yield
        finally:
            os.kill(daemon, signal.SIGCONT)

    def join(self, token: Path, folder: str) -> Site:
        site = Site(token, self.folder / folder)
        self.sites.append(site)
        return site

    def add(self, path: str, *options: str) -> Path:
        """A token in a file; nobody is asked about who uses it."""
        file = self.folder / f"{path.strip('/').replace('/', '-')}-{time.monotonic_ns()}.join"
        self.run("node", "add", path, "--approved", "-o", file, *options)
        return file

    def copy_grant(self, folder: str, other: str) -> None:
        """A second place that has who a joined node is, and nothing that it knows."""
        (self.folder / other).mkdir()
        kept = (self.folder / folder / GRANT_FILE).read_bytes()
        (self.folder / other / GRANT_FILE).write_bytes(kept)

    def reached(self) -> dict[str, bool]:
        nodes = json.loads(self.run("node", "list", "-o", "json"))
        return {node["path"]: node["reached"] for node in nodes}

    def node(self, path: str):
        nodes = json.loads(self.run("tree", "-o", "json"))["nodes"]
        return next(node for node in nodes if node["path"] == path)

    def ask(self, path: str, verb: str, **arguments: str):
        return self.call("ask", path=path, verb=verb, **arguments)

    def call(self, verb: str, /, **arguments: str):
        """What the daemon answers to a verb."""
        return json.loads(self.run_session(verb, arguments))

    def run_session(self, verb: str, arguments: dict[str, str]) -> str:
        program = (
            "import asyncio, json, sys\n"
            "from leafcast.ask.session import open_session\n"
            "async def ask():\n"
            "    async with open_session() as session:\n"
            "        verb, arguments = sys.argv[1:]\n"
            "        return await session.call(verb, **json.loads(arguments))\n"
            "print(json.dumps(asyncio.run(ask())))\n"
        )
        return subprocess.run(
            [sys.executable, "-c", program, verb, json.dumps(arguments)],
            env=self.environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=WAIT_SECONDS,
        ).stdout

    def standing(self) -> list[object]:
        """The nodes, the inventory, and the accounts of two servers."""
        seen = [json.loads(self.run("node", "list", "-o", "json"))]
        kinds = self.run("get", "synctargets,locations", "-o", "json")
        files = self.folder.glob("tree/*/nats.conf")
        return [*seen, json.loads(kinds)["items"], {f: f.read_text() for f in files}]

    def settings_at(self, path: str) -> list[str]:
        found = self.ask(path, "get", resource="configmaps", namespace="shop")
        return [obj["data"]["colour"] for obj in found["objects"]]


def _words_of(process: Path) -> list[str]:
    """With which words it was started; none of what is no process, or is gone."""
    try:
        return (process / "cmdline").read_text().split("\0")
    except OSError:
        return []
