"""Who listens on a TCP port of this machine: a server's own last run, or another program."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

GREETING_SECONDS = 5.0
GREETING_BYTES_MAX = 64 * 1024
COMMAND_MAX_CHARACTERS = 80
_LISTENING = "0A"
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Holder:
    """Who listens on a port; `pid` is 0 and `command` empty where the system does not tell."""

    port: int
    pid: int = 0
    command: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.pid:
            return "another program"
        # On one line, whatever its arguments are: what to do is said behind it.
        said = " ".join(" ".join(self.command).split())
        return f"process {self.pid} ({said[:COMMAND_MAX_CHARACTERS]})"


async def stranger_on(port: int, config: Path, server_name: str) -> Holder | None:
    """Who listens on the port, unless it is a nats-server with this configuration file.

    Where the system does not tell whose a port is, one that greets by the server's name is taken
    for it. None also if nobody listens: what sits on the port then goes by itself.
    """
    holder = await asyncio.to_thread(_holder, port)
    if holder is not None:
        return None if str(config) in holder.command else holder
    greeting = await _greeting(port)
    if greeting is None or f'"server_name":{json.dumps(server_name)}' in greeting:
        return None
    return Holder(port)


def _holder(port: int) -> Holder | None:
    """The process that listens, as far as /proc tells."""
    inodes = {f"socket:[{inode}]" for inode in _listening(port)}
    for entry in _PROC.glob("[0-9]*") if inodes else ():
        with suppress(OSError):
            if any(str(link.readlink()) in inodes for link in (entry / "fd").iterdir()):
                words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
                return Holder(port, int(entry.name), tuple(filter(None, words)))
    return None


def _listening(port: int) -> Iterator[str]:
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in (_PROC / "net" / table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                    yield fields[9]


async def _greeting(port: int) -> str | None:
    """What a listener says first, "" if nothing; None if nobody listens."""
    try:
        async with asyncio.timeout(GREETING_SECONDS):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except (OSError, TimeoutError):
        return None
    said = b""
    try:
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(GREETING_SECONDS):
                said = await reader.read(GREETING_BYTES_MAX)
    finally:
        writer.close()
    return said.decode(errors="replace").replace(" ", "")
