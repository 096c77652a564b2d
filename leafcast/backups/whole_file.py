"""A backup in one file, in clear: a tar of streams and small files, which a restore reads.

Form 2 holds the messages of each stream. Form 1, of releases before, holds the server's own
snapshot of it.
"""

from __future__ import annotations

import io
import json
import os
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from leafcast.backups.centre_files import KEYS_FILE, centre_files, tree_of
from leafcast.backups.centre_streams import STREAMS, CentreServer, account
from leafcast.backups.refusals import NO_BACKUP, BackupUnusable
from leafcast.backups.stored_messages import (
    MessagesDamaged,
    decode_messages,
    encode_message,
    kept_headers,
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
from relay.atomic_file import sync_folder
from relay.ports import Clock
from schemas.values.codec import from_json

SNAPSHOTS, MESSAGES = 1, 2
"""The forms: what streams are kept as."""
MANIFEST = "backup.json"


@dataclass(frozen=True, slots=True)
class Backup:
    """What a backup says of itself."""

    tree: str
    # Milliseconds since 1970.
    time_ms: int
    # By account and name: settings and state of each stream.
    streams: Mapping[str, Mapping[str, Any]]
    form: int = MESSAGES


@dataclass(frozen=True, slots=True)
class StreamMessages:
    """A stream for a file: its settings, and its messages in order."""

    form: StreamForm
    messages: Iterable[Stored]


async def write_backup(file: Path, place: DataDir, server: CentreServer, clock: Clock) -> Backup:
    """Write the backup of a running centre, whole or not at all; replaces what is there.

    Raises BackupUnusable, BusBroken.
    """
    with replacing(file) as whole, BackupTar(whole, file.parent) as tar:
        for holder, stream in STREAMS:
            async with account(server, holder, "backup") as connection:
                await _add_stream(tar, connection, clock, f"{holder}/{stream}", stream)
        tar.add_files(centre_files(place))
        return tar.end(tree_of(place), clock.now().wall_ms)


class BackupTar:
    """A backup being written into a file; `folder` has room for what a stream takes."""

    def __init__(self, whole: IO[bytes], folder: Path) -> None:
        self._tar = tarfile.open(fileobj=whole, mode="w")  # noqa: SIM115 - closed on the way out
        self._folder = folder
        self._forms: dict[str, dict[str, Any]] = {}

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
            spool = MessageSpool(data)
            yield spool
            last = max(form.last, spool.last)
            state = {"messages": spool.count, "last_seq": last}
            self._forms[name] = {"config": dict(form.config), "state": state}
            self._add(f"streams/{name}", data)

    def add_files(self, files: Mapping[str, bytes]) -> None:
        """Add small files by name."""
        for name, data in files.items():
            self._add(name, io.BytesIO(data))

    def end(self, tree: str, time_ms: int) -> Backup:
        """Say what it is; nothing more is added."""
        form = {"format": MESSAGES, "tree": tree, "timeMs": time_ms, "streams": self._forms}
        self._add(MANIFEST, io.BytesIO(json.dumps(form, indent=2).encode()))
        return Backup(tree, time_ms, self._forms)

    def _add(self, name: str, source: IO[bytes]) -> None:
        info = tarfile.TarInfo(name)
        info.mode, info.size = 0o600, source.seek(0, os.SEEK_END)
        source.seek(0)
        self._tar.addfile(info, source)


@dataclass(slots=True)
class MessageSpool:
    """Messages of a stream, one behind the other."""

    data: IO[bytes]
    count: int = 0
    last: int = 0

    def take(self, message: Stored) -> None:
        self.count += 1
        self.last = message.sequence
        encoded = encode_message(message)
        self.data.write(len(encoded).to_bytes(4, "big") + encoded)


async def _add_stream(
    tar: BackupTar, connection: Connection, clock: Clock, name: str, stream: str
) -> None:
    form = await stream_form(connection, stream)
    if form is None:
        return
    newest = {it.sequence for it in (await newest_places(connection, clock, stream)).values()}
    with tar.spool(name, form) as spool:

        async def take(stored: Stored) -> None:
            # What came since may overwrite what was written here: it comes after it, and wins.
            if stored.sequence > form.last or stored.sequence in newest:
                spool.take(stored)

        await read_from(connection, clock, stream, 1, take)


def read_backup(file: Path, tar: tarfile.TarFile) -> Backup:
    """What a backup says of itself; raises BackupUnusable."""
    try:
        member = tar.extractfile(MANIFEST)
        form = from_json(member.read()) if member is not None else {}
        if form["format"] not in (SNAPSHOTS, MESSAGES):
            reason = f"it has format {form['format']!r}, and this program reads {MESSAGES}"
            raise BackupUnusable(file, reason, "use the version of leafcast that wrote it")
        streams = dict(form["streams"])
        found = Backup(str(form["tree"]), int(form["timeMs"]), streams, form["format"])
        names = set(tar.getnames())
    except (KeyError, ValueError, TypeError, tarfile.TarError) as error:
        raise BackupUnusable(file, "it is no backup, or was cut off", NO_BACKUP) from error
    missing = {KEYS_FILE, *(f"streams/{name}" for name in found.streams)} - names
    if missing:
        raise BackupUnusable(file, f"it lacks {', '.join(sorted(missing))}", NO_BACKUP)
    return found


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
            for message in found:
                yield _expecting_nothing(message)


def _expecting_nothing(message: Stored) -> Stored:
    headers = kept_headers(message.headers)
    return Stored(message.subject, message.data, headers, message.sequence, message.time_ms)


@contextmanager
def replacing(file: Path) -> Iterator[IO[bytes]]:
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
            yield whole
            whole.flush()
            os.fsync(whole.fileno())
        part.replace(file)
        sync_folder(file.parent)
    except OSError as error:
        raise BackupUnusable(file, str(error.strerror or error), "make room there") from error
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def opened(file: Path) -> Iterator[tarfile.TarFile]:
    """A file of either form; raises BackupUnusable."""
    with ExitStack() as stack:
        try:
            tar = stack.enter_context(tarfile.open(file, "r:"))
        except FileNotFoundError as error:
            raise BackupUnusable(file, "there is no such file", "name another one") from error
        except (OSError, tarfile.TarError) as error:
            raise BackupUnusable(file, "it cannot be read as a backup", NO_BACKUP) from error
        yield tar
