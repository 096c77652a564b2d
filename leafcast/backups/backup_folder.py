"""A folder with backups: an index file each, and the pieces that they share.

A backup is there once its index is; that is written last, and the pieces before it are on the disk
then. A piece goes once no index names it. One process writes at a time.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leafcast.backups.backup_index import LINE_BYTES_MAX, IndexLine, read_line
from leafcast.backups.folder_thread import FolderThread
from leafcast.backups.refusals import BackupUnusable
from relay.atomic_file import DRAFT, atomic_write_bytes, make_folder, sync_folder
from schemas.values.codec import from_json

MARK, CATALOG, VERIFIED, PIECES, LOCK = (
    "leafcast-backups.json",
    "catalog",
    "verified.json",
    "pieces",
    "lock",
)
PREFIX, SUFFIX = "leafcast-", ".backup"
FORMAT = 1
_NO_LOCKS = frozenset({errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS})
MOUNTED = "is the disk mounted? If it is another folder, say `leafcast backup --to DIR`"


@dataclass(frozen=True, slots=True)
class KeptBackup:
    """One backup of a folder; without a line its file is damaged, or of another format."""

    file: Path
    line: IndexLine | None
    # Why it has no line.
    fault: BackupUnusable | None = None


class BackupFolder:
    """The files of one folder; each method raises OSError, and BackupUnusable where it says so.

    A disk may hang: where others go on meanwhile, all of it is called by way of `thread`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.thread = FolderThread()

    def begin(self, tree: str) -> None:
        """Make it a folder for the backups of a tree; raises BackupUnusable for one of others."""
        if (self.folder / MARK).exists():
            return self.check(tree)
        make_folder(self.folder)
        if strange := sorted(it.name for it in self.folder.iterdir() if it.name != "lost+found"):
            reason = f"it holds other files ({strange[0]})"
            raise BackupUnusable(self.folder, reason, "name a folder that is empty, or not there")
        make_folder(self.folder / PIECES)
        return self.write(MARK, json.dumps({"format": FORMAT, "tree": tree}).encode() + b"\n")

    def check(self, tree: str, pieces: Collection[str] = ()) -> None:
        """Raises BackupUnusable unless the folder is there, this tree's, and has these pieces."""
        form = self._form(MARK)
        if form is None:
            raise BackupUnusable(self.folder, "no backups are there", MOUNTED)
        if form.get("format") != FORMAT:
            reason = f"it has format {form.get('format')!r}, and this program writes {FORMAT}"
            raise BackupUnusable(self.folder, reason, "name another folder")
        if form.get("tree") != tree:
            reason = f"it holds backups of another tree ({form.get('tree')})"
            raise BackupUnusable(self.folder, reason, "name another folder")
        if pieces and (lost := set(pieces) - self.sizes().keys()):
            reason = f"{len(lost)} of the pieces that a backup needs went while it was written"
            raise BackupUnusable(self.folder, reason, MOUNTED)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Write alone; raises BackupUnusable if another process does."""
        descriptor = os.open(self.folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                reason = "another backup is being written there"
                raise BackupUnusable(self.folder, reason, "wait until it is done") from error
            except OSError as error:
                # Some file systems on networks have no locks.
                if error.errno not in _NO_LOCKS:
                    raise
            yield
        finally:
            os.close(descriptor)

    def backups(self) -> list[KeptBackup]:
        """All backups, the newest first; those that are damaged last."""
        kept = []
        for file in sorted(self.folder.glob(f"*{SUFFIX}")):
            try:
                with file.open("rb") as data:
                    kept.append(KeptBackup(file, read_line(file, data.readline(LINE_BYTES_MAX))))
            except BackupUnusable as error:
                kept.append(KeptBackup(file, None, error))
        return sorted(kept, key=lambda it: it.line.number if it.line else -1, reverse=True)

    def sizes(self) -> dict[str, int]:
        """What each piece takes, in bytes."""
        found = {}
        for folder in self._piece_folders():
            with os.scandir(folder) as entries:
                found.update(
                    {it.name: it.stat().st_size for it in entries if not it.name.endswith(DRAFT)}
                )
        return found

    def put_piece(self, name: str, data: bytes) -> None:
        """Write a piece; it is on the disk when this returns."""
        folder = self.folder / PIECES / name[:2]
        if not folder.exists():
            # This one alone: those above are there, or their disk is not mounted.
            folder.mkdir(mode=0o700, exist_ok=True)
            sync_folder(folder.parent)
        self.write(f"{PIECES}/{name[:2]}/{name}", data)

    def piece(self, name: str) -> bytes:
        """What a piece holds."""
        return (self.folder / PIECES / name[:2] / name).read_bytes()

    def write(self, name: str, data: bytes) -> None:
        """Put bytes in place of what a file holds, whole or not at all, and on the disk."""
        atomic_write_bytes(self.folder / name, data)

    def catalog(self) -> bytes:
        """What the centre noted of the pieces for itself; b"" without."""
        try:
            return (self.folder / CATALOG).read_bytes()
        except FileNotFoundError:
            return b""

    def verified(self) -> dict[str, Any]:
        """What the last verification noted; {} if there was none, or its note is damaged."""
        try:
            return self._form(VERIFIED) or {}
        except BackupUnusable:
            return {}

    def keep_newest(self, keep: int) -> None:
        """Remove all but so many backups, the oldest first, then pieces that none of them needs.

        One that cannot be read goes, too, once so many newer ones can: as long as it is there no
        piece goes.
        """
        backups = self.backups()
        readable = [it.file for it in backups if it.line is not None]
        old = readable[keep:]
        if len(readable) >= keep:
            oldest = readable[keep - 1].name
            damaged = (it.file for it in backups if it.line is None)
            old += [it for it in damaged if it.name.startswith(PREFIX) and it.name < oldest]
        for file in reversed(old):
            file.unlink()
        if old:
            sync_folder(self.folder)
        self.sweep()

    def sweep(self) -> None:
        """Remove what was begun and never ended, and pieces that no backup needs.

        While a backup there cannot be read no piece goes: it may need any.
        """
        lines = [it.line for it in self.backups()]
        needed = {piece for line in lines if line is not None for piece in line.pieces}
        is_whole = None not in lines
        for folder in self._piece_folders():
            self._remove(
                it
                for it in folder.iterdir()
                if it.name.endswith(DRAFT) or (is_whole and it.name not in needed)
            )
        self._remove(it for it in self.folder.iterdir() if it.name.endswith(DRAFT))

    def _remove(self, files: Iterable[Path]) -> None:
        for file in list(files):
            file.unlink(missing_ok=True)

    def _piece_folders(self) -> list[Path]:
        with suppress(FileNotFoundError):
            return [it for it in (self.folder / PIECES).iterdir() if it.is_dir()]
        return []

    def _form(self, name: str) -> dict[str, Any] | None:
        file = self.folder / name
        try:
            form = from_json(file.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return None
        except ValueError as error:
            raise BackupUnusable(file, "it is damaged", "name another folder") from error
        return form if isinstance(form, dict) else None
