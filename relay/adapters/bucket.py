"""A JetStream key-value bucket: written if unchanged, read in order, deletions kept a while."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass

import nats.errors
import zstandard
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.js.api import (
    AckPolicy,
    ConsumerConfig,
    DeliverPolicy,
    DiscardPolicy,
    StorageType,
    StreamConfig,
)
from nats.js.errors import APIError, NotFoundError
from nats.js.errors import Error as JetStreamError

from relay.ports import SpaceError

DELETIONS_KEPT_SECONDS = 2 * 3600
BATCH = 256
PULL_SECONDS, HEARTBEAT_SECONDS, SILENCE_SECONDS = 30, 10, 25.0
SILENCE_LOOKS = 25
CONSUMER_KEPT_SECONDS = 90.0
COMPRESS_FROM_BYTES = 1024
HEADERS_MAX_BYTES = 1024
VALUE_MAX_BYTES = 8 * 1024 * 1024

_PLAIN, _ZSTD = b"\0", b"\1"
_WRONG_LAST, _NAME_IN_USE = 10071, 10058
_NANOSECONDS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Entry:
    """What lies at a key; of a deleted one, what lay there. Revisions order the whole bucket."""

    key: str
    value: bytes
    revision: int
    deleted: bool
    wall_ms: int


class Bucket:
    """One bucket over a connection that the caller keeps open. All methods raise SpaceError."""

    def __init__(self, connection: Client, name: str, domain: str = "", replicas: int = 1) -> None:
        self._connection = connection
        self._jetstream = connection.jetstream(domain=domain or None)
        self._api = f"$JS.{domain}.API" if domain else "$JS.API"
        self._stream = f"KV_{name}"
        self._prefix = f"$KV.{name}."
        self._replicas = replicas

    @property
    def limit(self) -> int:
        """The most bytes that a packed value can have."""
        return self._connection.max_payload - HEADERS_MAX_BYTES

    async def open(self) -> None:
        """Make the bucket if it is missing."""
        config = StreamConfig(
            name=self._stream,
            subjects=[f"{self._prefix}>"],
            max_msgs_per_subject=1,
            storage=StorageType.FILE,
            discard=DiscardPolicy.NEW,
            num_replicas=self._replicas,
            allow_rollup_hdrs=True,
            deny_delete=True,
            allow_direct=True,
            allow_msg_ttl=True,
        )
        with _bus_errors():
            try:
                await self._jetstream.add_stream(config)
            except APIError as error:
                if error.err_code != _NAME_IN_USE:
                    raise

    async def last_revision(self) -> int:
        """The revision of the last write, 0 if there was none."""
        with _bus_errors():
            info = await self._jetstream.stream_info(self._stream)
        return info.state.last_seq

    async def written_at(self, revision: int) -> int | None:
        """When a revision was written, in wall milliseconds; None if it is overwritten.

        Revision 0 is the bucket's making.
        """
        with _bus_errors():
            if not revision:
                return await self._made_at()
            try:
                message = await self._jetstream.get_msg(self._stream, seq=revision)
            except NotFoundError:
                return None
        return int(message.time.timestamp() * 1000) if message.time else None

    async def _made_at(self) -> int | None:
        info = await self._jetstream.stream_info(self._stream)
        return int(info.created.timestamp() * 1000) if info.created else None

    async def read(self, key: str) -> Entry | None:
        """What lies at the key, be it deleted."""
        subject = self._prefix + key
        with _bus_errors():
            try:
                found = await self._jetstream.get_last_msg(self._stream, subject, direct=True)
            except NotFoundError:
                return None
        deleted = "KV-Operation" in (found.headers or {})
        return Entry(key, unpack(found.data or b""), found.seq or 0, deleted, 0)

    async def write(
        self, key: str, packed: bytes, expected: int, *, deleted: bool = False
    ) -> int | None:
        """The new revision; None if the key is not at revision `expected` (0: never written)."""
        headers = {"Nats-Expected-Last-Subject-Sequence": str(expected)}
        if deleted:
            headers |= {"KV-Operation": "DEL", "Nats-TTL": f"{DELETIONS_KEPT_SECONDS}s"}
        with _bus_errors():
            try:
                kept = await self._jetstream.publish(self._prefix + key, packed, headers=headers)
            except APIError as error:
                if error.err_code == _WRONG_LAST:
                    return None
                raise
        return kept.seq

    async def list(self, pattern: str) -> AsyncGenerator[Entry, None]:
        """What lies at the keys that match now, in order of revision."""
        config = ConsumerConfig(deliver_policy=DeliverPolicy.LAST_PER_SUBJECT)
        async with aclosing(self._pull(config, pattern)) as pulled:
            async for entry, pending in pulled:
                if entry:
                    yield entry
                if not pending:
                    return
        raise SpaceError("ServiceUnavailable", "the server fell silent while listing: try again")

    async def follow(self, pattern: str, start: int) -> AsyncGenerator[Entry | None, None]:
        """Entries from revision `start` on; None when all is well and nothing new; ends if lost."""
        config = ConsumerConfig(deliver_policy=DeliverPolicy.BY_START_SEQUENCE, opt_start_seq=start)
        async with aclosing(self._pull(config, pattern)) as pulled:
            async for entry, _ in pulled:
                yield entry

    async def _pull(
        self, config: ConsumerConfig, pattern: str
    ) -> AsyncGenerator[tuple[Entry | None, int], None]:
        """Entries and how many more are known to follow; (None, n) at the start and when idle."""
        config.filter_subject = self._prefix + pattern
        config.ack_policy = AckPolicy.NONE
        config.mem_storage = True
        config.num_replicas = 1
        config.inactive_threshold = CONSUMER_KEPT_SECONDS
        with _bus_errors():
            consumer = await self._jetstream.add_consumer(self._stream, config)
        try:
            yield None, consumer.num_pending or 0
            async with aclosing(self._batches(consumer.name)) as messages:
                async for message in messages:
                    if message is None:
                        yield None, 1
                    else:
                        yield self._entry(message), message.metadata.num_pending
        finally:
            with suppress(nats.errors.Error, JetStreamError, TimeoutError):
                await self._jetstream.delete_consumer(self._stream, consumer.name)

    async def _batches(self, consumer: str) -> AsyncGenerator[Msg | None, None]:
        """Messages of the consumer, None at each heartbeat; ends when the consumer is lost."""
        subject = f"{self._api}.CONSUMER.MSG.NEXT.{self._stream}.{consumer}"
        ask = json.dumps(
            {
                "batch": BATCH,
                "expires": PULL_SECONDS * _NANOSECONDS,
                "idle_heartbeat": HEARTBEAT_SECONDS * _NANOSECONDS,
            }
        ).encode()
        inbox = self._connection.new_inbox()
        subscription = await self._connection.subscribe(inbox)
        left = 0
        try:
            while True:
                if not left:
                    await self._connection.publish(subject, ask, reply=inbox)
                    left = BATCH
                message = await self._next(subscription)
                _heed_cancellation()
                if message is None:
                    return
                match (message.headers or {}).get("Status", ""):
                    case "":
                        left -= 1
                        yield message
                    case "100":
                        yield None
                    case "408":
                        left = 0
                        yield None
                    case _:
                        return
        except nats.errors.Error:
            return
        finally:
            with suppress(nats.errors.Error):
                await subscription.unsubscribe()

    async def _next(self, subscription: Subscription) -> Msg | None:
        """The next message; None if the server fell silent, or was lost and found meanwhile.

        A server that starts anew has forgotten the consumer, and what it was asked for.
        """
        reconnects = self._connection.stats["reconnects"]
        for _ in range(SILENCE_LOOKS):
            try:
                return await subscription.next_msg(timeout=SILENCE_SECONDS / SILENCE_LOOKS)
            except nats.errors.TimeoutError:
                _heed_cancellation()
                if self._connection.stats["reconnects"] != reconnects:
                    return None
        return None

    def _entry(self, message: Msg) -> Entry:
        place = message.metadata
        return Entry(
            key=message.subject.removeprefix(self._prefix),
            value=unpack(message.data),
            revision=place.sequence.stream,
            deleted="KV-Operation" in (message.headers or {}),
            wall_ms=int(place.timestamp.timestamp() * 1000),
        )


def pack(value: bytes) -> bytes:
    """A value as it is stored: one byte (0 plain, 1 zstd), then the bytes."""
    if len(value) >= COMPRESS_FROM_BYTES:
        packed = zstandard.ZstdCompressor(level=3).compress(value)
        if len(packed) < len(value):
            return _ZSTD + packed
    return _PLAIN + value


def unpack(stored: bytes) -> bytes:
    """What `pack` was given; raises SpaceError if it is not that."""
    if stored[:1] != _ZSTD:
        return stored[1:]
    try:
        return zstandard.ZstdDecompressor().decompress(stored[1:], VALUE_MAX_BYTES)
    except zstandard.ZstdError as error:
        raise SpaceError(
            "InternalError", f"an entry of the bucket is unreadable: {error}"
        ) from error


@contextmanager
def _bus_errors() -> Iterator[None]:
    try:
        yield
        _heed_cancellation()
    except nats.errors.MaxPayloadError as error:
        raise SpaceError("RequestEntityTooLarge", str(error)) from error
    except (nats.errors.Error, JetStreamError, TimeoutError, OSError) as error:
        said = f"the bucket's server did not answer as it should: {error!r}"
        raise SpaceError("ServiceUnavailable", said) from error


def _heed_cancellation() -> None:
    """End a task that was cancelled just as an answer came: wait_for in Python 3.11 forgets it."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
