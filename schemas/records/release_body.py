"""What a release of Leafcast is made of, and which nodes run it: the body of its record."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated

from schemas.content.blobs import Reference
from schemas.objects.selectors import LabelSelector
from schemas.records.windows import Window
from schemas.releases.release_folder import ATTEMPTS_MAX
from schemas.releases.release_version import check_version
from schemas.values.identity import NodePath
from schemas.values.wire import Meta, Natural, WireRecord, encode

RELEASE = "release"
"""The kind of its content: the signed manifest, and stretches of its pieces."""

STRETCH_BYTES = 4 * 1024 * 1024
PIECES_MAX = 512
STRETCHES_MAX = 1024
RELEASE_MAX_BYTES = 1024 * 1024 * 1024
WAVES_MAX = 20
RELAYS_ALL = 255
"""Deeper than any path goes."""
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_ALL = 10_000


class ReleasePiece(WireRecord, frozen=True):
    """One file of a release; its bytes are so many stretches of the content, in order."""

    sha256: str
    size: Natural
    # Such as linux-amd64; a piece may be of several.
    platforms: tuple[str, ...]
    stretches: Natural

    def __post_init__(self) -> None:
        if not _SHA256.match(self.sha256):
            raise ValueError("the SHA-256 of a piece is not 64 hex digits")


class ReleaseWave(WireRecord, frozen=True):
    """Which nodes are to run the release; the first wave that admits a node is its own.

    With the defaults it admits all edges.
    """

    number: Natural
    path: NodePath = NodePath()
    selector: LabelSelector | None = None
    # Of 10,000: where an edge falls with this salt.
    below: Natural = _ALL
    salt: str = ""
    # Outside of them nobody begins; without any everybody may always.
    windows: tuple[Window, ...] = ()
    # Relays with so many names in their path, or fewer, above what the wave admits.
    relays: Natural = RELAYS_ALL
    # Whether edges are admitted, too, and not relays alone.
    edges: bool = True
    # Relays with so many names in their path, or more.
    relays_from: Natural = 0


class ReleaseBody(WireRecord, frozen=True):
    """The version, its content, and the waves that are open."""

    # The manifest first, then the stretches of all pieces in order.
    content: Annotated[tuple[Reference, ...], Meta(max_length=STRETCHES_MAX + 1)]
    version: str
    # The SHA-256 of the signed manifest, by which whoever installs it knows it.
    manifest: str
    pieces: Annotated[tuple[ReleasePiece, ...], Meta(max_length=PIECES_MAX)]
    waves: Annotated[tuple[ReleaseWave, ...], Meta(max_length=WAVES_MAX)] = ()
    # Who could not take it tries once more when this is another number.
    attempt: Annotated[int, Meta(ge=0, le=ATTEMPTS_MAX)] = 0
    # Who speaks an older version of the wire is to run the release before it gets other records.
    needs: Natural = 0

    def __post_init__(self) -> None:
        check_version(self.version, "version")
        if not _SHA256.match(self.manifest):
            raise ValueError("the SHA-256 of its manifest is not 64 hex digits")
        if len(self.content) != 1 + sum(piece.stretches for piece in self.pieces):
            raise ValueError("its content is not its manifest and the stretches of its pieces")
        if sum(reference.size for reference in self.content) > RELEASE_MAX_BYTES:
            raise ValueError(f"it has more than {RELEASE_MAX_BYTES} bytes")
        for piece, stretches in self._pieces():
            # By it a node sees whether it has room: what is more than was said is not fetched.
            if sum(reference.size for reference in stretches) != piece.size:
                raise ValueError(f"piece {piece.sha256[:12]} is not as large as its stretches")

    def encode(self) -> bytes:
        return encode(self)

    def pieces_of(self, platform: str) -> list[tuple[ReleasePiece, tuple[Reference, ...]]]:
        """The pieces that a node of this platform needs, each with its stretches."""
        return [
            (piece, stretches) for piece, stretches in self._pieces() if platform in piece.platforms
        ]

    def _pieces(self) -> Iterator[tuple[ReleasePiece, tuple[Reference, ...]]]:
        at = 1
        for piece in self.pieces:
            yield piece, self.content[at : at + piece.stretches]
            at += piece.stretches
