"""One more backup in a folder: only what no piece there holds yet is read whole and written.

Nothing is taken for there that was not seen: pieces that are lost or cut off are written anew.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from leafcast.backups.backup_folder import CATALOG, PREFIX, SUFFIX, BackupFolder
from leafcast.backups.backup_index import (
    BackupIndex,
    IndexLine,
    StreamIndex,
    UsedSegment,
    close_index,
)
from leafcast.backups.backup_settings import FILE as SETTINGS_FILE
from leafcast.backups.backup_settings import BackupSettings
from leafcast.backups.centre_files import centre_files, tree_of
from leafcast.backups.centre_streams import (
    PASSES_MAX,
    RELAY,
    SPACE,
    STREAMS,
    CentreServer,
    account,
)
from leafcast.backups.refusals import NO_ROOM
from leafcast.backups.segments import (
    SEGMENT_BYTES,
    Segment,
    StreamCatalog,
    alive_in,
    left_to_read,
    reusable,
)
from leafcast.backups.stored_messages import encode_message
from leafcast.data_dir import DataDir
from relay.adapters.jetstream.connection import Connection
from relay.adapters.jetstream.stream_contents import newest_places, read_from, stream_form
from relay.adapters.jetstream.stream_reader import Stored
from relay.ports import Clock
from schemas.content.operator_box import box_name, close_box, open_box, public_half
from schemas.content.sealing import NotOpened
from schemas.values.codec import from_json


@dataclass(frozen=True, slots=True)
class WrittenBackup:
    """What one backup came to."""

    file: str
    time_ms: int
    # What it took beside former ones.
    bytes: int
    # Of all streams: messages that it holds.
    messages: int


@dataclass(slots=True)
class _Pieces:
    """The pieces of a folder, as they are found and written."""

    folder: BackupFolder
    settings: BackupSettings
    there: dict[str, int]
    written: int = 0

    async def put(self, messages: list[Stored]) -> Segment:
        """Write messages as a segment; raises OSError."""
        return await self.folder.thread.run(self._put, messages)

    def _put(self, messages: list[Stored]) -> Segment:
        plain = b"".join(map(encode_message, messages))
        name = box_name(self.settings.secret, self.settings.public, plain)
        box = close_box(self.settings.secret, self.settings.public, zlib.compress(plain, 1))
        if self.there.get(name) != len(box):
            self.folder.put_piece(name, box)
            self.there[name] = len(box)
            self.written += len(box)
        digest = hashlib.sha256(plain).hexdigest()
        sequences = tuple(it.sequence for it in messages)
        return Segment(name, digest, len(box), sequences, tuple(it.time_ms for it in messages))


async def write_piecewise(
    folder: BackupFolder,
    settings: BackupSettings,
    place: DataDir,
    server: CentreServer,
    clock: Clock,
) -> WrittenBackup:
    """Write a backup of a running centre, and let go of those that are not to be kept.

    Raises BackupUnusable, OSError, BusBroken; then the folder holds the backups that it held.
    """
    tree = tree_of(place)
    # Whatever touches the folder may hang with its disk, and the centre must not.
    await folder.thread.run(folder.check, tree)
    async with _alone(folder):
        # What an attempt before left may be what fills the disk.
        await folder.thread.run(folder.sweep)
        try:
            written = await _write_with_room(folder, settings, place, server, clock)
        except FileNotFoundError:
            # The disk may have gone meanwhile: that is what is said then.
            await folder.thread.run(folder.check, tree)
            raise
        await folder.thread.run(folder.keep_newest, settings.keep)
    return written


async def _write_with_room(
    folder: BackupFolder,
    settings: BackupSettings,
    place: DataDir,
    server: CentreServer,
    clock: Clock,
) -> WrittenBackup:
    """Write one; the oldest go first where there is no room for one more, and never the last."""
    count = sum(it.line is not None for it in await folder.thread.run(folder.backups))
    fewer = [it for it in (settings.keep, settings.keep - 1) if 0 < it < count]
    while True:
        try:
            return await _write(folder, settings, place, server, clock)
        except OSError as error:
            if error.errno not in NO_ROOM or not fewer:
                raise
        await folder.thread.run(folder.keep_newest, fewer.pop(0))


@asynccontextmanager
async def _alone(folder: BackupFolder) -> AsyncIterator[None]:
    """Write alone. Who is cancelled does not wait for a disk that hangs; it is let go later."""
    stack, is_cancelled = ExitStack(), False
    try:
        await folder.thread.run(stack.enter_context, folder.alone())
        yield
    except asyncio.CancelledError:
        is_cancelled = True
        raise
    finally:
        closing = folder.thread.begin(stack.close)
        if not is_cancelled:
            await closing


async def _write(
    folder: BackupFolder,
    settings: BackupSettings,
    place: DataDir,
    server: CentreServer,
    clock: Clock,
) -> WrittenBackup:
    before = await folder.thread.run(_read_catalog, folder, settings)
    pieces = _Pieces(folder, settings, await folder.thread.run(folder.sizes))
    began_ms, copied, one_moment = await _copy_all(server, clock, before, pieces)
    # Settings are kept once a first backup by them is there.
    files = {**centre_files(place), SETTINGS_FILE: settings.encoded().encode()}
    streams = {name: it.index for name, it in copied.items()}
    index = BackupIndex(streams, files, one_moment)
    kept = await folder.thread.run(folder.backups)
    number = 1 + max((it.line.number for it in kept if it.line), default=0)
    line = IndexLine(tree_of(place), number, began_ms, settings.key, index.pieces)
    data = close_index(index, line, settings.secret, settings.public)
    file = _file_name(line)
    # The disk may be another one by now, or none.
    await folder.thread.run(folder.check, line.tree, index.pieces)
    await folder.thread.run(folder.write, file, data)
    catalog = _encode_catalog(settings, {name: it.catalog for name, it in copied.items()})
    await folder.thread.run(folder.write, CATALOG, catalog)
    messages = sum(len(it.alive) for stream in index.streams.values() for it in stream.segments)
    return WrittenBackup(file, began_ms, pieces.written + len(data), messages)


@dataclass(frozen=True, slots=True)
class _CopiedStream:
    """A stream in pieces: what is known of these from now on, and which messages count."""

    catalog: StreamCatalog
    index: StreamIndex


async def _copy_all(
    server: CentreServer,
    clock: Clock,
    known: Mapping[str, StreamCatalog],
    pieces: _Pieces,
) -> tuple[int, dict[str, _CopiedStream], bool]:
    """When it began, all streams, and whether these are of one moment: that takes some passes.

    A ledger and a space of two moments differ, and a centre restored of them would issue what
    differs: perhaps over something newer at the edges. Each pass but the first reads little.
    """
    async with account(server, RELAY, "backup") as relay, account(server, SPACE, "backup") as space:
        connections = {RELAY: relay, SPACE: space}
        began_ms, copied = 0, dict[str, _CopiedStream]()
        for _ in range(PASSES_MAX):
            began_ms = clock.now().wall_ms
            copied = {}
            for holder, stream in STREAMS:
                name, connection = f"{holder}/{stream}", connections[holder]
                found = await _copy(connection, clock, stream, known.get(name), pieces)
                if found is not None:
                    copied[name] = found
            known = {name: it.catalog for name, it in copied.items()}
            if await _stood_still(connections, copied):
                return began_ms, copied, True
    return began_ms, copied, False


async def _stood_still(
    connections: Mapping[str, Connection], copied: Mapping[str, _CopiedStream]
) -> bool:
    """Whether no stream took anything since it was copied."""
    for name, it in copied.items():
        holder, _, stream = name.partition("/")
        form = await stream_form(connections[holder], stream)
        if form is None or (form.created, form.last) != (it.catalog.created, it.index.last):
            return False
    return True


async def _copy(
    connection: Connection,
    clock: Clock,
    stream: str,
    known: StreamCatalog | None,
    pieces: _Pieces,
) -> _CopiedStream | None:
    """A stream's messages, as far as no piece has them, into pieces; None without a stream."""
    form = await stream_form(connection, stream)
    if form is None:
        return None
    places = await newest_places(connection, clock, stream)
    listed = {it.sequence: it.time_ms for it in places.values()}
    segments = reusable(known, form.created, listed, pieces.there)
    newest = {subject: it.sequence for subject, it in places.items()}
    copy = _Copy(pieces.put, left_to_read(segments, listed), form.last, newest)
    first = min(copy.wanted, default=form.last + 1)
    await read_from(connection, clock, stream, first, copy.take)
    await copy.end()
    segments += copy.segments
    alive, last = set(newest.values()), max(form.last, copy.last)
    used = [UsedSegment(it.piece, it.digest, alive_in(it, alive)) for it in segments]
    index = StreamIndex(form.config, last, [it for it in used if it.alive])
    return _CopiedStream(StreamCatalog(form.created, segments), index)


@dataclass(slots=True)
class _Copy:
    """Messages on their way into segments: those that are wanted, and those that came since."""

    put: Callable[..., object]
    wanted: frozenset[int]
    # Up to where the stream was listed.
    listed: int
    # By subject, what the stream keeps of it; what comes takes the place of what it overwrote.
    newest: dict[str, int]
    segments: list[Segment] = field(default_factory=list)
    last: int = 0
    _waiting: list[Stored] = field(default_factory=list)
    _size: int = 0

    async def take(self, stored: Stored) -> None:
        self.last = stored.sequence
        if stored.sequence not in self.wanted and stored.sequence <= self.listed:
            return
        self.newest[stored.subject] = stored.sequence
        self._waiting.append(stored)
        self._size += len(stored.data)
        if self._size >= SEGMENT_BYTES:
            await self.end()

    async def end(self) -> None:
        """Write what waits."""
        if self._waiting:
            waiting, self._waiting, self._size = self._waiting, [], 0
            self.segments.append(await self.put(waiting))  # type: ignore[misc]


def _file_name(line: IndexLine) -> str:
    when = datetime.fromtimestamp(line.time_ms / 1000, UTC)
    return f"{PREFIX}{line.number:06d}-{when:%Y%m%dT%H%M%SZ}{SUFFIX}"


def _encode_catalog(settings: BackupSettings, catalogs: dict[str, StreamCatalog]) -> bytes:
    """The catalog, closed for the centre itself: the operator needs none."""
    form = {
        "key": settings.key,
        "streams": {name: catalog.form() for name, catalog in catalogs.items()},
    }
    own = public_half(settings.secret)
    return close_box(settings.secret, own, zlib.compress(json.dumps(form).encode(), 1))


def _read_catalog(folder: BackupFolder, settings: BackupSettings) -> dict[str, StreamCatalog]:
    """What the centre noted of the pieces; nothing if that is lost, damaged or another key's."""
    try:
        form = from_json(zlib.decompress(open_box(settings.secret, folder.catalog())))
        if form["key"] != settings.key:
            return {}
        return {str(name): StreamCatalog.read(it) for name, it in form["streams"].items()}
    except (NotOpened, KeyError, ValueError, TypeError, AttributeError, zlib.error):
        return {}
