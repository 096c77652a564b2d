"""A centre's backup: its ledger, its content, its spaces and its keys, in one tar.

It is written from a running centre. It is restored in two steps: its files are put into the data
directory of a tree that is stopped, and the next start of the centre makes its streams of them.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from leafcast.data_dir import DataDir, make_private
from leafcast.node.credentials.authorities import AUTHORITY_FILES
from relay.adapters.jetstream.request_reply import brief_connection
from relay.adapters.jetstream.stream_backup import backup_stream, restore_stream
from schemas.values.codec import from_json

FORMAT = 1
MANIFEST = "backup.json"
PENDING = "restore.tar"
"""In a data directory: what the next start of the centre restores."""
KEYS, TLS, TOKENS = "keys", "tls", "tokens"
# Nodes that joined believe the authority: another one would let none of them in.
TREE_FILES = (
    "tree.json",
    "spaces.json",
    "listen.json",
    *(f"{TLS}/{name}" for name in (*AUTHORITY_FILES, "issued.json")),
)
RELAY, SPACE = "relay", "space"

# Content comes after the records that lead to it, and what people wrote last: what is written
# meanwhile is then only missing where it is made again.
STREAMS = ((RELAY, "OWN"), (RELAY, "BLOB"), (SPACE, "KV_workloads"), (SPACE, "KV_inventory"))


class BackupUnusable(Exception):
    """A backup that cannot be written or restored; says which file, why, and what to do."""

    def __init__(self, file: Path, reason: str, remedy: str) -> None:
        super().__init__(f"{file}: {reason}; {remedy}")
        self.file = file
        self.reason = reason
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class CentreServer:
    """Where a centre's streams are, and what opens the accounts that hold them."""

    url: str
    seeds: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Backup:
    """What a backup says of itself."""

    tree: str
    # Milliseconds since 1970.
    time_ms: int
    # By account and name: settings and state of each stream.
    streams: Mapping[str, Mapping[str, Any]]


async def write_backup(file: Path, place: DataDir, server: CentreServer, now_ms: int) -> Backup:
    """Write the backup of a running centre, whole or not at all; replaces what is there.

    Raises BackupUnusable, BackupFailed, CannotConnect.
    """
    with _replacing(file) as whole, tarfile.open(fileobj=whole, mode="w") as tar:
        forms = await _add_streams(tar, file.parent, server)
        tree = _add_files(tar, place)
        form = {"format": FORMAT, "tree": tree, "timeMs": now_ms, "streams": forms}
        _add_bytes(tar, MANIFEST, json.dumps(form, indent=2).encode())
    return Backup(tree, now_ms, forms)


def place_backup(file: Path, place: DataDir, *, force: bool = False) -> Backup:
    """Put a backup into the data directory of a tree that is stopped.

    A tree that is there is replaced only by `force`. Raises BackupUnusable or DataDirUnusable.
    """
    if place.in_use():
        raise BackupUnusable(file, f"a tree runs on {place.folder}", "run `leafcast down` first")
    with _opened(file) as tar:
        found = read_backup(file, tar)
        if place.keys.exists() and not force:
            remedy = "say --force to replace what its centre holds, or name another --data-dir"
            raise BackupUnusable(file, f"there is a tree in {place.folder}", remedy)
        try:
            make_private(place.folder)
            for folder in (place.keys, place.folder / TLS, place.folder / TOKENS):
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            for member in tar.getmembers():
                target = place.folder / _checked(file, member.name)
                # A token that lies there may have been used since.
                token = member.name.startswith(f"{TOKENS}/") and not target.exists()
                if token or member.name.startswith(f"{KEYS}/") or member.name in TREE_FILES:
                    _extract(tar, member, target)
            shutil.copyfile(file, place.folder / PENDING)
            (place.folder / PENDING).chmod(0o600)
        except OSError as error:
            reason = str(error.strerror or error)
            raise BackupUnusable(file, reason, f"look at {place.folder}") from error
    return found


async def restore_pending(place: DataDir, server: CentreServer) -> bool:
    """Make the streams of a backup that waits in the data directory; whether there was one.

    Raises BackupUnusable, BackupFailed, CannotConnect; then it waits on.
    """
    file = place.folder / PENDING
    if not file.exists():
        return False
    with _opened(file) as tar:
        found = read_backup(file, tar)
        for account, stream in STREAMS:
            form = found.streams.get(f"{account}/{stream}")
            if form is None:
                continue
            member = tar.extractfile(f"streams/{account}/{stream}")
            assert member is not None
            async with brief_connection(server.url, server.seeds[account], "restore") as client:
                with member:
                    await restore_stream(client, stream, dict(form), member)
    file.unlink()
    return True


def read_backup(file: Path, tar: tarfile.TarFile) -> Backup:
    """What a backup says of itself; raises BackupUnusable."""
    remedy = "name a file that `leafcast backup` wrote"
    try:
        member = tar.extractfile(MANIFEST)
        form = from_json(member.read()) if member is not None else {}
        if form["format"] != FORMAT:
            reason = f"it has format {form['format']!r}, and this program reads {FORMAT}"
            raise BackupUnusable(file, reason, "use the version of leafcast that wrote it")
        found = Backup(str(form["tree"]), int(form["timeMs"]), dict(form["streams"]))
        names = set(tar.getnames())
    except (KeyError, ValueError, TypeError, tarfile.TarError) as error:
        raise BackupUnusable(file, "it is no backup", remedy) from error
    missing = {f"{KEYS}/keys.json", *(f"streams/{name}" for name in found.streams)} - names
    if missing:
        raise BackupUnusable(file, f"it lacks {', '.join(sorted(missing))}", remedy)
    return found


async def _add_streams(
    tar: tarfile.TarFile, folder: Path, server: CentreServer
) -> dict[str, dict[str, Any]]:
    forms: dict[str, dict[str, Any]] = {}
    for account, stream in STREAMS:
        async with brief_connection(server.url, server.seeds[account], "backup") as client:
            with tempfile.TemporaryFile(dir=folder) as spool:
                form = await backup_stream(client, stream, spool)
                if form is None:
                    continue
                forms[f"{account}/{stream}"] = form
                _add_file(tar, f"streams/{account}/{stream}", spool)
    return forms


def _add_files(tar: tarfile.TarFile, place: DataDir) -> str:
    """Keys, tokens, and what says of the tree how it is laid out; the tree's id."""
    for name in (KEYS, TOKENS):
        for source in sorted((place.folder / name).glob("*.json")):
            tar.add(source, f"{name}/{source.name}")
    for one in TREE_FILES:
        if (place.folder / one).exists():
            tar.add(place.folder / one, one)
    return str(json.loads((place.keys / "keys.json").read_bytes())["tree"])


def _add_file(tar: tarfile.TarFile, name: str, source: IO[bytes]) -> None:
    info = tarfile.TarInfo(name)
    info.mode, info.size = 0o600, source.seek(0, os.SEEK_END)
    source.seek(0)
    tar.addfile(info, source)


def _add_bytes(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    _add_file(tar, name, io.BytesIO(data))


def _extract(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    source = tar.extractfile(member)
    if source is None:
        return
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with source, os.fdopen(descriptor, "wb") as written:
        shutil.copyfileobj(source, written)
    target.chmod(0o600)


def _checked(file: Path, name: str) -> str:
    """Raises BackupUnusable for a name that leads out of the folder."""
    if ".." in Path(name).parts or Path(name).is_absolute():
        raise BackupUnusable(file, f"it holds {name!r}", "do not use it: it was tampered with")
    return name


@contextmanager
def _replacing(file: Path) -> Iterator[IO[bytes]]:
    """A file that takes the place of this one once it is whole; for its owner only."""
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    except OSError as error:
        remedy = "name a file in another folder"
        raise BackupUnusable(file, str(error.strerror), remedy) from error
    part = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as whole:
            yield whole
        part.replace(file)
    except OSError as error:
        raise BackupUnusable(file, str(error.strerror or error), "make room there") from error
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def _opened(file: Path) -> Iterator[tarfile.TarFile]:
    with ExitStack() as stack:
        try:
            tar = stack.enter_context(tarfile.open(file, "r:"))
        except FileNotFoundError as error:
            raise BackupUnusable(file, "there is no such file", "name another one") from error
        except (OSError, tarfile.TarError) as error:
            remedy = "name a file that `leafcast backup` wrote"
            raise BackupUnusable(file, "it cannot be read as a backup", remedy) from error
        yield tar
