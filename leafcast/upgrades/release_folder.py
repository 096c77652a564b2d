"""The folder that a node and its launcher share: what was chosen, its files, what came of it.

The node writes manifests, pieces and what the tree wants. The launcher verifies all of it by the
publisher that its owner pinned: nothing here is believed because the node wrote it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from relay.adapters.server.store_space import free_bytes
from relay.atomic_file import DRAFT, atomic_write, atomic_write_bytes, make_folder, move_file
from relay.release_pieces import clear_drafts, noted_pieces
from schemas.content.blobs import Reference
from schemas.records.release_body import ReleaseBody, ReleasePiece
from schemas.releases.release_folder import (
    LAUNCHER,
    LAUNCHER_LOCK,
    MANIFESTS,
    PIECES,
    PINNED,
    TURN,
    WANTED,
    LaunchNote,
    LaunchState,
    ReleaseTurn,
    WantedRelease,
    read_launch_note,
    read_turn,
    read_wanted,
)
from schemas.releases.release_manifest import MANIFEST_MAX_BYTES, read_manifest
from schemas.releases.release_refused import ReleaseRefused
from schemas.releases.wheel_names import platform_of

T = TypeVar("T")


def here() -> str:
    """The platform of this machine, as releases name it: linux-amd64."""
    return platform_of(platform.system(), platform.machine().lower())


def wanted_by(body: ReleaseBody) -> WantedRelease:
    """What the tree chose by a record, as launchers are told."""
    return WantedRelease(body.version, body.manifest, body.attempt)


@dataclass(frozen=True, slots=True)
class ReleaseFolder:
    """One such folder; it need not be there.

    That of a centre `is_source`: what other releases are made of lies there, too, and stays.
    """

    path: Path
    is_source: bool = False

    @property
    def is_pinned(self) -> bool:
        """Whether the owner of this place named a publisher."""
        return (self.path / PINNED).is_file()

    def launcher(self) -> LaunchNote | None:
        """What the launcher said last; None if none runs now, or it cannot be read."""
        return self.said() if self.has_launcher else None

    def said(self) -> LaunchNote | None:
        """What a launcher said here last, whether it runs still; None if it cannot be read."""
        return _read(self.path / LAUNCHER, read_launch_note)

    @property
    def has_launcher(self) -> bool:
        """Whether a launcher runs here now: one that ran leaves its word behind."""
        try:
            with (self.path / LAUNCHER_LOCK).open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def wanted(self) -> WantedRelease | None:
        """What was written down last as wanted."""
        return _read(self.path / WANTED, read_wanted)

    def want(self, wanted: WantedRelease) -> None:
        """Write down what the tree chose, once all of it is here; raises OSError."""
        atomic_write(self.path / WANTED, wanted.text)

    def turn(self, turn: ReleaseTurn) -> None:
        """Tell the launcher whether it is the turn of this machine; raises OSError."""
        if _read(self.path / TURN, read_turn) != turn:
            atomic_write(self.path / TURN, turn.text)

    def take_no_turns(self) -> None:
        """Have the launcher wait for no other machine of its node."""
        with suppress(OSError):
            (self.path / TURN).unlink(missing_ok=True)

    def clear_drafts(self) -> None:
        """Remove pieces of which a run before this one had only a part."""
        clear_drafts(self.path)

    def begin(self, body: ReleaseBody) -> None:
        """Make room: what neither this release names nor the one wanted now goes.

        Of that one the manifest stays, and the pieces until it is installed. Raises OSError.
        """
        wanted = self.wanted()
        manifests = {f"{it}.json" for it in (body.manifest, wanted.manifest if wanted else "")}
        pieces = {piece.sha256 for piece in body.pieces} | self._wanted_pieces(wanted)
        former = self._pieces_of_others(manifests) if self.is_source else frozenset()
        for folder, kept in ((MANIFESTS, manifests), (PIECES, pieces)):
            make_folder(self.path / folder)
            if self.is_source and folder == PIECES:
                for piece in former - pieces:
                    (self.path / folder / piece).unlink(missing_ok=True)
                continue
            for file in (self.path / folder).iterdir():
                if file.name.removesuffix(DRAFT) not in kept:
                    file.unlink(missing_ok=True)

    def _pieces_of_others(self, manifests: Collection[str]) -> frozenset[str]:
        """What came here for other releases, and is not noted as what some at the centre name."""
        files = [it for it in (self.path / MANIFESTS).glob("*.json") if it.name not in manifests]
        found = [_read(file, read_manifest) for file in files]
        pieces = frozenset(piece for it in found if it is not None for piece in it.all_pieces)
        return pieces - noted_pieces(self.path)

    def _wanted_pieces(self, wanted: WantedRelease | None) -> frozenset[str]:
        """The pieces that the launcher may still read."""
        note = self.launcher()
        if wanted is None or (
            note is not None
            and note.state is not LaunchState.INSTALLING
            and (note.manifest, note.attempt) == (wanted.manifest, wanted.attempt)
        ):
            return frozenset()
        manifest = _read(self.path / MANIFESTS / f"{wanted.manifest}.json", read_manifest)
        return frozenset(manifest.all_pieces) if manifest is not None else frozenset()

    def lacks(self, body: ReleaseBody, platform: str) -> bool:
        """Whether a file of a release is not here, or of another size; raises OSError."""
        files = {self._manifest(body): body.content[0].size}
        for piece, _ in body.pieces_of(platform):
            files[self.path / PIECES / piece.sha256] = piece.size
        return any(not it.is_file() or it.stat().st_size != size for it, size in files.items())

    def lacks_room(self, size: int) -> str:
        """Why so many bytes find no room here; "" if they do. Raises OSError."""
        free = free_bytes(self.path)
        if free >= 2 * size:
            return ""
        needed = f"{2 * size // 1_000_000 + 1} MB are needed to fetch it"
        return f"{free // 1_000_000} MB are free at {self.path}, and {needed}: make room"

    def has_manifest(self, body: ReleaseBody) -> bool:
        """Whether the manifest is here."""
        return _sha256(self._manifest(body)) == body.manifest

    def put_manifest(self, body: ReleaseBody, data: bytes) -> bool:
        """Keep the manifest; False if it is another. Raises OSError."""
        if hashlib.sha256(data).hexdigest() != body.manifest:
            return False
        atomic_write_bytes(self._manifest(body), data)
        return True

    def lacking(
        self, body: ReleaseBody, platform: str
    ) -> list[tuple[ReleasePiece, tuple[Reference, ...]]]:
        """The pieces that are not here whole, each with its stretches; raises OSError."""
        return [each for each in body.pieces_of(platform) if not self._has_piece(each[0])]

    def _has_piece(self, piece: ReleasePiece) -> bool:
        file = self.path / PIECES / piece.sha256
        try:
            return file.stat().st_size == piece.size and _sha256(file) == piece.sha256
        except FileNotFoundError:
            return False

    def put_stretch(self, piece: ReleasePiece, data: bytes, *, first: bool) -> None:
        """Add the next bytes of a piece; raises OSError."""
        with self._draft(piece).open("wb" if first else "ab") as out:
            out.write(data)

    def complete(self, piece: ReleasePiece) -> bool:
        """Keep a piece of which all bytes came; False if it is another. Raises OSError."""
        draft = self._draft(piece)
        if _sha256(draft) != piece.sha256:
            draft.unlink(missing_ok=True)
            return False
        with draft.open("rb") as written:
            os.fsync(written.fileno())
        move_file(draft, self.path / PIECES / piece.sha256)
        return True

    def _manifest(self, body: ReleaseBody) -> Path:
        return self.path / MANIFESTS / f"{body.manifest}.json"

    def _draft(self, piece: ReleasePiece) -> Path:
        return self.path / PIECES / f"{piece.sha256}{DRAFT}"


def _sha256(file: Path) -> str:
    try:
        with file.open("rb") as read:
            return hashlib.file_digest(read, "sha256").hexdigest()
    except FileNotFoundError:
        return ""


def _read(file: Path, reader: Callable[[bytes], T]) -> T | None:
    """What a small file says; None of one that is not there, or says something else."""
    try:
        with file.open("rb") as read:
            return reader(read.read(MANIFEST_MAX_BYTES + 1))
    except (OSError, ReleaseRefused):
        return None
