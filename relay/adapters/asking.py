"""Questions put to a nats-server by a program that ends at once, with as few imports as it takes.

A command asks a thing or two, and to import nats-py takes it as long as all the rest. What is
spoken here of NATS' protocol is what a question needs: who one is, an inbox, a message, its answer
in one piece or in several. Who serves or writes uses the library: relay.adapters.jetstream.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

CONNECT_SECONDS = 5
HEAD_START_SECONDS = 0.5
"""So long one server has to let us in before the next one is tried beside it."""
PATIENCE_SECONDS, PAUSE_SECONDS = 5.0, 0.1
LINE_BYTES_MAX = 64 * 1024
MESSAGE_BYTES_MAX = 16 * 1024 * 1024
PIECES_MAX = 1024
ANSWERS = "leafcast.answer"
"""Below it a command hears what it is answered, and nothing else: see nats/node.conf."""
_NO_RESPONDERS = "503"
_PIECES = "Lc-Pieces"


class QuestionUnanswered(Exception):
    """A question got no answer: `nobody` listens, or the connection is `cut`; else time was up."""

    def __init__(self, subject: str, *, nobody: bool, seconds: float, cut: bool = False) -> None:
        why = "nobody serves it" if nobody else f"no answer within {seconds:g} s"
        super().__init__(f"{subject}: {'the connection was lost' if cut else why}")
        self.subject = subject
        self.nobody = nobody
        self.cut = cut


class CannotConnect(Exception):
    """A server did not let us in; `url` and `reason` say which and why."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"cannot connect to {url}: {reason}")
        self.url = url
        self.reason = reason


class TooLong(Exception):
    """A question is longer than the server takes; `limit` says how long one may be."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"a question of {size} bytes, at most {limit} are taken")
        self.limit = limit


class _Broken(Exception):
    """The server said what it should not, or that something is wrong."""


@asynccontextmanager
async def asking(url: str, seed: str, name: str) -> AsyncIterator[Asking]:
    """A way to ask, until the end of the block; raises CannotConnect."""
    connection: Asking | None = None
    try:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                connection = await Asking.opened(url, seed, name)
        except (OSError, TimeoutError, _Broken, ValueError) as error:
            late = isinstance(error, TimeoutError)
            reason = str(error) or type(error).__name__
            raise CannotConnect(url, "no answer in time" if late else reason) from error
        try:
            async with asyncio.TaskGroup() as group:
                listening = group.create_task(connection.listen())
                try:
                    yield connection
                finally:
                    listening.cancel()
        except BaseExceptionGroup as raised:
            # Of the block: to listen raises nothing.
            raise raised.exceptions[0] from None
    finally:
        if connection is not None:
            connection.close()


def _unheeded() -> None:
    """Nobody wants to know."""


class Asking:
    """A connection that asks: each question has an inbox of its own."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._inbox = f"{ANSWERS}.{os.urandom(16).hex()}"
        self._last = 0
        self._limit = 0
        self._waiting: dict[int, asyncio.Queue[tuple[dict[str, str], bytes] | None]] = {}
        self._closed = False

    @classmethod
    async def opened(cls, url: str, seed: str, name: str) -> Asking:
        """Connect to one of the servers that lets one in, and say who one is.

        Each has HEAD_START_SECONDS before the next: one that is frozen, or cut off, says nothing,
        though its system may take a connection. `url` is as in jetstream.server_url. Raises
        OSError, ValueError, _Broken.
        """
        servers, _, authorities = url.partition("#")
        left, opened, failed = servers.split(","), list[Asking](), list[Exception]()

        async def attempt(server: str) -> None:
            try:
                opened.append(await cls._opened_at(server, authorities, seed, name))
            except (OSError, ValueError, _Broken) as error:
                failed.append(error)

        try:
            async with asyncio.TaskGroup() as group:
                attempts = set[asyncio.Task[None]]()
                while (left or attempts) and not opened:
                    if left:
                        attempts.add(group.create_task(attempt(left.pop(0))))
                    head_start = HEAD_START_SECONDS if left else None
                    _, attempts = await asyncio.wait(
                        attempts, timeout=head_start, return_when=asyncio.FIRST_COMPLETED
                    )
                for late in attempts:
                    late.cancel()
        except BaseException:
            for connection in opened:
                connection.close()
            raise
        if not opened:
            raise failed[-1]
        for connection in opened[1:]:
            connection.close()
        return opened[0]

    @classmethod
    async def _opened_at(cls, server: str, authorities: str, seed: str, name: str) -> Asking:
        scheme, _, place = server.partition("://")
        host, _, port = place.rpartition(":")
        context = _tls(authorities) if scheme == "tls" else None
        reader, writer = await asyncio.open_connection(
            host.strip("[]"), int(port), ssl=context, limit=LINE_BYTES_MAX
        )
        connection = cls(reader, writer)
        try:
            await connection._introduce(seed, name)
        except BaseException:
            connection.close()
            raise
        return connection

    async def _introduce(self, seed: str, name: str) -> None:
        # Here, as the program has read its folder first, which may have nobody to ask.
        import nkeys  # noqa: PLC0415

        word, _, said = (await self._line()).partition(" ")
        if word != "INFO":
            raise _Broken("what answers is no nats-server")
        info = json.loads(said)
        limit = info.get("max_payload") if isinstance(info, dict) else None
        if type(limit) is not int:
            raise _Broken("what answers is no nats-server")
        self._limit = limit
        try:
            key = nkeys.from_seed(bytearray(seed.encode()))
        except nkeys.NkeysError as error:
            raise _Broken("the key that this folder has for it is damaged") from error
        signature = base64.urlsafe_b64encode(key.sign(str(info.get("nonce", "")).encode()))
        introduction = {
            "verbose": False,
            "pedantic": False,
            "headers": True,
            "no_responders": True,
            "protocol": 1,
            "lang": "python",
            "version": "1",
            "name": name,
            "nkey": key.public_key.decode(),
            "sig": signature.decode().rstrip("="),
        }
        inbox = f"SUB {self._inbox}.* 1\r\n"
        self._send(f"CONNECT {json.dumps(introduction)}\r\n{inbox}PING\r\n".encode())
        while (line := await self._line()) != "PONG":
            if line.startswith("-ERR"):
                raise _Broken(line.removeprefix("-ERR").strip(" '"))

    async def ask(
        self, subject: str, question: bytes, seconds: float, put: Callable[[], None] = _unheeded
    ) -> bytes:
        """Ask and wait for the answer; raises QuestionUnanswered, or TooLong.

        That nobody listens is believed only after a while: a server that reloads has none for
        moments. `put` is called each time that the question goes out: before, nobody had it.
        """
        if len(question) > self._limit:
            raise TooLong(len(question), self._limit)
        patience = asyncio.get_running_loop().time() + min(seconds, PATIENCE_SECONDS)
        try:
            async with asyncio.timeout(seconds):
                while True:
                    put()
                    answer = await self._asked(subject, question)
                    if answer is not None:
                        return answer
                    if asyncio.get_running_loop().time() >= patience:
                        break
                    await asyncio.sleep(PAUSE_SECONDS)  # noqa: TID251 - no decision hangs on it
        except TimeoutError as error:
            raise QuestionUnanswered(subject, nobody=False, seconds=seconds) from error
        except (OSError, _Broken) as error:
            raise QuestionUnanswered(subject, nobody=False, seconds=seconds, cut=True) from error
        raise QuestionUnanswered(subject, nobody=True, seconds=seconds)

    async def _asked(self, subject: str, question: bytes) -> bytes | None:
        """The whole answer; None if nobody listens."""
        self._last += 1
        number = self._last
        messages = self._waiting[number] = asyncio.Queue()
        try:
            head = f"PUB {subject} {self._inbox}.{number} {len(question)}\r\n"
            self._send(head.encode() + question + b"\r\n")
            await self._writer.drain()
            headers, answer = await self._next(messages)
            if headers.get("Status") == _NO_RESPONDERS:
                return None
            more = range(min(int(headers.get(_PIECES, "1")), PIECES_MAX) - 1)
            return b"".join([answer, *[(await self._next(messages))[1] for _ in more]])
        finally:
            del self._waiting[number]

    async def _next(
        self, messages: asyncio.Queue[tuple[dict[str, str], bytes] | None]
    ) -> tuple[dict[str, str], bytes]:
        if self._closed and messages.empty():
            raise _Broken("the connection was closed")
        found = await messages.get()
        if found is None:
            raise _Broken("the connection was closed")
        return found

    async def listen(self) -> None:
        """Hand out what comes, until the connection ends; raises nothing."""
        try:
            with suppress(OSError, _Broken, ValueError, asyncio.IncompleteReadError):
                while True:
                    await self._take(await self._line())
        finally:
            self._closed = True
            for messages in self._waiting.values():
                messages.put_nowait(None)

    async def _take(self, line: str) -> None:
        match line.split():
            case ["PING"]:
                self._send(b"PONG\r\n")
            case ["MSG", subject, _sid, size]:
                await self._message(subject, 0, int(size))
            case ["HMSG", subject, _sid, head, size]:
                await self._message(subject, int(head), int(size))
            case ["-ERR", *said]:
                raise _Broken(" ".join(said))
            case _:
                pass

    async def _message(self, subject: str, head: int, size: int) -> None:
        if not 0 <= head <= size <= MESSAGE_BYTES_MAX:
            raise _Broken("a message is longer than there is room for")
        data = (await self._reader.readexactly(size + 2))[:-2]
        number = subject.rpartition(".")[2]
        waiting = self._waiting.get(int(number) if number.isdecimal() else 0)
        if waiting is not None:
            waiting.put_nowait((_headers(data[:head]), data[head:]))

    async def _line(self) -> str:
        line = await self._reader.readline()
        if not line:
            raise _Broken("the connection was closed")
        return line.decode().rstrip("\r\n")

    def _send(self, data: bytes) -> None:
        self._writer.write(data)

    def close(self) -> None:
        """End it; nothing is waited for."""
        self._writer.close()


def _headers(data: bytes) -> dict[str, str]:
    """`Status` of the first line, and the headers below it."""
    first, *lines = data.decode(errors="replace").split("\r\n")
    found = {"Status": first.split(" ")[1]} if " " in first else {}
    for line in lines:
        name, colon, value = line.partition(":")
        if colon:
            found[name] = value.strip()
    return found


def _tls(authorities: str) -> Any:
    import ssl  # noqa: PLC0415 - most commands ask on this machine, in clear

    return ssl.create_default_context(cafile=authorities or None)
