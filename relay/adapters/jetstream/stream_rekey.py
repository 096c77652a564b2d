"""What a node's streams keep goes on under its new path; done again, it ends the same.

Only what the node keeps for itself is carried over: mail and reports of children are none of a node
that has no children.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from relay.adapters.jetstream.connection import Connection, JetStreamRefused
from relay.adapters.jetstream.publish import REPLACES, Outgoing, Publisher, header_lines
from relay.adapters.jetstream.stream_reader import Stored, StreamReader
from relay.adapters.jetstream.streams import REPLACING, make_stream, purge
from relay.ports import Clock
from schemas.values import subjects
from schemas.values.identity import NodePath

BATCH_MESSAGES, BATCH_BYTES = 500, 4 * 1024 * 1024
_NO_STREAM = 10059


async def rekey_streams(
    url: str, seed: str, clock: Clock, former: Iterable[NodePath], path: NodePath
) -> int:
    """Move what is kept under former paths to the path; how many messages that were.

    Nothing else may use the streams meanwhile. Raises BusBroken; what was done till then stays.
    """
    connection = Connection(url, seed, f"leafcast {path} moving", "_INBOX.moving")
    await connection.open()
    try:
        publisher = Publisher(connection)
        await publisher.start()
        kept = subjects.kept_for_itself(path)
        return sum(
            [
                await _rekey(_Copy(connection, publisher, clock, stream, old, path))
                for stream in kept
                for old in former
            ]
        )
    finally:
        await connection.close()


@dataclass(slots=True)
class _Copy:
    """One stream on its way from the subjects of one path to those of another."""

    connection: Connection
    publisher: Publisher
    clock: Clock
    stream: str
    old: NodePath
    new: NodePath
    batch: list[Outgoing] = field(default_factory=list)
    size: int = 0
    copied: int = 0

    async def take(self, stored: Stored) -> None:
        """Publish a message of the old path's under the new one, in batches."""
        subject = subjects.parse(stored.subject)
        if subject.path != self.old:
            return
        moved = subjects.Subject(self.new, subject.tail, subject.key)
        headers = dict(stored.headers) | (REPLACES if self.stream in REPLACING else {})
        self.batch.append(Outgoing(str(moved), stored.data, header_lines(headers)))
        self.size += len(stored.data)
        if len(self.batch) >= BATCH_MESSAGES or self.size >= BATCH_BYTES:
            await self.flush()

    async def flush(self) -> None:
        await self.publisher.publish(self.batch)
        self.copied += len(self.batch)
        self.batch, self.size = [], 0


async def _rekey(copy: _Copy) -> int:
    """Copy first, erase then, and only at last take the old subjects out of the stream."""
    connection, stream = copy.connection, copy.stream
    try:
        await connection.api(f"STREAM.INFO.{stream}")
    except JetStreamRefused as error:
        if error.code != _NO_STREAM:
            raise
        return 0
    old, new = (subjects.stream_subjects(path)[stream] for path in (copy.old, copy.new))
    await make_stream(connection, stream, (*old, *new))
    await StreamReader(connection, copy.clock, stream).read_all(copy.take)
    await copy.flush()
    for pattern in old:
        await purge(connection, stream, pattern)
    await make_stream(connection, stream, new)
    return copy.copied
