"""Liveness and readiness over HTTP, for those who watch a daemon: `/livez` and `/readyz`.

Live is a daemon whose loop turns: it answers. Ready is one of which every check holds; the answer
names each, as an API server's does.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from relay.adapters.jetstream.member_presence import ACTIVE
from relay.ports import Clock

ANSWER_SECONDS = 5.0
REQUEST_BYTES_MAX = 8_192
CONNECTIONS_MAX = 32
"""Open at once. Each user of the machine may connect, and a file of the daemon's goes with each."""
ASKING_SECONDS = 0.1
"""So long whoever connected may take to ask, however many others connect."""
BACKLOG = 128
"""Who is not accepted yet waits in the kernel, and takes no file of the daemon's."""
LOOPBACK = "127.0.0.1"

Checks = Callable[[], Mapping[str, str]]
"""What is to hold, by name: "" if it does, else why not."""

_WORDS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed"}
_UNREADY = 503

log = logging.getLogger("leafcast")


@dataclass(frozen=True, slots=True)
class HealthAddress:
    """Where liveness and readiness are asked for: this machine only, unless a host is named."""

    port: int
    host: str = LOOPBACK


class HealthPortTaken(Exception):
    """Nobody can listen there; says where, and what to do."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(f"health: {host}:{port}: {reason}; name another port")


class HealthEndpoint:
    """Answers on one port for as long as it runs; `checks` are asked anew each time.

    So are `warnings`, which are told and keep nobody from being ready, and `role`: that of a node
    which runs once is always the active one.
    """

    def __init__(
        self,
        checks: Checks,
        clock: Clock,
        port: int,
        host: str = LOOPBACK,
        warnings: Checks = dict,
        role: Callable[[], str] = lambda: ACTIVE,
    ) -> None:
        self._checks, self._warnings, self._role = checks, warnings, role
        self._clock = clock
        self._place = (host, port)
        self.port = port
        self.listening = asyncio.Event()
        # Since when, the oldest first.
        self._open: dict[asyncio.StreamWriter, float] = {}
        self._closed = asyncio.Event()

    async def run(self) -> None:
        """Answer until cancelled; raises HealthPortTaken."""
        try:
            # It listens, and does not accept: that is done here, one by one, as there is room.
            server = await asyncio.start_server(_nobody, *self._place, start_serving=False)
            listening = [_listening(it) for it in server.sockets]
        except OSError as error:
            raise HealthPortTaken(*self._place, error.strerror or str(error)) from error
        async with server:
            self.port = server.sockets[0].getsockname()[1]
            self.listening.set()
            async with asyncio.TaskGroup() as group:
                for one in listening:
                    group.create_task(self._accept(one, group), name="health accepts")

    async def _accept(self, listening: socket.socket, group: asyncio.TaskGroup) -> None:
        """Accept without end, each once there is room for it."""
        with listening:
            while True:
                await self._room()
                try:
                    accepted, _ = await asyncio.get_running_loop().sock_accept(listening)
                    reader, writer = await asyncio.open_connection(
                        sock=accepted, limit=REQUEST_BYTES_MAX
                    )
                except OSError as error:
                    # Gone already, or the daemon has no file left.
                    log.debug("health: nobody is accepted: %s", error)
                    await self._clock.sleep(ASKING_SECONDS)
                    continue
                self._open[writer] = self._clock.now().seconds
                group.create_task(self._serve(reader, writer), name="health")

    async def _room(self) -> None:
        """Wait until there is room for one more.

        Who asks at once is answered at once: it is the silent ones that make room.
        """
        while len(self._open) >= CONNECTIONS_MAX:
            oldest, since = next(iter(self._open.items()))
            left = since + ASKING_SECONDS - self._clock.now().seconds
            if left > 0:
                self._closed.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(left):
                        await self._closed.wait()
            else:
                del self._open[oldest]
                oldest.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Who asks strangely, or goes away meanwhile, is not answered, and that is all.
        try:
            with suppress(
                OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError
            ):
                async with asyncio.timeout(ANSWER_SECONDS):
                    head = await reader.readuntil(b"\r\n\r\n")
                    writer.write(self._answer(head))
                    await writer.drain()
        except Exception:
            # It ends for this one alone.
            log.exception("health: a question is not answered")
        finally:
            self._open.pop(writer, None)
            self._closed.set()
            writer.close()

    def _answer(self, head: bytes) -> bytes:
        words = head.split(b"\r\n", maxsplit=1)[0].decode("latin-1").split(" ")
        code, body = self._judge(words)
        text = body.encode()
        lines = [
            f"HTTP/1.1 {code} {_WORDS.get(code, 'Service Unavailable')}",
            "Content-Type: text/plain; charset=utf-8",
            f"Content-Length: {len(text)}",
            "Cache-Control: no-store",
            "Connection: close",
        ]
        sent = "\r\n".join([*lines, "", ""]).encode()
        return sent if words[0] == "HEAD" else sent + text

    def _judge(self, words: list[str]) -> tuple[int, str]:
        if len(words) != 3:
            return 400, "not a request\n"
        if words[0] not in ("GET", "HEAD"):
            return 405, "only GET\n"
        match words[1].partition("?")[0]:
            case "/livez":
                return 200, "ok\n"
            case "/readyz":
                return self._ready()
            case _:
                return 404, "ask for /livez or /readyz\n"

    def _ready(self) -> tuple[int, str]:
        found = self._checks()
        lines = [f"[-]{name}: {why}" if why else f"[+]{name} ok" for name, why in found.items()]
        lines += [f"[!]{name}: {why}" for name, why in self._warnings().items() if why]
        lines.append(f"role: {self._role()}")
        ready = not any(found.values())
        lines.append("ready" if ready else "not ready")
        return (200 if ready else _UNREADY), "\n".join([*lines, ""])


def _nobody(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    """Nobody is accepted by the server itself."""


def _listening(bound: socket.socket) -> socket.socket:
    listening = socket.fromfd(bound.fileno(), bound.family, bound.type)
    listening.settimeout(0)
    listening.listen(BACKLOG)
    return listening
