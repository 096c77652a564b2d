"""`releases/` of a node's data directory, as the launcher reads and writes it."""

from __future__ import annotations

import csv
import hashlib
import os
import shutil
import sys
from base64 import urlsafe_b64encode
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

from relay.atomic_file import atomic_write, sync_folder
from schemas.releases.release_folder import (
    CURRENT,
    INSTALLED,
    LAUNCHER,
    MANIFESTS,
    NOTE_MAX_BYTES,
    PIECES,
    PINNED,
    TURN,
    WANTED,
    LaunchNote,
    ReleaseTurn,
    WantedRelease,
    read_launch_note,
    read_turn,
    read_wanted,
)
from schemas.releases.release_manifest import MANIFEST_MAX_BYTES, Piece, digest_of
from schemas.releases.release_refused import RefusedNow, ReleaseRefused
from schemas.releases.release_version import check_version

MANIFEST = "release.json"
"""In what is installed: the file of its release."""
AGAIN_BY_ITSELF = "it is tried again by itself"
_FETCHED_AGAIN = f"the node fetches it again, and {AGAIN_BY_ITSELF}"
SITE = Path("lib", f"python3.{sys.version_info.minor}", "site-packages")


class Altered(RefusedNow):
    """Files came that are others by now: once they are gone, the node fetches them again."""

    def __init__(self, field: str, why: str, files: Sequence[Path]) -> None:
        super().__init__(field, why, _FETCHED_AGAIN)
        self.files = files


class LaunchFolder:
    """The files, each written whole; `base` is the version that came with the launcher."""

    def __init__(self, folder: Path, base: str) -> None:
        self.folder = folder
        self.base = base
        self.installed = folder / INSTALLED
        # What lies there instead is none of a node's business: what came with the launcher runs.
        with suppress(FileExistsError):
            (folder / INSTALLED).mkdir(mode=0o700, parents=True, exist_ok=True)

    def note(self) -> LaunchNote:
        """What was written down last; where that is nothing or damaged, what `current` leads to."""
        try:
            return read_launch_note(_bytes(self.folder / LAUNCHER, NOTE_MAX_BYTES))
        except (ReleaseRefused, OSError):
            try:
                version = (self.folder / CURRENT).readlink().name
            except OSError:
                version = ""
            return LaunchNote(version if version in self.startable() else self.base)

    def keep(self, note: LaunchNote) -> None:
        atomic_write(self.folder / LAUNCHER, note.text)

    def wanted(self) -> WantedRelease | None:
        """What the tree chose; nothing yet, or what nobody can read, is None."""
        try:
            return read_wanted(_bytes(self.folder / WANTED, NOTE_MAX_BYTES))
        except (ReleaseRefused, OSError):
            return None

    def waits(self, wanted: WantedRelease) -> str:
        """Why a release has to wait here, as one of several machines of its node; "" if it has not.

        What cannot be read makes it wait: its node writes it anew.
        """
        try:
            return read_turn(_bytes(self.folder / TURN, NOTE_MAX_BYTES)).waits(wanted)
        except FileNotFoundError:
            return ""
        except (ReleaseRefused, OSError) as error:
            return f"{TURN} cannot be read: {error}"

    def forget_turn(self) -> None:
        """Before a node is started: what the run before it said counts no more."""
        if (self.folder / TURN).exists():
            turn = ReleaseTurn(why="its node was started, and has not asked the others yet")
            atomic_write(self.folder / TURN, turn.text)

    @property
    def pinned(self) -> Path:
        """The file that says who may sign."""
        return self.folder / PINNED

    def manifest(self, digest: str) -> bytes:
        """The file of a release, by its hash; raises ReleaseRefused."""
        name = Path(MANIFESTS, f"{digest}.json")
        data = self._arrived(name, "manifest", MANIFEST_MAX_BYTES)
        if digest_of(data) != digest:
            raise Altered("manifest", f"it is not {digest[:12]}", [self.folder / name])
        return data

    def piece(self, piece: Piece) -> bytes:
        """The bytes of a piece, which are those that the release names; raises ReleaseRefused."""
        name = Path(PIECES, piece.sha256)
        data = self._arrived(name, piece.name, piece.size)
        if not piece.holds(data):
            raise Altered("pieces", piece.why_altered, [self.folder / name])
        return data

    def is_installed(self, version: str) -> bool:
        """Whether one was put there, and is there whole, with a Python that is there."""
        return _is_whole(self.installed / version)

    def startable(self) -> frozenset[str]:
        """The versions that are there whole, with a Python that is there."""
        try:
            there = [it.name for it in self.installed.iterdir() if _is_whole(it)]
        except OSError:
            there = []
        return frozenset({self.base, *there})

    def damage(self, version: str) -> str:
        """Which file of what was installed is another now, or is gone; "" if none is.

        What Python made of them, and what was there before them, is not looked at.
        """
        return _damage(self.installed / version / SITE)

    def python_of(self, version: str) -> Path:
        """The interpreter that runs a version."""
        own = self.installed / version
        return own / "bin" / "python" if _is_whole(own) else Path(sys.executable)

    def gives_way(self, version: str) -> bool:
        """Whether what came with the launcher is of that version, too, and runs from now on."""
        if version != self.base or not self.is_installed(version):
            return False
        remove(self.installed / version)
        return not self.is_installed(version)

    def point(self, version: str) -> None:
        """Have `current` lead to what runs; it leads nowhere if that came with the launcher."""
        link, target = self.folder / CURRENT, Path(INSTALLED, version)
        if not _is_whole(self.folder / target):
            link.unlink(missing_ok=True)
        elif not link.is_symlink() or link.readlink() != target:
            draft = link.with_name(f"{CURRENT}.new")
            draft.unlink(missing_ok=True)
            draft.symlink_to(target)
            draft.replace(link)
        sync_folder(self.folder)

    def tidy(self, keep: Collection[str]) -> None:
        """Remove what is installed but for these, and what was begun."""
        for place in self.installed.iterdir():
            if place.name not in keep:
                remove(place)

    def _arrived(self, name: Path, what: str, bytes_max: int) -> bytes:
        try:
            return _bytes(self.folder / name, bytes_max)
        except OSError as error:
            why = f"{name} cannot be read: {error.strerror}"
            raise RefusedNow(what, why, _FETCHED_AGAIN) from error


def remove(place: Path) -> None:
    """Remove a folder; first its name goes, so that half of it is never taken for all."""
    draft = place.with_name(f"{place.name.removesuffix('.gone')}.gone")
    if place != draft:
        shutil.rmtree(draft, ignore_errors=True)
    with suppress(OSError):
        place.rename(draft)
    shutil.rmtree(draft, ignore_errors=True)


def _is_whole(place: Path) -> bool:
    """Whether a folder of `installed/` has a version: it got that name once all of it was there."""
    try:
        check_version(place.name, "installed")
    except ReleaseRefused:
        return False
    try:
        return os.access(place / "bin" / "python", os.X_OK) and (place / SITE).is_dir()
    except OSError:
        return False


def _damage(site: Path) -> str:
    try:
        records = sorted(site.glob("*.dist-info/RECORD")) if site.is_dir() else []
    except OSError as error:
        return f"{site.name}: {error.strerror}"
    for record in records:
        try:
            with record.open(newline="") as opened:
                rows = [row[:2] for row in csv.reader(opened) if len(row) > 1 and row[1]]
        except (OSError, ValueError, csv.Error):
            return f"{record.parent.name}/{record.name} cannot be read"
        for name, said in rows:
            try:
                with (site / name).open("rb") as file:
                    found = hashlib.file_digest(file, said.partition("=")[0])
            except (OSError, ValueError) as error:
                return f"{name} cannot be read: {getattr(error, 'strerror', None) or error}"
            if said.partition("=")[2] != urlsafe_b64encode(found.digest()).rstrip(b"=").decode():
                return f"{name} is not as it was installed"
    return ""


def _bytes(file: Path, bytes_max: int) -> bytes:
    """What a file holds, and one byte more than it may at most."""
    with file.open("rb") as opened:
        return opened.read(bytes_max + 1)
