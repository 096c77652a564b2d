"""A backup in one file: a tar of streams and small files, which a restore reads.

It is in clear, unless it waits beside a store that is encrypted. Form 2 holds the messages of each
stream. Form 1, of releases before, holds the server's own snapshot of it.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from leafcast.backups.centre_files import KEYS_FILE, centre_files, tree_of
from leafcast.backups.centre_streams import (
    PASSES_MAX,
    RELAY,
    SPACE,
    STREAMS,
    CentreServer,
    account,
)
from leafcast.backups.refusals import (
    COPY_AGAIN,
    NO_BACKUP,
    BackupDamaged,
    BackupUnusable,
    disk_remedy,
)
from leafcast.backups.sealed_file import SealedReader, SealedWriter, is_sealed
from leafcast.backups.stored_messages import (
    MessagesDamaged,
    decode_messages,
    encode_message,
)
from leafcast.data_dir import DataDir
from relay.adapters.jetstream.connection import Connection
from relay.adapters.jetstream.stream_contents import (
    StreamForm,
    newest_places,
    read_from,
    stream_form,
)
from relay.adapters.jetstream.stream_reader import Stored
from relay.adapters.server.store_key import StoreKey
from relay.atomic_file import sync_folder
from relay.ports import BusBroken, Clock
from schemas.values.codec import from_json

SNAPSHOTS, MESSAGES = 1, 2
"""The forms: what streams are kept as."""
MANIFEST = "backup.json"
_AT_ONCE = 1024 * 1024

ByteTarget = IO[bytes] | SealedWriter
"""Where bytes are written to, one behind the other."""


@dataclass(frozen=True, slots=True)
class Backup:
    """What a backup says of itself."""

    tree: str
    # Milliseconds since 1970.
    time_ms: int
    # By account and name: settings and state of each stream.
    streams: Mapping[str, Mapping[str, Any]]
    form: int = MESSAGES
    # Whether no stream took anything while the others were read; former releases did not look.
    one_moment: bool = True
    # SHA-256 of each member but the last, in hex; former releases wrote none.
    digests: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StreamMessages:
    """A stream for a file: its settings, and its messages in order."""

    form: StreamForm
    messages: Iterable[Stored]


async def write_backup(
    file: Path, place: DataDir, server: CentreServer, clock: Clock, key: StoreKey | None = None
) -> Backup:
    """Write the backup of a running centre, whole or not at all; replaces what is there.

    With a key nothing of it lies on the disk in clear. Raises BackupUnusable, BusBroken.
    """
    with replacing(file, key) as whole, BackupTar(whole, file.parent, key) as tar:
        async with (
            account(server, RELAY, "backup") as relay,
            account(server, SPACE, "backup") as space,
        ):
            one_moment = await _add_streams(tar, {RELAY: relay, SPACE: space}, clock)
        tar.add_files(centre_files(place))
        return tar.end(tree_of(place), clock.now().wall_ms, one_moment=one_moment)


class BackupTar:
    """A backup being written into a file; `folder` has room for what a stream takes."""

    def __init__(self, whole: ByteTarget, folder: Path, key: StoreKey | None = None) -> None:
        self._tar = tarfile.open(fileobj=whole, mode="w")  # noqa: SIM115 - closed on the way out
        self._folder, self._key = folder, key
        self._forms: dict[str, dict[str, Any]] = {}
        self._digests: dict[str, str] = {}

    def __enter__(self) -> BackupTar:
        return self

    def __exit__(self, *_: object) -> None:
        self._tar.close()

    def add_stream(self, name: str, stream: StreamMessages) -> None:
        """Add a stream; raises OSError, and what its messages raise."""
        with self.spool(name, stream.form) as spool:
            for message in stream.messages:
                spool.take(message)

    @contextmanager
    def spool(self, name: str, form: StreamForm) -> Iterator[MessageSpool]:
        """Take the messages of a stream one by one."""
        with tempfile.TemporaryFile(dir=self._folder) as data:
            with _written(data, self._key) as target:
                spool = MessageSpool(target, form.last)
                yield spool
            state = {"messages": spool.count, "last_seq": spool.last}
            self._forms[name] = {"config": dict(form.config), "state": state}
            self._add(f"streams/{name}", _read_back(data, self._key, self._folder))

    def add_files(self, files: Mapping[str, bytes]) -> None:
        """Add small files by name."""
        for name, data in files.items():
            self._add(name, io.BytesIO(data))

    def end(self, tree: str, time_ms: int, *, one_moment: bool) -> Backup:
        """Say what it is; nothing more is added."""
        form = {
            "format": MESSAGES,
            "tree": tree,
            "timeMs": time_ms,
            "streams": self._forms,
            "oneMoment": one_moment,
            "digests": dict(self._digests),
        }
        form["digest"] = _form_digest(form)
        self._add(MANIFEST, io.BytesIO(json.dumps(form, indent=2).encode()))
        return Backup(tree, time_ms, self._forms, one_moment=one_moment)

    def _add(self, name: str, source: IO[bytes]) -> None:
        info = tarfile.TarInfo(name)
        info.mode, info.size = 0o600, source.seek(0, os.SEEK_END)
        source.seek(0)
        self._digests[name] = _digest_of(source)
        source.seek(0)
        self._tar.addfile(info, source)


@dataclass(slots=True)
class MessageSpool:
    """Messages of a stream, one behind the other."""

    data: ByteTarget
    # Of the stream: messages above it are not looked at yet.
    last: int
    count: int = 0

    def take(self, message: Stored) -> None:
        self.count += 1
        self.last = max(self.last, message.sequence)
        encoded = encode_message(message)
        self.data.write(len(encoded).to_bytes(4, "big") + encoded)


async def _add_streams(tar: BackupTar, connections: Mapping[str, Connection], clock: Clock) -> bool:
    """Add all streams; whether they are as they were at one moment, if it comes soon enough."""
    with ExitStack() as stack:
        spooled = []
        for holder, stream in STREAMS:
            connection = connections[holder]
            form = await stream_form(connection, stream)
            if form is not None:
                spool = stack.enter_context(tar.spool(f"{holder}/{stream}", form))
                spooled.append(_SpooledStream(connection, clock, stream, form, spool))
        for it in spooled:
            await it.read()
        for _ in range(PASSES_MAX):
            # What came meanwhile overwrites what was written here: it comes after it, and wins.
            if not any([await it.catch_up() for it in spooled]):
                return True
    return False


@dataclass(frozen=True, slots=True)
class _SpooledStream:
    """A stream that is written as it goes on."""

    connection: Connection
    clock: Clock
    stream: str
    form: StreamForm
    spool: MessageSpool

    async def read(self) -> None:
        """Write what it keeps."""
        places = await newest_places(self.connection, self.clock, self.stream)
        newest = {it.sequence for it in places.values()}

        async def take(stored: Stored) -> None:
            if stored.sequence > self.form.last or stored.sequence in newest:
                self.spool.take(stored)

        await read_from(self.connection, self.clock, self.stream, 1, take)

    async def catch_up(self) -> bool:
        """Write what it took since; whether it did. Raises BusBroken for another stream."""
        form = await stream_form(self.connection, self.stream)
        if form is None or form.created != self.form.created or form.last < self.spool.last:
            raise BusBroken(f"the stream {self.stream} was made anew amid its backup")
        if form.last == self.spool.last:
            return False

        async def take(stored: Stored) -> None:
            self.spool.take(stored)

        await read_from(self.connection, self.clock, self.stream, self.spool.last + 1, take)
        self.spool.last = max(self.spool.last, form.last)
        return True


def read_backup(file: Path, tar: tarfile.TarFile) -> Backup:
    """What a backup says of itself; raises BackupUnusable."""
    try:
        member = tar.extractfile(MANIFEST)
        form = from_json(member.read()) if member is not None else {}
        if form["format"] not in (SNAPSHOTS, MESSAGES):
            reason = f"it has format {form['format']!r}, and this program reads {MESSAGES}"
            raise BackupUnusable(file, reason, "use the version of leafcast that wrote it")
        streams = dict(form["streams"])
        when, one_moment = int(form["timeMs"]), form.get("oneMoment") is not False
        digests = dict(form.get("digests", {}))
        found = Backup(str(form["tree"]), when, streams, form["format"], one_moment, digests)
        said = form.pop("digest", None)
        is_damaged = said is not None and said != _form_digest(form)
        names = set(tar.getnames())
    except (KeyError, ValueError, TypeError, tarfile.TarError) as error:
        raise BackupUnusable(file, "it is no backup, or was cut off", NO_BACKUP) from error
    if is_damaged:
        raise BackupDamaged(file, f"its {MANIFEST} is damaged", COPY_AGAIN)
    missing = {KEYS_FILE, *(f"streams/{name}" for name in found.streams)} - names
    if missing:
        raise BackupUnusable(file, f"it lacks {', '.join(sorted(missing))}", NO_BACKUP)
    return found


def check_digests(file: Path, tar: tarfile.TarFile, found: Backup) -> None:
    """Raises BackupDamaged, naming what is not as it was written."""
    # The last one of its name says what the backup is; one before it is a file of the tree.
    members = {it.name: it for it in tar.getmembers()[:-1]}
    for name, digest in found.digests.items():
        source = tar.extractfile(members[name]) if name in members else None
        if source is None:
            raise BackupDamaged(file, f"it lacks {name}", COPY_AGAIN)
        with source:
            if _digest_of(source) != digest:
                raise BackupDamaged(file, f"its {name} is damaged", COPY_AGAIN)


def _digest_of(source: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while data := source.read(_AT_ONCE):
        digest.update(data)
    return digest.hexdigest()


def _form_digest(form: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(form, sort_keys=True).encode()).hexdigest()


def stream_messages(file: Path, tar: tarfile.TarFile, name: str) -> Iterator[Stored]:
    """The messages of a stream in a file of form 2, in order; raises BackupUnusable."""
    member = tar.extractfile(f"streams/{name}")
    assert member is not None
    with member:
        while head := member.read(4):
            size = int.from_bytes(head, "big")
            data = member.read(size)
            try:
                if len(data) < size:
                    raise MessagesDamaged("it ends within a message")  # noqa: TRY301
                found = list(decode_messages(data))
            except MessagesDamaged as error:
                reason = f"its stream {name} is damaged: {error}"
                raise BackupUnusable(file, reason, "name another backup") from error
            yield from found


@contextmanager
def replacing(file: Path, key: StoreKey | None = None) -> Iterator[ByteTarget]:
    """A file that takes the place of this one once it is whole; for its owner only.

    Raises BackupUnusable.
    """
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    except OSError as error:
        remedy = "name a file in another folder"
        raise BackupUnusable(file, str(error.strerror), remedy) from error
    part = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as whole:
            with _written(whole, key) as target:
                yield target
            whole.flush()
            os.fsync(whole.fileno())
        part.replace(file)
        sync_folder(file.parent)
    except OSError as error:
        raise BackupUnusable(file, str(error.strerror or error), disk_remedy(error)) from error
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def _written(file: IO[bytes], key: StoreKey | None) -> Iterator[ByteTarget]:
    """What is written to a file, which a key seals."""
    if key is None:
        yield file
        return
    writer = SealedWriter(file, key)
    yield writer
    writer.finish()


def _read_back(file: IO[bytes], key: StoreKey | None, name: Path) -> IO[bytes]:
    """What was written; raises BackupUnusable."""
    return file if key is None else io.BufferedReader(SealedReader(file, key, name))


@contextmanager
def opened(file: Path, key: StoreKey | None = None) -> Iterator[tarfile.TarFile]:
    """A file of either form, and one that is sealed with the key; raises BackupUnusable."""
    with ExitStack() as stack:
        try:
            data: IO[bytes] = stack.enter_context(file.open("rb"))
            if is_sealed(data):
                if key is None:
                    remedy = "name the file with the key of the store by --store-key-file"
                    raise BackupUnusable(file, "it is sealed, and there is no key", remedy)
                data = _read_back(data, key, file)
            tar = stack.enter_context(tarfile.open(fileobj=data, mode="r:"))
        except FileNotFoundError as error:
            raise BackupUnusable(file, "there is no such file", "name another one") from error
        except (OSError, tarfile.TarError) as error:
            raise BackupUnusable(file, "it cannot be read as a backup", NO_BACKUP) from error
        yield tar
