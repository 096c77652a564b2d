"""What a release consists of: its pieces for each platform, and what it gets on with.

The file is TUF metadata of the role `targets`: other tools for TUF read and verify it, too. Reading
it here verifies nothing: `PublisherRoots` does.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from schemas.releases.release_refused import ReleaseRefused
from schemas.releases.release_version import check_version
from schemas.releases.release_wires import Wires

PLATFORMS = ("linux-amd64", "linux-arm64")
MANIFEST_MAX_BYTES = 512 * 1024
PIECES_MAX = 256
"""Of one platform."""
PIECE_MAX_BYTES = 128 * 1024 * 1024
RELEASE_MAX_BYTES = 512 * 1024 * 1024
"""Of one platform, all pieces together."""
WIRE_MAX = 1_000
NEVER = "9999-12-31T23:59:59Z"
"""When metadata expires: never. A place that was offline for long has no clock to go by."""
OWN_FIELD = "leafcast"
CENTRE_FIRST, CENTRE_LAST = "first", "last"
"""When the centre takes it, where its wire allows both: before all others, or after them."""

_PIECE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+!-]{0,195}\.whl")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_MAKE = "make it with `leafcast release make`"


@dataclass(frozen=True, slots=True)
class Piece:
    """One file of a release: a wheel, found by the hash of its bytes."""

    name: str
    sha256: str
    size: int

    def __post_init__(self) -> None:
        if not _PIECE_NAME.fullmatch(self.name):
            raise ReleaseRefused("pieces", f"{self.name!r} is no name of a wheel", _MAKE)
        if not is_sha256(self.sha256):
            raise ReleaseRefused("pieces", f"{self.name} has no SHA-256", _MAKE)
        if not _is_count(self.size, PIECE_MAX_BYTES) or not self.size:
            reason = f"{self.name} has {self.size!r} bytes; a piece has 1 to {PIECE_MAX_BYTES}"
            raise ReleaseRefused("pieces", reason, _MAKE)

    def holds(self, data: bytes) -> bool:
        """Whether these are its bytes."""
        return len(data) == self.size and digest_of(data) == self.sha256

    @property
    def why_altered(self) -> str:
        """What is wrong with other bytes."""
        return f"{self.name}: the bytes are not those that the release names"


@dataclass(frozen=True, slots=True)
class ReleaseManifest:
    """One release."""

    version: str
    # By platform; those that it is not made for are not there.
    pieces: Mapping[str, tuple[Piece, ...]]
    nats_server: str
    # The versions of the link that it speaks, both ends included.
    wire_lowest: int
    wire_highest: int
    # From no version below this one it can follow.
    upgrades_from: str
    centre: str = CENTRE_FIRST

    def __post_init__(self) -> None:
        check_version(self.version, "version")
        check_version(self.nats_server, "nats_server")
        check_version(self.upgrades_from, "upgrades_from")
        if not (
            _is_count(self.wire_lowest, WIRE_MAX)
            and _is_count(self.wire_highest, WIRE_MAX)
            and 1 <= self.wire_lowest <= self.wire_highest
        ):
            reason = f"{self.wire_lowest!r} to {self.wire_highest!r} are no versions of the wire"
            raise ReleaseRefused("wire", reason, _MAKE)
        if self.centre not in (CENTRE_FIRST, CENTRE_LAST):
            reason = f"{self.centre!r} is no order; the centre goes {CENTRE_FIRST} or {CENTRE_LAST}"
            raise ReleaseRefused("centre", reason, _MAKE)
        if not self.pieces or not set(self.pieces) <= set(PLATFORMS):
            reason = f"{sorted(self.pieces)} are none of {', '.join(PLATFORMS)}"
            raise ReleaseRefused("pieces", reason, _MAKE)
        for platform, pieces in self.pieces.items():
            _check_pieces(platform, pieces)

    def of(self, platform: str) -> tuple[Piece, ...]:
        """What it has for a platform; raises ReleaseRefused if it has nothing."""
        if found := self.pieces.get(platform):
            return found
        reason = f"release {self.version} has none for {platform}: {', '.join(sorted(self.pieces))}"
        raise ReleaseRefused("pieces", reason, "choose a release that is made for this machine")

    @property
    def wires(self) -> Wires:
        """The versions of the wire that it speaks."""
        return Wires(self.wire_lowest, self.wire_highest)

    @property
    def all_pieces(self) -> dict[str, Piece]:
        """Each once, by its hash: platforms share most of them."""
        return {piece.sha256: piece for pieces in self.pieces.values() for piece in pieces}

    @property
    def form(self) -> dict[str, Any]:
        """The signed part of its file, as `read_manifest` finds it."""
        return {
            "_type": "targets",
            "spec_version": "1.0.31",
            "version": 1,
            "expires": NEVER,
            "targets": {
                f"{platform}/{piece.name}": {
                    "length": piece.size,
                    "hashes": {"sha256": piece.sha256},
                }
                for platform, pieces in self.pieces.items()
                for piece in pieces
            },
            OWN_FIELD: {
                "version": self.version,
                "nats_server": self.nats_server,
                "wire": [self.wire_lowest, self.wire_highest],
                "upgrades_from": self.upgrades_from,
                **({"centre": self.centre} if self.centre != CENTRE_FIRST else {}),
            },
        }


def read_manifest(data: bytes) -> ReleaseManifest:
    """What the file of a release says, whoever signed it; raises ReleaseRefused."""
    signed = signed_part(data, "release", MANIFEST_MAX_BYTES)
    if signed.get("_type") != "targets":
        raise ReleaseRefused("release", "the file is none of a release", _MAKE)
    own, targets = signed.get(OWN_FIELD), signed.get("targets")
    if not isinstance(own, dict) or not isinstance(targets, dict):
        raise ReleaseRefused("release", f"it lacks targets or {OWN_FIELD!r}", _MAKE)
    known = {"version", "nats_server", "wire", "upgrades_from"}
    if lacking := sorted(known - set(own)):
        raise ReleaseRefused("release", f"it does not say {', '.join(lacking)}", _MAKE)
    wire = own["wire"]
    if not isinstance(wire, list) or len(wire) != 2:
        raise ReleaseRefused("wire", f"{wire!r} is not its lowest and its highest version", _MAKE)
    pieces: dict[str, list[Piece]] = {}
    for path, said in targets.items():
        platform, _, name = str(path).partition("/")
        pieces.setdefault(platform, []).append(_piece(name, said))
    return ReleaseManifest(
        version=own["version"],
        pieces={it: tuple(found) for it, found in pieces.items()},
        nats_server=own["nats_server"],
        wire_lowest=wire[0],
        wire_highest=wire[1],
        upgrades_from=own["upgrades_from"],
        centre=own.get("centre", CENTRE_FIRST),
    )


def signed_part(data: bytes, what: str, bytes_max: int, remedy: str = _MAKE) -> dict[str, Any]:
    """What is signed in a file of TUF metadata; raises ReleaseRefused."""
    if len(data) > bytes_max:
        raise ReleaseRefused(what, f"it has {len(data)} bytes, at most {bytes_max} do", remedy)
    try:
        said = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ReleaseRefused(what, f"it is no JSON: {error}", remedy) from error
    signed = said.get("signed") if isinstance(said, dict) else None
    if not isinstance(signed, dict):
        raise ReleaseRefused(what, "it lacks a signed part", remedy)
    return signed


def digest_of(data: bytes) -> str:
    """The hash by which a file is found."""
    return hashlib.sha256(data).hexdigest()


def is_sha256(text: object) -> bool:
    return isinstance(text, str) and _SHA256.fullmatch(text) is not None


def _piece(name: str, said: object) -> Piece:
    hashes = said.get("hashes") if isinstance(said, dict) else None
    if not isinstance(said, dict) or not isinstance(hashes, dict):
        raise ReleaseRefused("pieces", f"{name!r} has no length or no hashes", _MAKE)
    return Piece(name, hashes.get("sha256", ""), said.get("length", 0))


def _check_pieces(platform: str, pieces: tuple[Piece, ...]) -> None:
    if not pieces or len(pieces) > PIECES_MAX:
        reason = f"{platform} has {len(pieces)}; a release has 1 to {PIECES_MAX}"
        raise ReleaseRefused("pieces", reason, _MAKE)
    total = sum(piece.size for piece in pieces)
    if total > RELEASE_MAX_BYTES:
        reason = f"{platform} has {total} bytes; at most {RELEASE_MAX_BYTES} do"
        raise ReleaseRefused("pieces", reason, _MAKE)


def _is_count(value: object, most: int) -> bool:
    return type(value) is int and 0 <= value <= most
