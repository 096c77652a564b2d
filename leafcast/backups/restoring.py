"""Putting a backup back: its files into a data directory, then its streams as the centre starts.

A tree must be stopped for the first step. The second waits in the data directory until it is done,
also over a loss of power.
"""

from __future__ import annotations

import hashlib
import shutil
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from leafcast.backups.backup_folder import PIECES, PREFIX, BackupFolder, KeptBackup
from leafcast.backups.backup_index import (
    BackupIndex,
    IndexLine,
    StreamIndex,
    UsedSegment,
    open_index,
    read_line,
)
from leafcast.backups.centre_files import (
    KEYS,
    TOKENS,
    TREE_FILES,
    checked_name,
    forget_drafts,
    putting_files,
    tree_of,
)
from leafcast.backups.centre_streams import (
    RELAY,
    SPACE,
    SPACES,
    STREAMS,
    CentreServer,
    account,
)
from leafcast.backups.operator_keys import OperatorKey
from leafcast.backups.refusals import NO_BACKUP, BackupDamaged, BackupUnusable
from leafcast.backups.stored_messages import (
    MessagesDamaged,
    MessagesDigest,
    decode_messages,
)
from leafcast.backups.whole_file import (
    MANIFEST,
    SNAPSHOTS,
    Backup,
    BackupTar,
    StreamMessages,
    check_digests,
    opened,
    read_backup,
    replacing,
    stream_messages,
)
from leafcast.data_dir import PLACING, RESTORING, DataDir, make_private
from leafcast.node.credentials.kept_store import kept_store
from relay.adapters.clock import SystemDice
from relay.adapters.jetstream.connection import Connection
from relay.adapters.jetstream.publish import (
    REPLACES,
    Outgoing,
    Publisher,
    header_lines,
)
from relay.adapters.jetstream.request_reply import CannotConnect, brief_connection
from relay.adapters.jetstream.stream_backup import restore_stream
from relay.adapters.jetstream.stream_contents import (
    StreamForm,
    is_of_members,
    make_anew,
    read_from,
)
from relay.adapters.jetstream.stream_reader import Stored, StreamReader
from relay.adapters.server.store_key import StoreKey
from relay.adapters.spaces.embedded_space import EmbeddedSpace
from relay.atomic_file import move_file, sync_folder
from relay.ports import BusBroken, Clock
from relay.space_errors import SpaceError
from schemas.content.operator_box import open_box
from schemas.content.sealing import NotOpened
from schemas.records.records import INVENTORY_MARK, SpaceMark, space_key
from schemas.values import subjects
from schemas.values.identity import NodePath
from schemas.values.refusals import RecordRefused
from schemas.values.wire import decode, encode, replace

PENDING = "restore.tar"
"""In a data directory: what the next start of the centre restores, once its files are in place."""
_WRITTEN_ANEW = (
    "name another backup; and remove this piece: the next backup writes what it holds anew, "
    "then verify that one"
)
PROGRESS_MESSAGES = 5_000
"""How it goes is told after so many."""
PIECE_BYTES_MAX = 64 * 1024 * 1024
"""Of what a piece opens to: a segment with its largest message has less."""


@dataclass(frozen=True, slots=True)
class RestoredStream:
    """A stream as it was made anew, compared with the backup."""

    name: str
    messages: int
    # Of its messages in order; "" of a backup of form 1, which says none.
    digest: str


def is_piecewise(file: Path) -> bool:
    """Whether a backup needs the pieces beside it, and a key."""
    try:
        with file.open("rb") as data:
            return data.read(1) == b"{"
    except OSError:
        return False


def newest_in(file: Path) -> Path:
    """The file itself, or of a folder with backups the newest; raises BackupUnusable, OSError."""
    if not file.is_dir():
        return file
    kept = BackupFolder(file).backups()
    readable = [it.file for it in kept if it.line is not None]
    # A number stands in each name, too: an older one is not taken in silence for the newest.
    newest = max((it for it in kept if it.file.name.startswith(PREFIX)), default=None, key=_name)
    if newest is not None and (fault := newest.fault) is not None:
        older = [f"name {readable[0]}, the newest that can be read"] if readable else []
        if fault.remedy != NO_BACKUP:
            raise BackupUnusable(fault.what, fault.reason, "; or ".join([fault.remedy, *older]))
        raise BackupDamaged(fault.what, fault.reason, *(older or [fault.remedy]))
    if not readable:
        raise BackupUnusable(file, "it holds no backup", NO_BACKUP)
    return readable[0]


def _name(kept: KeptBackup) -> str:
    return kept.file.name


def place_backup(
    file: Path,
    place: DataDir,
    key: OperatorKey | None = None,
    *,
    force: bool = False,
    other_goes: Callable[[str], None] = lambda _: None,
) -> Backup:
    """Put a backup into the data directory of a tree that is stopped.

    A tree that is there is replaced only by `force`; `other_goes` is told of another tree that it
    is, and may raise. All of the backup is read and checked before anything is written there.
    Raises BackupUnusable or DataDirUnusable.
    """
    if place.in_use():
        raise BackupUnusable(file, f"a tree runs on {place.folder}", "run `leafcast down` first")
    _check_alone(file, place)
    check_free = partial(_check_free, file, place, force=force, other_goes=other_goes)
    if is_piecewise(file):
        return _place_piecewise(file, place, key, check_free)
    return _place_whole(file, place, check_free)


def _place_whole(file: Path, place: DataDir, check_free: Callable[[str], None]) -> Backup:
    with opened(file) as tar:
        found = read_backup(file, tar)
        check_free(found.tree)
        check_digests(file, tar, found)
        files = _files_in(file, tar)
        for name in found.streams if found.form != SNAPSHOTS else ():
            for _ in stream_messages(file, tar, name):
                """Each is looked at: what is cut off is refused before anything is replaced."""
    with (
        _placing(file, place, files),
        replacing(place.folder / PLACING, _key(place)) as pending,
        file.open("rb") as whole,
    ):
        shutil.copyfileobj(whole, pending, 1024 * 1024)
    return found


def _place_piecewise(
    file: Path, place: DataDir, key: OperatorKey | None, check_free: Callable[[str], None]
) -> Backup:
    line, index, folder = open_piecewise(file, key)
    check_free(line.tree)
    with (
        _placing(file, place, index.files),
        replacing(place.folder / PLACING, key_there := _key(place)) as pending,
        BackupTar(pending, place.folder, key_there) as tar,
    ):
        for name, stream in index.streams.items():
            form = StreamForm(stream.config, "", stream.last)
            tar.add_stream(name, StreamMessages(form, messages_of(folder, key, stream)))
        tar.add_files(index.files)
        return tar.end(line.tree, line.time_ms, one_moment=index.one_moment)


@contextmanager
def _placing(file: Path, place: DataDir, files: Mapping[str, bytes]) -> Iterator[None]:
    """Put a backup in place of what is there, all or nothing: the block writes PLACING.

    Raises BackupUnusable, DataDirUnusable; then the next start finds nothing to restore.
    """
    placing = place.folder / PLACING
    try:
        make_private(place.folder)
        with place.locked():
            try:
                placing.unlink(missing_ok=True)
                with putting_files(file, place, files):
                    yield
                move_file(placing, place.folder / PENDING)
            except OSError:
                placing.unlink(missing_ok=True)
                raise
    except OSError as error:
        raise BackupUnusable(
            file, str(error.strerror or error), f"look at {place.folder}"
        ) from error


def end_placing(place: DataDir) -> None:
    """Put the files of a backup in place that was being put there as the power was cut.

    Before any of them is read. Raises BackupUnusable, DataDirUnusable.
    """
    placing = place.folder / PLACING
    if not placing.exists():
        return forget_drafts(place)
    try:
        with (
            opened(placing, _key(place)) as tar,
            putting_files(placing, place, _files_in(placing, tar)),
        ):
            read_backup(placing, tar)
        return move_file(placing, place.folder / PENDING)
    except OSError as error:
        reason = str(error.strerror or error)
        raise BackupUnusable(placing, reason, "make room there, and start again") from error


def _files_in(file: Path, tar: tarfile.TarFile) -> dict[str, bytes]:
    # The last one of its name says what the backup is; one before it is a file of the tree.
    manifest = next((it for it in reversed(tar.getmembers()) if it.name == MANIFEST), None)
    return {
        checked_name(file, member.name): _read(file, tar, member)
        for member in tar.getmembers()
        if member.name in TREE_FILES or member.name.startswith((f"{KEYS}/", f"{TOKENS}/"))
        if member is not manifest
    }


def open_piecewise(
    file: Path, key: OperatorKey | None
) -> tuple[IndexLine, BackupIndex, BackupFolder]:
    """A backup in a folder, opened; all pieces that it needs are there. Raises BackupUnusable."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise BackupUnusable(file, str(error.strerror), "name another one") from error
    if key is None:
        line = read_line(file, data)
        remedy = f"say --key with the file of key {line.key}"
        raise BackupUnusable(file, f"it is closed for key {line.key}", remedy)
    line, index = open_index(file, data, key)
    folder = BackupFolder(file.parent)
    if missing := sorted(set(index.pieces) - folder.sizes().keys()):
        where = folder.folder / PIECES
        reason = f"{len(missing)} of its {len(index.pieces)} pieces are not in {where}"
        remedy = "name it in the folder that it was written to, whole, or name another backup"
        raise BackupDamaged(file, f"{reason} ({missing[0]})", remedy)
    return line, index, folder


def messages_of(
    folder: BackupFolder, key: OperatorKey | None, stream: StreamIndex
) -> Iterator[Stored]:
    """The messages of a stream in the order of their sequences; raises BackupDamaged.

    Segments are opened one by one; those whose ranges overlap are held together.
    """
    assert key is not None
    waiting: list[Stored] = []
    segments = sorted(stream.segments, key=lambda it: it.alive[0])
    for at, segment in enumerate(segments):
        alive = set(segment.alive)
        opened_now = [it for it in _opened_piece(folder, key, segment) if it.sequence in alive]
        waiting = sorted([*waiting, *opened_now], key=lambda it: it.sequence)
        follows = segments[at + 1].alive[0] if at + 1 < len(segments) else None
        ready = [it for it in waiting if follows is None or it.sequence < follows]
        waiting = waiting[len(ready) :]
        yield from ready


def _opened_piece(folder: BackupFolder, key: OperatorKey, segment: UsedSegment) -> list[Stored]:
    file = folder.folder / PIECES / segment.piece[:2] / segment.piece
    try:
        inflating = zlib.decompressobj()
        plain = inflating.decompress(
            open_box(key.private, folder.piece(segment.piece)), PIECE_BYTES_MAX
        )
        if hashlib.sha256(plain).hexdigest() != segment.digest:
            raise MessagesDamaged("its digest differs")  # noqa: TRY301 - one answer to all of them
        return list(decode_messages(plain))
    except (NotOpened, MessagesDamaged, zlib.error, OSError) as error:
        raise BackupDamaged(file, f"this piece is damaged ({error})", _WRITTEN_ANEW) from error


async def restore_pending(
    place: DataDir,
    server: CentreServer,
    clock: Clock,
    progress: Callable[[str], None] = lambda _: None,
    replicas: int = 1,
    *,
    is_copy: bool = False,
) -> list[RestoredStream] | None:
    """Make the streams of a backup that waits in the data directory; None if there is none.

    What was made is read again and compared; `replicas` is at how many servers it lies. From then
    on each space counts as one that lost some: what it does not show is held until a person lets it
    go. Not so of a copy, which lost nothing. Raises BackupUnusable, BusBroken; then it waits on.
    """
    file = place.folder / PENDING
    if not file.exists():
        return None
    with opened(file, _key(place)) as tar:
        found = read_backup(file, tar)
        if found.tree != (there := tree_of(place)):
            reason = f"it is of another tree ({found.tree}) than the keys there ({there})"
            raise BackupUnusable(file, reason, "restore a backup once more, or remove this file")
        restored = []
        for holder, stream in STREAMS:
            name = f"{holder}/{stream}"
            if name not in found.streams:
                continue
            if found.form == SNAPSHOTS:
                restored.append(await _restore_snapshot(server, tar, found, holder, stream))
                continue
            async with account(server, holder, "restore") as connection:
                messages = partial(stream_messages, file, tar, name)
                state = found.streams[name]
                form = StreamForm(state["config"], "", int(state["state"]["last_seq"]))
                making = _Restoring(connection, clock, name, progress, replicas)
                restored.append(await making.restore(form, messages))
    if not is_copy:
        older = frozenset[str]() if found.one_moment else await _space_keys(server, clock, found)
        async with account(server, RELAY, "doubting") as connection:
            await doubt_spaces(connection, clock, older)
    file.unlink()
    # Found again after a loss of power, it would replace all that was written since.
    sync_folder(place.folder)
    return restored


async def _restore_snapshot(
    server: CentreServer, tar: tarfile.TarFile, found: Backup, holder: str, stream: str
) -> RestoredStream:
    name = f"{holder}/{stream}"
    member = tar.extractfile(f"streams/{name}")
    assert member is not None
    try:
        async with brief_connection(server.url, server.seeds[holder], "restore") as client:
            with member:
                await restore_stream(client, stream, dict(found.streams[name]), member)
    except CannotConnect as error:
        raise BusBroken(str(error)) from error
    return RestoredStream(name, int(found.streams[name]["state"]["messages"]), "")


@dataclass(frozen=True, slots=True)
class _Restoring:
    """A stream as it is made anew."""

    connection: Connection
    clock: Clock
    # Of its account, and its own.
    name: str
    progress: Callable[[str], None]
    replicas: int

    async def restore(
        self, form: StreamForm, messages: Callable[[], Iterator[Stored]]
    ) -> RestoredStream:
        """Make it, read it again and compare; raises BusBroken if it is another one.

        What members of a node said to each other is left out: each tenure says it anew.
        """
        newest = {it.subject: it.sequence for it in messages()}
        lying = (it for it in messages() if newest[it.subject] == it.sequence)
        kept = (it for it in lying if not is_of_members(it))
        said, made = MessagesDigest(), MessagesDigest()
        stream = self.name.partition("/")[2]
        lying_at = self.replicas
        await make_anew(self.connection, stream, form, self._counted(kept, said), lying_at)

        async def take(stored: Stored) -> None:
            self._count(made, stored, "read again")

        await read_from(self.connection, self.clock, stream, 1, take)
        if made.hex() != said.hex():
            counts = f"{made.count} messages of {said.count}"
            raise BusBroken(f"the stream {stream} is not as the backup has it: {counts} are alike")
        return RestoredStream(self.name, made.count, made.hex())

    def _counted(self, messages: Iterable[Stored], digest: MessagesDigest) -> Iterator[Stored]:
        for message in messages:
            self._count(digest, message, "written")
            yield message

    def _count(self, digest: MessagesDigest, message: Stored, verb: str) -> None:
        digest.take(message)
        if digest.count % PROGRESS_MESSAGES == 0:
            self.progress(f"{self.name}: {digest.count} messages of the backup are {verb}")


async def _space_keys(server: CentreServer, clock: Clock, found: Backup) -> frozenset[str]:
    """The keys under which the ledger marks the spaces that the backup holds; raises BusBroken."""
    keys = set[str]()
    try:
        async with brief_connection(server.url, server.seeds[SPACE], "doubting") as client:
            for stream, bucket in SPACES.items():
                if f"{SPACE}/{stream}" in found.streams:
                    space = EmbeddedSpace(client, bucket, clock, SystemDice())
                    identity = await space.identity()
                    keys |= {space_key(identity), space_key(f"{identity}{INVENTORY_MARK}")}
    except (CannotConnect, SpaceError) as error:
        raise BusBroken(str(error)) from error
    return frozenset(keys)


async def doubt_spaces(connection: Connection, clock: Clock, older: AbstractSet[str]) -> None:
    """Have the ledger take each space that it knew for one that lost some; raises BusBroken.

    An API server goes on while the ledger goes back, and what a backup lacks nobody deleted. What
    those of the keys `older` show is of another moment than the ledger: that waits for a person.
    """
    marks: list[Outgoing] = []

    async def take(stored: Stored) -> None:
        key = subjects.parse(stored.subject).key
        if not key.startswith(subjects.SPACE_PREFIX):
            return
        is_older = key.removeprefix(subjects.SPACE_PREFIX) in older
        with suppress(RecordRefused):
            # What may be older waits for a person, as it did.
            mark = decode(SpaceMark, stored.data)
            mark = replace(mark, rolled_back=True, fell_back=mark.fell_back or is_older)
            marks.append(Outgoing(stored.subject, encode(mark), header_lines(REPLACES)))

    notes = [subjects.own(NodePath(), "*")]
    await StreamReader(connection, clock, "OWN", filters=notes).read_all(take)
    publisher = Publisher(connection)
    await publisher.start()
    await publisher.publish(marks)


def _key(place: DataDir) -> StoreKey | None:
    """With what all that waits there is sealed, as the store is; raises StoreKeyRefused."""
    return kept_store(place.folder).settings().key


def _check_alone(file: Path, place: DataDir) -> None:
    """Raises BackupUnusable where nodes of several members lie, which a restore would halve."""
    if place.is_half_restored() and (place.folder / RESTORING).exists():
        reason = f"a restore with --members 3 into {place.folder} was cut off"
        raise BackupUnusable(file, reason, "say that once more, or name another --data-dir")
    if not place.has_members():
        return
    reason = (
        f"the centre in {place.folder} has several members, and no backup is restored into those"
    )
    remedy = (
        "name an empty --data-dir: with --members 3 its centre has three members on this machine, "
        "else it runs once, and `leafcast node grow /` has it grow"
    )
    raise BackupUnusable(file, reason, remedy)


def _check_free(
    file: Path, place: DataDir, tree: str, *, force: bool, other_goes: Callable[[str], None]
) -> None:
    """Raises BackupUnusable if there is a tree that is not to be replaced."""
    if not place.keys.exists() or place.is_half_restored():
        return
    try:
        there = tree_of(place)
    except (OSError, ValueError, KeyError, TypeError):
        there = "whose keys are damaged"
    what = f"there is a tree in {place.folder}"
    if there != tree:
        what = f"there is another tree in {place.folder}: {there}, and the backup is of {tree}"
        if force:
            other_goes(what)
    if force:
        return
    remedy = "say --force to replace what its centre holds, or name another --data-dir"
    raise BackupUnusable(file, what, remedy)


def _read(file: Path, tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    source = tar.extractfile(member)
    if source is None:
        raise BackupUnusable(file, f"{member.name} is no file", NO_BACKUP)
    with source:
        return source.read()
