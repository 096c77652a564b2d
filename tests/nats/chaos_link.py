"""A wire between a child and its parent that a test can cut, hold and mend: a TCP relay."""

import asyncio
from contextlib import suppress

from tests.awaiting import eventually

PIECE_BYTES = 64 * 1024


class Wire:
    """Forwards to `port` on loopback while it is whole; listens on `url` from `open` on.

    `cut` resets what is open and refuses what comes; `hold` keeps all open and says nothing, as a
    network does that drops every packet. With a `tap` it keeps all that passes, both ways.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = ""
        self._whole = asyncio.Event()
        self._whole.set()
        self._refuses = False
        self._pace = float("inf")
        self.tap: bytearray | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"nats://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def cut(self) -> None:
        self._refuses = True
        self._drop()

    def slow(self, bytes_per_second: float) -> None:
        """Let no more through than this in each direction, until it is mended."""
        self._pace = bytes_per_second

    def hold(self) -> None:
        self._whole.clear()

    def mend(self) -> None:
        """Let everything through again. What was held is reset, as a router does that came back."""
        if not self._whole.is_set():
            self._drop()
        self._refuses = False
        self._pace = float("inf")
        self._whole.set()

    async def close(self) -> None:
        self._refuses = True
        self._whole.set()
        self._drop()
        if self._server is not None:
            self._server.close()
            await eventually(lambda: not self._writers)

    def _drop(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refuses:
            writer.transport.abort()
            return
        self._writers.add(writer)
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            writer.transport.abort()
            self._writers.discard(writer)
            return
        self._writers.add(far_writer)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._forward(reader, far_writer))
                group.create_task(self._forward(far_reader, writer))
        finally:
            for one in (writer, far_writer):
                one.transport.abort()
                self._writers.discard(one)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while piece := await reader.read(PIECE_BYTES):
                await self._whole.wait()
                if self.tap is not None:
                    self.tap += piece
                await asyncio.sleep(len(piece) / self._pace)
                writer.write(piece)
                await writer.drain()
        writer.transport.abort()
