"""A publisher for tests: keys, roots and releases that it signs, without any command."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from tuf.api.metadata import Metadata, Root

from leafcast.publisher.publisher_files import PublisherKey, file_data
from leafcast.publisher.release_making import release_file
from leafcast.publisher.root_making import RootWish, next_root
from schemas.releases.publisher_roots import PublisherRoots
from schemas.releases.release_manifest import Piece, ReleaseManifest, digest_of


def key(name: str) -> PublisherKey:
    return PublisherKey(hashlib.sha256(name.encode()).digest())


def signed(file: Metadata, *keys: PublisherKey) -> bytes:
    """The file with their signatures, whether or not anybody asks for them."""
    for each in keys:
        file.signatures[each.public.keyid] = each.signature(file.signed_bytes)
    return file_data(file)


def wish(
    roots: Sequence[PublisherKey] = (),
    threshold: int = 0,
    releases: Sequence[PublisherKey] = (),
    release_threshold: int = 0,
    lowest: str = "",
) -> RootWish:
    return RootWish(
        [it.public for it in roots],
        threshold,
        [it.public for it in releases],
        release_threshold,
        lowest,
    )


def root_after(
    before: PublisherRoots | None, change: RootWish, *keys: PublisherKey
) -> PublisherRoots:
    """The roots with one more that these keys sign; raises ReleaseRefused if that is not enough."""
    file: Metadata[Root] = next_root(before, change)
    return PublisherRoots.parse(signed(file, *keys))


def piece(name: str, content: bytes) -> Piece:
    return Piece(name, digest_of(content), len(content))


def manifest(version: str = "0.3.0", **more) -> ReleaseManifest:
    said = {
        "pieces": {"linux-amd64": (piece(f"leafcast-{version}-py3-none-any.whl", b"wheel"),)},
        "nats_server": "2.15.1",
        "wire_lowest": 2,
        "wire_highest": 2,
        "upgrades_from": "0.1.0",
    }
    return ReleaseManifest(version, **{**said, **more})


def release(roots: PublisherRoots, *keys: PublisherKey, of: ReleaseManifest | None = None) -> bytes:
    """The file of a release, signed by these keys."""
    return signed(release_file(of or manifest(), roots), *keys)
