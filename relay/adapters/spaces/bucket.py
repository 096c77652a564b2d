"""A JetStream key-value bucket: written if unchanged, read in order, deletions kept a while.

What is damaged on the disk is not there. An entry goes with a checksum of its value, which stands
in a header; the server has its own, and drops what fails it.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Collection, Iterable, Mapping
from contextlib import AbstractContextManager, aclosing, suppress
from dataclasses import dataclass
from hashlib import blake2b

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.js.api import (
    AckPolicy,
    ConsumerConfig,
    DeliverPolicy,
    DiscardPolicy,
    RawStreamMsg,
    StorageType,
    StreamConfig,
)
from nats.js.errors import APIError, NotFoundError
from nats.js.errors import Error as JetStreamError

from relay.adapters.jetstream.backpressure_client import PAUSE_SECONDS, patient_jetstream
from relay.adapters.jetstream.fence import FencedPublisher, Unconfirmed
from relay.adapters.jetstream.publish import (
    EXPECTED_SEQUENCE,
    REPLACED_MAX,
    REPLACES,
    Outgoing,
    header_lines,
)
from relay.adapters.jetstream.reconnecting_client import losses
from relay.adapters.jetstream.stream_mending import MARKED_SECONDS, kept_metadata
from relay.adapters.jetstream.streams import create_or_update
from relay.adapters.spaces.bucket_values import (
    EVERY_PART,
    Parts,
    part_of,
    parts_named,
    split,
    unpack,
)
from relay.adapters.spaces.entry_writes import (
    UNKNOWN,
    answered_once,
    put_fenced,
    told_of,
    written_surely,
)
from relay.space_errors import SpaceError

DELETIONS_KEPT_SECONDS = 2 * 3600
BATCH = 256
PULL_SECONDS, HEARTBEAT_SECONDS, SILENCE_SECONDS = 30, 10, 25.0
SILENCE_LOOKS = 25
CONSUMER_KEPT_SECONDS = 90.0
UNHEARD_MAX = 30
READS_MAX = LOOKS_MAX = 16
PARTS_OF_DELETIONS_KEPT_SECONDS = DELETIONS_KEPT_SECONDS + 60
STRAY_MS_MIN = 3600 * 1000

CHECKSUM, LOSS = "Lc-Sum", "lost"
GUARD, FENCE = "_guard", "_fence"
"""Beside the entries of a bucket that is kept at several servers."""
_CHECKSUM_BYTES = 16
_WRONG_LAST = 10071
_NANOSECONDS = 1_000_000_000

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BucketEntry:
    """What lies at a key; of a deleted one, what lay there. Revisions order the whole bucket."""

    key: str
    value: bytes
    revision: int
    deleted: bool
    # Where the value lies if it does not lie at the key itself.
    parts: Parts | None = None
    # Something is there, and cannot be read any more: the value is empty.
    broken: bool = False


@dataclass(frozen=True, slots=True)
class Kept:
    """At how many servers a bucket lies; with `fenced` it is written by the active member."""

    replicas: int = 1
    fenced: FencedPublisher | None = None


ALONE = Kept()


class Bucket:
    """One bucket over a connection that the caller keeps open. All methods raise SpaceError."""

    def __init__(self, connection: Client, name: str, domain: str = "", kept: Kept = ALONE) -> None:
        self._replicas, self._fenced = kept.replicas, kept.fenced
        self._connection = connection
        self.name = name
        self._jetstream = patient_jetstream(connection, domain, in_cluster=kept.replicas > 1)
        self._api = f"$JS.{domain}.API" if domain else "$JS.API"
        self._stream = stream_of(name)
        self._prefix = f"$KV.{name}."

    def _told(self) -> AbstractContextManager[None]:
        return told_of(self.name)

    async def open(self) -> None:
        """Make the bucket, or give the one that is there today's settings."""
        with self._told():
            await self._make(await self._settings_noted())

    async def _make(self, noted: Mapping[str, str]) -> None:
        config = StreamConfig(
            name=self._stream,
            subjects=[f"{self._prefix}>"],
            # Each write replaces what it follows, and says so on disk; a limit would not.
            max_msgs_per_subject=REPLACED_MAX,
            storage=StorageType.FILE,
            discard=DiscardPolicy.NEW,
            num_replicas=self._replicas,
            allow_rollup_hdrs=True,
            deny_delete=True,
            allow_direct=True,
            allow_msg_ttl=True,
            allow_atomic=True if self._replicas > 1 else None,
            metadata=dict(noted) or None,
        )
        await create_or_update(
            lambda: self._jetstream.add_stream(config),
            lambda: self._jetstream.update_stream(config),
            APIError,
            lambda error: error.err_code,
        )

    async def _settings_noted(self) -> dict[str, str]:
        try:
            info = await self._jetstream.stream_info(self._stream)
        except NotFoundError:
            return {}
        return kept_metadata(info.config.metadata or {})

    async def noted(self, name: str) -> str:
        """What was noted of the bucket in its settings, which lie in a file of their own."""
        with self._told():
            return (await self._settings_noted()).get(name, "")

    async def note(self, name: str, value: str) -> None:
        """Note something of the bucket beside its entries, unless it stands there already."""
        with self._told():
            noted = await self._settings_noted()
            if noted.get(name) != value:
                await self._make({**noted, name: value})

    async def last_revision(self) -> int:
        """The revision of the last write, 0 if there was none."""
        with self._told():
            info = await self._jetstream.stream_info(self._stream)
        return info.state.last_seq

    async def last_told(self, pattern: str) -> int:
        """The revision up to which who follows a pattern is told, once all is.

        A fence, which the active member of a trio writes from time to time, is told to nobody.
        """
        if self._replicas > 1:
            last = await self._last_matching(pattern)
            # Where the last one is damaged the server finds none.
            if last or not await self._keys(pattern):
                return last
        return await self.last_revision()

    async def written_at(self, revision: int) -> int | None:
        """When a revision was written, in wall milliseconds; None if it is overwritten.

        Revision 0 is the bucket's making.
        """
        with self._told():
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

    async def read(self, key: str) -> BucketEntry | None:
        """What lies at the key, be it deleted or broken; None if nothing does."""
        read = 0
        for _ in range(READS_MAX):
            with self._told():
                message = await self._last(key)
                if message is None:
                    return None
                entry = await self._opened(key, message, message.seq or 0)
            if entry:
                return entry
            if message.seq == read:
                # Nobody wrote it anew, and it is not whole.
                return self._broken(key, message)
            read = message.seq or 0
        said = f"the entry at {key} was written anew at each of {READS_MAX} reads: try again"
        raise SpaceError("ServiceUnavailable", said)

    @staticmethod
    def _broken(key: str, message: RawStreamMsg) -> BucketEntry:
        parts = None
        with suppress(SpaceError):
            parts = parts_named(key, message.data or b"")
        return BucketEntry(key, b"", message.seq or 0, deleted=False, parts=parts, broken=True)

    async def write(
        self,
        key: str,
        packed: bytes,
        expected: int,
        *,
        token: str = "",
        former: Parts | None = None,
        deleted: bool = False,
    ) -> int | None:
        """The new revision; None if the key is not at revision `expected` (0: never written).

        `token` names the parts, should the value need some; no two writes may have the same.
        `former` are those of the value that this one replaces.
        """
        pieces = split(packed)
        parts = Parts(key, token, len(pieces)) if pieces else None
        with self._told():
            if parts:
                await self._write_parts(parts, pieces, deleted=deleted)
            # The parts lie there before the entry that names them does.
            revision = await self._put(
                key, parts.named() if parts else packed, expected, _deleting() if deleted else {}
            )
            outlived = former if revision else parts
            if outlived:
                await self._purge(outlived)
        return revision

    async def last_readable(self) -> int:
        """The highest revision that can be read, 0 if none can."""
        return await self._last_matching(">")

    async def mended_at(self) -> int:
        """The revision at which what could not be read was left out, of late; 0 if nothing was."""
        with self._told():
            message = await self._last(LOSS)
        return message.seq or 0 if message is not None else 0

    async def mark_loss(self) -> None:
        """Say for a while that it lost some, as of one that was made whole."""
        with self._told():
            lasting = {"Nats-TTL": f"{MARKED_SECONDS}s"}
            await self._put(LOSS, b"", await self._last_matching(LOSS), lasting)

    async def keeps(self, key: str) -> bool:
        """Whether the server counts an entry at the key, be it one that cannot be read."""
        return bool(await self._keys(key))

    async def sweep(self, now_ms: int) -> None:
        """Remove parts that no entry came to name, as when a writer ended between the two."""
        with self._told():
            found = await self._jetstream.stream_info(self._stream, self._prefix + EVERY_PART)
            subjects = found.state.subjects or {}
            first = {part_of(subject.removeprefix(self._prefix)): subject for subject in subjects}
            for (key, token), subject in first.items():
                named = await self._last(key)
                parts = parts_named(key, named.data or b"") if named else None
                if parts and parts.token == token:
                    continue
                part = await self._last(subject.removeprefix(self._prefix))
                if part and part.time and part.time.timestamp() * 1000 < now_ms - STRAY_MS_MIN:
                    await self._purge(Parts(key, token, 0))

    async def _last(self, key: str) -> RawStreamMsg | None:
        subject = self._prefix + key
        # Of several servers any would answer a direct get, also one that is behind.
        direct = self._replicas == 1
        try:
            return await self._jetstream.get_last_msg(self._stream, subject, direct=direct)
        except NotFoundError:
            return None

    async def _put(
        self, key: str, stored: bytes, expected: int, more: Mapping[str, str]
    ) -> int | None:
        headers = {EXPECTED_SEQUENCE: str(expected), CHECKSUM: _checksum(key, stored)} | REPLACES
        headers |= more
        entry = Outgoing(self._prefix + key, stored, header_lines(headers))
        fenced = self._fenced
        if fenced is not None:
            return await written_surely(
                lambda: put_fenced(fenced, self._prefix + GUARD, entry),
                lambda: self._lies_at(key, stored, expected, is_deletion="KV-Operation" in more),
            )
        try:
            with answered_once():
                kept = await self._jetstream.publish(entry.subject, stored, headers=headers)
        except APIError as error:
            if error.err_code == _WRONG_LAST:
                return None
            raise
        return kept.seq

    async def _lies_at(
        self, key: str, stored: bytes, expected: int, *, is_deletion: bool
    ) -> int | None:
        """Where the very same lies that was not answered; as `written_surely` takes it."""
        last = await self._last(key)
        revision = (last.seq or 0) if last is not None else 0
        if revision == expected:
            raise Unconfirmed(f"the entry at {key} was not confirmed in time")
        headers = (last.headers or {}) if last is not None else {}
        is_same = last is not None and (last.data or b"") == stored
        if is_same and ("KV-Operation" in headers) == is_deletion:
            return revision
        if is_deletion:
            # Made anew since, and perhaps by who saw that it was gone: that one is not deleted.
            said = f"another wrote there since; {UNKNOWN}"
            raise SpaceError("ServiceUnavailable", said)
        return None

    async def _write_parts(self, parts: Parts, pieces: Iterable[bytes], *, deleted: bool) -> None:
        headers = {"Nats-TTL": f"{PARTS_OF_DELETIONS_KEPT_SECONDS}s"} if deleted else None
        for key, piece in zip(parts.each(), pieces, strict=True):
            await self._jetstream.publish(self._prefix + key, piece, headers=headers)

    async def _purge(self, parts: Parts) -> None:
        # What stays after a failure is swept at a later start.
        with suppress(nats.errors.Error, JetStreamError, TimeoutError):
            await self._jetstream.purge_stream(self._stream, subject=self._prefix + parts.pattern)

    async def _purge_replaced(self, entry: BucketEntry | None, seen: Collection[str]) -> None:
        """Remove what a deletion replaced, and what was read before it all the same.

        The server writes the deletion first, then that the other is gone: if it is killed between
        the two, both are there. The other is the last one again once the deletion is forgotten.
        """
        if entry is None or not entry.deleted or entry.key not in seen:
            return
        # What stays after a failure is found by the next listing.
        with suppress(nats.errors.Error, JetStreamError, TimeoutError):
            await self._jetstream.purge_stream(
                self._stream, seq=entry.revision, subject=self._prefix + entry.key
            )

    async def _opened(
        self, key: str, message: Msg | RawStreamMsg, revision: int
    ) -> BucketEntry | None:
        """The entry of a message.

        None if its parts are gone, since it is not the last any more, or if it is damaged.
        """
        headers, stored = message.headers or {}, message.data or b""
        if headers.get(CHECKSUM, "") not in {"", _checksum(key, stored)}:
            logger.error("the entry at %s is damaged on the disk, and lost", key)
            return None
        parts = parts_named(key, stored)
        if parts:
            pieces = [await self._last(part) for part in parts.each()]
            if not all(pieces):
                return None
            stored = b"".join(piece.data or b"" for piece in pieces if piece)
        deleted = "KV-Operation" in headers
        return BucketEntry(key, unpack(stored), revision, deleted, parts)

    async def list(self, pattern: str) -> AsyncGenerator[BucketEntry, None]:
        """What lies at the keys that match, in order of revision; of one key the last one counts.

        So it lies there at a moment after all was read: it is read on until nothing newer is there.
        How many the server says are left tells no end, if something is written meanwhile.
        """
        position, seen, looks = 0, set[str](), 0
        end = await self._last_matching(pattern)
        if not end:
            # Where the last one is damaged the server finds none.
            async for each in self._read_each(pattern, seen):
                yield each
            return
        async with aclosing(self._pull_all(pattern)) as pulled:
            async for message in pulled:
                if message:
                    key, position = self._place(message)
                    with self._told():
                        entry = await self._opened(key, message, position)
                    # Its parts are gone if it was written anew meanwhile.
                    entry = entry or await self.read(key)
                    await self._purge_replaced(entry, seen)
                    seen.add(key)
                    if entry and not entry.broken:
                        yield entry
                if position >= end or not message:
                    end, looks = await self._last_matching(pattern), looks + 1
                    if position >= end:
                        return
                if looks == LOOKS_MAX:
                    break
            else:
                said = "the server fell silent while listing: try again"
                raise SpaceError("ServiceUnavailable", said)
        # It is written to without a pause. What was always written anew before it came is read.
        async for each in self._read_each(pattern, seen):
            yield each

    async def _read_each(
        self, pattern: str, seen: Collection[str]
    ) -> AsyncGenerator[BucketEntry, None]:
        """What lies at each key that matches and was not seen."""
        for key in await self._keys(pattern):
            entry = None if key in seen else await self.read(key)
            if entry and not entry.broken:
                yield entry

    async def _last_matching(self, pattern: str) -> int:
        """The highest revision that a key that matches has now, 0 if there is none."""
        with self._told():
            try:
                message = await self._jetstream.get_last_msg(self._stream, self._prefix + pattern)
            except NotFoundError:
                return 0
        return message.seq or 0

    async def _keys(self, pattern: str) -> tuple[str, ...]:
        with self._told():
            found = await self._jetstream.stream_info(self._stream, self._prefix + pattern)
        subjects = found.state.subjects or {}
        return tuple(subject.removeprefix(self._prefix) for subject in subjects)

    async def follow(self, pattern: str, start: int) -> AsyncGenerator[BucketEntry | None, None]:
        """Entries from revision `start` on; None when all is well and nothing new; ends if lost.

        One whose parts are gone is left out: what was written instead of it follows.
        """
        async with aclosing(self._pull(start, pattern)) as pulled:
            async for message in pulled:
                if message is None:
                    yield None
                    continue
                key, revision = self._place(message)
                with self._told():
                    entry = await self._opened(key, message, revision)
                    last = None if entry else await self._last(key)
                if entry:
                    yield entry
                elif last is None or (last.seq or 0) <= revision:
                    said = f"the entry at {key} is not whole: list again"
                    raise SpaceError("ServiceUnavailable", said)

    async def _pull_all(self, pattern: str) -> AsyncGenerator[Msg | None, None]:
        """All messages, and None when idle.

        On a trio a consumer may end with the server that it is at: another one goes on.
        """
        position = 0
        for _ in range(self._replicas):
            async with aclosing(self._pull(position + 1, pattern)) as pulled:
                await anext(pulled)
                async for message in pulled:
                    if message:
                        _, position = self._place(message)
                    yield message

    async def _pull(self, start: int, pattern: str) -> AsyncGenerator[Msg | None, None]:
        """Messages from revision `start` on; None at the start and when idle."""
        config = ConsumerConfig(
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=start,
            filter_subject=self._prefix + pattern,
            ack_policy=AckPolicy.NONE,
            mem_storage=True,
            num_replicas=1,
            inactive_threshold=CONSUMER_KEPT_SECONDS,
        )
        before = losses(self._connection)
        with self._told():
            consumer = await self._jetstream.add_consumer(self._stream, config)
        try:
            yield None
            async with aclosing(self._batches(consumer.name, before)) as messages:
                async for message in messages:
                    yield message
        finally:
            with suppress(nats.errors.Error, JetStreamError, TimeoutError, OSError):
                if self._replicas == 1:
                    await self._jetstream.delete_consumer(self._stream, consumer.name)
                else:
                    # It may be at a server that is gone: then it is deleted, and nobody answers.
                    subject = f"{self._api}.CONSUMER.DELETE.{self._stream}.{consumer.name}"
                    await self._connection.publish(subject)

    async def _batches(self, consumer: str, before: int) -> AsyncGenerator[Msg | None, None]:
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
        left = unheard = 0
        try:
            while True:
                if not left:
                    await self._connection.publish(subject, ask, reply=inbox)
                    left = BATCH
                message = await self._next(subscription, before)
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
                    case "503" if self._replicas > 1 and unheard < UNHEARD_MAX:
                        # The server of the consumer made it, and ours has not heard of it yet.
                        left, unheard = 0, unheard + 1
                        await asyncio.sleep(PAUSE_SECONDS)  # noqa: TID251 - no decision hangs on it
                    case _:
                        return
        except (nats.errors.Error, OSError):
            return
        finally:
            with suppress(nats.errors.Error):
                await subscription.unsubscribe()

    async def _next(self, subscription: Subscription, before: int) -> Msg | None:
        """The next message; None if the server fell silent, or it or another was lost meanwhile.

        A server that starts anew has forgotten the consumer, and what it was asked for. `before` is
        how often that was so when the consumer was made.
        """
        for _ in range(SILENCE_LOOKS):
            try:
                return await subscription.next_msg(timeout=SILENCE_SECONDS / SILENCE_LOOKS)
            except nats.errors.TimeoutError:
                if losses(self._connection) != before:
                    return None
        return None

    def _place(self, message: Msg) -> tuple[str, int]:
        """The key and the revision of a delivered message."""
        return message.subject.removeprefix(self._prefix), message.metadata.sequence.stream


def _deleting() -> dict[str, str]:
    return {"KV-Operation": "DEL", "Nats-TTL": f"{DELETIONS_KEPT_SECONDS}s"}


def stream_of(bucket: str) -> str:
    """The stream in which a bucket lies."""
    return f"KV_{bucket}"


def fence_of(bucket: str) -> str:
    """The subject of the fence of a bucket."""
    return f"$KV.{bucket}.{FENCE}"


def mark_of_loss(bucket: str) -> str:
    """The subject under which it stands that a bucket lost some, for a while."""
    return f"$KV.{bucket}.{LOSS}"


def _checksum(key: str, stored: bytes) -> str:
    """The sum over an entry as it is stored: no damage makes one of it that lay elsewhere."""
    return blake2b(stored, digest_size=_CHECKSUM_BYTES, key=key.encode()[:64]).hexdigest()
