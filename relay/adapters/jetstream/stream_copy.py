"""What one stream keeps published again, in batches, each message as somebody rewrites it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from relay.adapters.jetstream.connection import Connection
from relay.adapters.jetstream.publish import Outgoing, Publisher
from relay.adapters.jetstream.stream_reader import Stored

BATCH_MESSAGES, BATCH_BYTES = 500, 4 * 1024 * 1024


@dataclass(slots=True)
class StreamCopy:
    """A copy under way; `rewrite` says what becomes of a message, None if it is left out."""

    publisher: Publisher
    rewrite: Callable[[Stored], Outgoing | None]
    copied: int = 0
    batch: list[Outgoing] = field(default_factory=list)
    size: int = 0

    @classmethod
    async def begun(
        cls, connection: Connection, rewrite: Callable[[Stored], Outgoing | None]
    ) -> StreamCopy:
        """A copy with a publisher of its own on this connection."""
        publisher = Publisher(connection)
        await publisher.start()
        return cls(publisher, rewrite)

    async def take(self, stored: Stored) -> None:
        """Publish a message, together with others."""
        outgoing = self.rewrite(stored)
        if outgoing is None:
            return
        self.batch.append(outgoing)
        self.size += len(outgoing.data)
        if len(self.batch) >= BATCH_MESSAGES or self.size >= BATCH_BYTES:
            await self.flush()

    async def flush(self) -> None:
        """Publish what was taken so far; raises BusBroken."""
        await self.publisher.publish(self.batch)
        self.copied += len(self.batch)
        self.batch, self.size = [], 0
