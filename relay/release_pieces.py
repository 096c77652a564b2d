"""The pieces of releases in `releases/` of a node: which are named, and what a crash left there."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path

from relay.atomic_file import DRAFT, atomic_write
from schemas.releases.release_folder import PIECES
from schemas.releases.release_manifest import is_sha256

NAMED = "named-pieces"
"""A line for each piece that releases named: they may be gone when the centre starts again."""
NAMED_MAX_BYTES = 16 * 1024 * 1024
log = logging.getLogger("leafcast.upgrades")


def clear_drafts(folder: Path) -> None:
    """Remove what was begun of pieces and not ended; while nobody brings any."""
    drafts = (it.name for it in (folder / PIECES).glob(f"*{DRAFT}"))
    remove_pieces(folder, [*drafts])


def remove_pieces(folder: Path, pieces: Iterable[str]) -> None:
    """Remove what lies there of pieces that no release names any more."""
    for sha256 in pieces:
        try:
            (folder / PIECES / sha256).unlink(missing_ok=True)
        except OSError as error:
            log.warning("%s: %s; remove it by hand", error.filename, error.strerror)


def noted_pieces(folder: Path) -> frozenset[str]:
    """The pieces that releases named when that was noted last."""
    try:
        with (folder / NAMED).open("rb") as read:
            lines = read.read(NAMED_MAX_BYTES).decode(errors="replace").split()
    except FileNotFoundError:
        return frozenset()
    except OSError as error:
        log.warning("%s: %s; which pieces may go is not known", error.filename, error.strerror)
        return frozenset()
    return frozenset(filter(is_sha256, lines))


def note_pieces(folder: Path, pieces: Iterable[str]) -> bool:
    """Note which pieces releases name, for a centre that starts without them; whether it did.

    Nothing is noted where no pieces lie yet.
    """
    if not (folder / PIECES).is_dir():
        return False
    try:
        atomic_write(folder / NAMED, "".join(f"{it}\n" for it in sorted(pieces)))
    except OSError as error:
        log.warning("%s: %s; its pieces are not noted", folder / NAMED, error.strerror)
        return False
    return True
