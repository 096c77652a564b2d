"""Which publisher a machine believes: pinned once, and changed by that publisher's roots alone."""

from __future__ import annotations

from pathlib import Path

from leafcast.publisher.publisher_files import read_file, write_file
from leafcast.publisher_pin import pinned_at
from relay.atomic_file import make_folder
from schemas.releases.publisher_roots import ROOT_MAX_BYTES, PublisherRoots
from schemas.releases.release_folder import PINNED, RELEASES
from schemas.releases.release_refused import ReleaseRefused


def pin_publisher(data_dir: Path, file: Path) -> PublisherRoots:
    """Pin the publisher in a file, and have the machine at this data directory go by it.

    One that is pinned is followed where it leads, and never replaced: raises ReleaseRefused for
    another, or PublisherFileUnusable.
    """
    named = named_publisher(file)
    pinned = pinned_publisher(data_dir)
    roots = named if pinned is None else _followed(pinned, named)
    if roots != pinned:
        make_folder(data_dir / RELEASES)
        write_file(data_dir / RELEASES / PINNED, roots.data)
    return roots


def named_publisher(file: Path) -> PublisherRoots:
    """The publisher in a file; raises ReleaseRefused, PublisherFileUnusable."""
    return PublisherRoots.parse(read_file(file, ROOT_MAX_BYTES))


def pinned_publisher(data_dir: Path) -> PublisherRoots | None:
    """The publisher that is pinned there, if one is; raises ReleaseRefused if it is damaged."""
    return pinned_at(data_dir / RELEASES / PINNED)


def _followed(pinned: PublisherRoots, named: PublisherRoots) -> PublisherRoots:
    same = {it.signed.version: it.signed for it in pinned.files}
    if any(same.get(it.signed.version, it.signed) != it.signed for it in named.files):
        remedy = "remove releases/pinned.json on the machine itself if you mean to change publisher"
        raise ReleaseRefused("publisher", "another one is pinned", remedy)
    return pinned.followed_by(named)
