"""The folder that a node and its launcher share: what was chosen, its files, what came of it.

The node writes manifests, pieces and what the tree wants. The launcher verifies all of it by the
publisher that its owner pinned: nothing here is believed because the node wrote it.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

from relay.atomic_file import DRAFT, atomic_write, atomic_write_bytes, make_folder, move_file
from schemas.records.release_body import ReleaseBody, ReleasePiece
from schemas.releases.release_folder import (
    LAUNCHER,
    MANIFESTS,
    NOTE_MAX_BYTES,
    PIECES,
    PINNED,
    WANTED,
)
from schemas.releases.wheel_names import platform_of
from schemas.reports.running import WHY_MAX_CHARACTERS, WORD_MAX_CHARACTERS
from schemas.values.codec import from_json


def here() -> str:
    """The platform of this machine, as releases name it: linux-amd64."""
    return platform_of(platform.system(), platform.machine().lower())


@dataclass(frozen=True, slots=True)
class ChosenRelease:
    """What the tree chose: a version, the SHA-256 of its manifest, and which try it is."""

    version: str
    manifest: str
    attempt: int = 0

    @classmethod
    def of(cls, body: ReleaseBody) -> ChosenRelease:
        return cls(body.version, body.manifest, body.attempt)


@dataclass(frozen=True, slots=True)
class LauncherSaid:
    """What the launcher says: what runs, and how it went with what was wanted last."""

    running: str
    state: str
    why: str
    # Of which manifest that is said, "" of none yet, and of which try.
    about: str
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class ReleaseFolder:
    """One such folder; it need not be there."""

    path: Path

    @property
    def is_pinned(self) -> bool:
        """Whether the owner of this place named a publisher."""
        return (self.path / PINNED).is_file()

    def launcher(self) -> LauncherSaid | None:
        """What the launcher said last; None if none runs this node, or it cannot be read."""
        form = _read(self.path / LAUNCHER)
        said = [form.get(name, "") for name in ("running", "state", "why", "manifest")]
        if not form or not all(isinstance(it, str) for it in said):
            return None
        running, state, why, about = map(str, said)
        word, attempt = WORD_MAX_CHARACTERS, _attempt(form)
        return LauncherSaid(running[:word], state[:word], why[:WHY_MAX_CHARACTERS], about, attempt)

    def wanted(self) -> ChosenRelease | None:
        """What was written down last as wanted."""
        form = _read(self.path / WANTED)
        version, manifest = form.get("version"), form.get("manifest")
        if isinstance(version, str) and isinstance(manifest, str):
            return ChosenRelease(version, manifest, _attempt(form))
        return None

    def want(self, wanted: ChosenRelease) -> None:
        """Write down what the tree chose, once all of it is here; raises OSError."""
        atomic_write(self.path / WANTED, json.dumps(asdict(wanted)) + "\n")

    def begin(self, body: ReleaseBody) -> None:
        """Make room: what neither this release names nor the one wanted now goes.

        Raises OSError.
        """
        wanted = self.wanted()
        manifests = {f"{it}.json" for it in (body.manifest, wanted.manifest if wanted else "")}
        pieces = {piece.sha256 for piece in body.pieces}
        for folder, kept in ((MANIFESTS, manifests), (PIECES, pieces)):
            make_folder(self.path / folder)
            for file in (self.path / folder).iterdir():
                if file.name.removesuffix(DRAFT) not in kept:
                    file.unlink(missing_ok=True)

    def lacks_room(self, size: int) -> str:
        """Why so many bytes find no room here; "" if they do. Raises OSError."""
        free = shutil.disk_usage(self.path).free
        if free >= 2 * size:
            return ""
        return f"{free} bytes are free at {self.path}, and {2 * size} are needed: make room"

    def has_manifest(self, body: ReleaseBody) -> bool:
        """Whether the manifest is here."""
        return _sha256(self._manifest(body)) == body.manifest

    def put_manifest(self, body: ReleaseBody, data: bytes) -> bool:
        """Keep the manifest; False if it is another. Raises OSError."""
        if hashlib.sha256(data).hexdigest() != body.manifest:
            return False
        atomic_write_bytes(self._manifest(body), data)
        return True

    def has_piece(self, piece: ReleasePiece) -> bool:
        """Whether a piece is here whole; raises OSError."""
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


def _attempt(form: dict[str, object]) -> int:
    attempt = form.get("attempt", 0)
    return attempt if isinstance(attempt, int) else 0


def _read(file: Path) -> dict[str, object]:
    """What a small file says in JSON; nothing of one that is not there, or says something else."""
    try:
        with file.open("rb") as read:
            form = from_json(read.read(NOTE_MAX_BYTES))
    except (OSError, ValueError):
        return {}
    return form if isinstance(form, dict) else {}
