"""Liveness, readiness and figures over HTTP, for those who watch a daemon.

At `/livez` is live whose loop turns: it answers. At `/readyz` is ready of whom every check holds;
the answer names each, as an API server's does. `/metrics` has figures for Prometheus.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from leafcast.metrics.reading import MetricReading, Readings, no_readings
from leafcast.node.process_readings import process_readings
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

HEAD_LINES_MAX = 100
PLAIN = "text/plain; charset=utf-8"

Checks = Callable[[], Mapping[str, str]]
"""What is to hold, by name: "" if it does, else why not."""

_WORDS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed"}
_UNREADY = 503

log = logging.getLogger("leafcast")


@dataclass(frozen=True, slots=True)
class HealthAddress:
    """Where one asks for health and figures: on this machine only, unless a host is named."""

    port: int
    host: str = LOOPBACK

    @classmethod
    def parse(cls, text: str) -> HealthAddress:
        """Read what `str` says."""
        host, _, port = text.rpartition(":")
        return cls(int(port), host)

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class HealthPortTaken(Exception):
    """Nobody can listen there; says where, and what to do."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(f"health: {host}:{port}: {reason}; name another port")


class _Answer(NamedTuple):
    code: int
    body: bytes
    content_type: str = PLAIN


class HealthEndpoint:
    """Answers on one port for as long as it runs; `checks` are asked anew each time.

    So are `warnings`, which are told and keep nobody from being ready, and `role`: that of a node
    which runs once is always the active one. `readings` are figures beside those of the process.
    """

    def __init__(
        self,
        checks: Checks,
        clock: Clock,
        port: int,
        host: str = LOOPBACK,
        warnings: Checks = dict,
        role: Callable[[], str] = lambda: ACTIVE,
        readings: Readings = no_readings,
    ) -> None:
        self._checks, self._warnings, self._role = checks, warnings, role
        self._readings, self._reading = readings, asyncio.Lock()
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
                    writer.write(await self._answer(head))
                    await writer.drain()
        except Exception:
            # It ends for this one alone.
            log.exception("health: a question is not answered")
        finally:
            self._open.pop(writer, None)
            self._closed.set()
            writer.close()

    async def _answer(self, head: bytes) -> bytes:
        first, *lines = head.decode("latin-1").split("\r\n", HEAD_LINES_MAX)
        words = first.split(" ")
        answer = await self._judge(words, lines)
        said = [
            f"HTTP/1.1 {answer.code} {_WORDS.get(answer.code, 'Service Unavailable')}",
            f"Content-Type: {answer.content_type}",
            f"Content-Length: {len(answer.body)}",
            "Cache-Control: no-store",
            "Connection: close",
        ]
        sent = "\r\n".join([*said, "", ""]).encode()
        return sent if words[0] == "HEAD" else sent + answer.body

    async def _judge(self, words: Sequence[str], lines: Sequence[str]) -> _Answer:
        if len(words) != 3:
            return _Answer(400, b"not a request\n")
        if words[0] not in ("GET", "HEAD"):
            return _Answer(405, b"only GET\n")
        match words[1].partition("?")[0]:
            case "/livez":
                return _Answer(200, b"ok\n")
            case "/readyz":
                code, text = self._ready()
                return _Answer(code, text.encode())
            case "/metrics":
                return await self._figures(_header(lines, "accept"))
            case _:
                return _Answer(404, b"ask for /livez, /readyz or /metrics\n")

    async def _figures(self, accept: str) -> _Answer:
        """One answer at a time: it costs more than the others, and whoever may connect may ask."""
        async with self._reading:
            found = [*process_readings(self._checks(), self._role()), *await self._readings()]
            content_type, body = await asyncio.to_thread(_exposed, found, accept)
            return _Answer(200, body, content_type)

    def _ready(self) -> tuple[int, str]:
        found = self._checks()
        lines = [f"[-]{name}: {why}" if why else f"[+]{name} ok" for name, why in found.items()]
        lines += [f"[!]{name}: {why}" for name, why in self._warnings().items() if why]
        lines.append(f"role: {self._role()}")
        ready = not any(found.values())
        lines.append("ready" if ready else "not ready")
        return (200 if ready else _UNREADY), "\n".join([*lines, ""])


def _exposed(found: Sequence[MetricReading], accept: str) -> tuple[str, bytes]:
    """Where nobody asks for figures the library that writes them is never loaded."""
    from leafcast.metrics.exposition import exposed  # noqa: PLC0415

    return exposed(found, accept)


def _header(lines: Sequence[str], name: str) -> str:
    """What a request's head says under a name; "" if nothing."""
    for line in lines:
        said, colon, value = line.partition(":")
        if colon and said.strip().lower() == name:
            return value.strip()
    return ""


def _nobody(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    """Nobody is accepted by the server itself."""


def _listening(bound: socket.socket) -> socket.socket:
    listening = socket.fromfd(bound.fileno(), bound.family, bound.type)
    listening.settimeout(0)
    listening.listen(BACKLOG)
    return listening
