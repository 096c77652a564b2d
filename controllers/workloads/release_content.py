"""The content of a release at the centre: its pieces, which lie in a folder, become blobs."""

from __future__ import annotations

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from relay.shell.publisher import CentrePublisher
from schemas.content.blobs import Reference, store
from schemas.records.release_body import RELEASE, STRETCH_BYTES, ReleaseBody, ReleasePiece
from schemas.releases.release_folder import PIECES
from schemas.releases.release_manifest import Piece, digest_of, read_manifest
from schemas.values.identity import MailKey


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
    version = said.version
    files = [_file_of(piece, folder, version) for piece in listed]
    content: list[Reference] = []
    found: list[ReleasePiece] = []
    await _keep(relay, key, content, manifest)
    for piece, file in zip(listed, files, strict=True):
        before, digest = len(content), hashlib.sha256()
        stretches = _stretches(file)
        while stretch := await asyncio.to_thread(next, stretches, b""):
            digest.update(stretch)
            await _keep(relay, key, content, stretch)
        size = sum(reference.size for reference in content[before:])
        if (digest.hexdigest(), size) != (piece.sha256, piece.size):
            why = f"{file} is not what the manifest names as {piece.name}"
            raise PiecesLacking(f"{why}; {_remedy(version)}")
        count, whom = len(content) - before, tuple(platforms[piece.sha256])
        found.append(ReleasePiece(piece.sha256, piece.size, whom, count))
    return ReleaseContent(digest_of(manifest), tuple(content), tuple(found))


async def _keep(
    relay: CentrePublisher, key: MailKey, content: list[Reference], data: bytes
) -> None:
    blob = await asyncio.to_thread(store, RELEASE, data)
    content.append(blob.reference)
    lacking = relay.lacks(blob.values)
    if lacking:
        await relay.keep_history(key, content, {at: blob.values[at] for at in lacking})


def _remedy(version: str) -> str:
    return f"give the centre its pieces: leafcast upgrade start {version} --pieces FOLDER"


def _file_of(piece: Piece, folder: Path | None, version: str) -> Path:
    file = folder / PIECES / piece.sha256 if folder is not None else None
    if file is None or not file.is_file():
        raise PiecesLacking(f"{piece.name} is not at the centre; {_remedy(version)}")
    return file


def _stretches(file: Path) -> Iterator[bytes]:
    with file.open("rb") as read:
        while data := read.read(STRETCH_BYTES):
            yield data
