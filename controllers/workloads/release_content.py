"""The content of a release at the centre: its pieces, which lie in a folder, become blobs."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from relay.atomic_file import atomic_write
from relay.shell.publisher import CentrePublisher
from schemas.content.blobs import Reference, store
from schemas.records.release_body import RELEASE, STRETCH_BYTES, ReleaseBody, ReleasePiece
from schemas.releases.release_manifest import Piece, digest_of, is_sha256, read_manifest
from schemas.values.identity import MailKey

PIECES = "pieces"
NAMED = "named-pieces"
"""A line for each piece that releases named: they may be gone when the centre starts again."""
NAMED_MAX_BYTES = 16 * 1024 * 1024
log = logging.getLogger("leafcast.upgrades")


class PiecesLacking(Exception):
    """What a release needs does not lie where it is looked for; says what, and what to do."""


class ReleaseContent(NamedTuple):
    """What the record of a release says of its content."""

    manifest: str
    content: tuple[Reference, ...]
    pieces: tuple[ReleasePiece, ...]

    @classmethod
    def of(cls, body: ReleaseBody) -> ReleaseContent:
        return cls(body.manifest, body.content, body.pieces)


async def kept_content(
    relay: CentrePublisher, key: MailKey, manifest: bytes, folder: Path | None
) -> ReleaseContent:
    """Keep all of a release in the centre's store; raises PiecesLacking, OSError, BusBroken.

    Until a record names it, it is noted under the key, so that nobody sweeps it.
    """
    said = read_manifest(manifest)
    platforms = defaultdict[str, list[str]](list)
    for platform, pieces in sorted(said.pieces.items()):
        for piece in pieces:
            platforms[piece.sha256].append(platform)
    listed = sorted(said.all_pieces.values(), key=lambda piece: piece.sha256)
    files = [_file_of(piece, folder) for piece in listed]
    content: list[Reference] = []
    found: list[ReleasePiece] = []
    await _keep(relay, key, content, manifest)
    for piece, file in zip(listed, files, strict=True):
        before, digest = len(content), hashlib.sha256()
        stretches = _stretches(file)
        while stretch := await asyncio.to_thread(next, stretches, b""):
            digest.update(stretch)
            await _keep(relay, key, content, stretch)
        if digest.hexdigest() != piece.sha256:
            raise PiecesLacking(f"{file} is not what the manifest names as {piece.name}")
        count, whom = len(content) - before, tuple(platforms[piece.sha256])
        found.append(ReleasePiece(piece.sha256, piece.size, whom, count))
    return ReleaseContent(digest_of(manifest), tuple(content), tuple(found))


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


async def _keep(
    relay: CentrePublisher, key: MailKey, content: list[Reference], data: bytes
) -> None:
    blob = await asyncio.to_thread(store, RELEASE, data)
    content.append(blob.reference)
    lacking = relay.lacks(blob.values)
    if lacking:
        await relay.keep_history(key, content, {at: blob.values[at] for at in lacking})


def _file_of(piece: Piece, folder: Path | None) -> Path:
    file = folder / PIECES / piece.sha256 if folder is not None else None
    if file is None or not file.is_file():
        remedy = "give the centre its pieces: leafcast upgrade start VERSION --pieces FOLDER"
        raise PiecesLacking(f"{piece.name} is not at the centre; {remedy}")
    return file


def _stretches(file: Path) -> Iterator[bytes]:
    with file.open("rb") as read:
        while data := read.read(STRETCH_BYTES):
            yield data
