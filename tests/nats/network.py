"""Machines that are network namespaces of this one, joined by a wire; only root can make them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("unshare", "nsenter", "ip", "mount", "tcpdump", "ss")
COMMAND_SECONDS = 120


class Machine:
    """A namespace of its own: network, and what `/etc/hosts` says."""

    def __init__(self, address: str, folder: Path) -> None:
        self.address = address
        self.folder = folder
        self.unplug: Callable[[], None] = lambda: None
        self.plug: Callable[[], None] = lambda: None
        folder.mkdir(mode=0o700)
        self._holder = subprocess.Popen(
            ["unshare", "--net", "--mount", "sh", "-c", "echo here; exec sleep infinity"],
            stdout=subprocess.PIPE,
        )
        assert self._holder.stdout is not None
        self._holder.stdout.readline()
        self.pid = self._holder.pid

    def command(self, *words: str | Path) -> list[str]:
        """The command, to be run there."""
        return ["nsenter", "-t", str(self.pid), "-n", "-m", "--", *map(str, words)]

    def run(self, *words: str | Path, fails: bool = False) -> str:
        """What the command prints, errors and all; it must succeed, or must not."""
        done = subprocess.run(
            self.command(*words),
            check=False,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=COMMAND_SECONDS,
        )
        assert (done.returncode != 0) is fails, done.stdout
        return done.stdout

    def leafcast(self, *words: str | Path, fails: bool = False) -> str:
        return self.run(sys.executable, "-m", "leafcast", *words, fails=fails)

    @property
    def environment(self) -> dict[str, str]:
        paths = filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "LEAFCAST_DATA_DIR": str(self.folder / "data"),
        }

    @contextmanager
    def running(self, *words: str | Path) -> Iterator[Path]:
        """The command, until the block ends; the file of what it says."""
        said = self.folder / f"{len(list(self.folder.iterdir()))}.said"
        with said.open("wb") as out:
            process = subprocess.Popen(
                self.command(*words),
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        try:
            yield said
        finally:
            process.terminate()
            process.wait(timeout=COMMAND_SECONDS)

    def listening(self) -> list[str]:
        """Where programs take connections."""
        return [line.split()[3] for line in self.run("ss", "-Hltn").splitlines()]

    def close(self) -> None:
        self._holder.kill()
        self._holder.wait()
        assert self._holder.stdout is not None
        self._holder.stdout.close()


class Switch:
    """A namespace with a bridge, from which a wire leads to each machine."""

    def __init__(self, folder: Path) -> None:
        self._machine = Machine("", folder)
        self.close = self._machine.close

    def start(self) -> None:
        self._machine.run("ip", "link", "add", "bridge", "type", "bridge")
        self._machine.run("ip", "link", "set", "bridge", "up")

    def plug(self, machine: Machine, number: int) -> None:
        """Lead a wire to the machine."""
        ends = [f"lc{self._machine.pid}x{number}", f"port-{number}"]
        _system("ip", "link", "add", ends[0], "type", "veth", "peer", "name", f"{ends[0]}p")
        _system("ip", "link", "set", ends[0], "netns", str(machine.pid))
        _system("ip", "link", "set", f"{ends[0]}p", "netns", str(self._machine.pid))
        machine.run("ip", "link", "set", ends[0], "name", "wire")
        machine.run("ip", "address", "add", f"{machine.address}/24", "dev", "wire")
        machine.run("ip", "link", "set", "wire", "up")
        self._machine.run("ip", "link", "set", f"{ends[0]}p", "name", ends[1])
        self._machine.run("ip", "link", "set", ends[1], "master", "bridge", "up")

    def unplug(self, number: int) -> None:
        """Take the wire to a machine off: nobody is told, as where its power is lost."""
        self._machine.run("ip", "link", "delete", f"port-{number}")


@contextmanager
def machines(folder: Path, names: Sequence[str]) -> Iterator[list[Machine]]:
    """Machines on one network; each knows the names of all."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if os.geteuid() != 0 or missing:
        pytest.skip(f"NOT RUN: it needs root, and {', '.join(missing) or 'its tools'}")
    addresses = [f"10.213.7.{number + 1}" for number in range(len(names))]
    with ExitStack() as stack:
        made: list[Machine] = []
        hosts = folder / "hosts"
        pairs = zip(addresses, names, strict=True)
        hosts.write_text("127.0.0.1 localhost\n" + "".join(f"{at} {it}\n" for at, it in pairs))
        # A program that gives up being root, as a proxy does, reads it too, whatever the umask.
        hosts.chmod(0o644)
        try:
            switch = Switch(folder / "switch")
            stack.callback(switch.close)
            switch.start()
            for number, address in enumerate(addresses):
                machine = Machine(address, folder / f"machine-{number}")
                stack.callback(machine.close)
                machine.run("ip", "link", "set", "lo", "up")
                machine.run("mount", "--bind", hosts, "/etc/hosts")
                machine.plug = partial(switch.plug, machine, number)
                machine.plug()
                machine.unplug = partial(switch.unplug, number)
                made.append(machine)
        except (AssertionError, subprocess.CalledProcessError) as error:
            pytest.skip(f"NOT RUN: no network namespaces here: {error}")
        yield made


@contextmanager
def captured(machine: Machine, file: Path) -> Iterator[None]:
    """All that passes the wire, into a file."""
    process = subprocess.Popen(
        machine.command("tcpdump", "-U", "--immediate-mode", "-i", "wire", "-s", "0", "-w", file),
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    try:
        while b"listening on" not in (line := process.stderr.readline()):
            assert line, "tcpdump ended"
        yield
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        process.stderr.read()
        process.stderr.close()
        process.wait()


def connections_in(machine: Machine, file: Path) -> str:
    """Who began a connection to the machine, by what was captured."""
    begun = f"dst host {machine.address} and tcp[tcpflags] & (tcp-syn|tcp-ack) == tcp-syn"
    done = subprocess.run(
        ["tcpdump", "-nr", str(file), begun], capture_output=True, text=True, check=True
    )
    return done.stdout


def _system(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)
