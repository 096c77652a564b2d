"""The next root of a publisher: which keys may sign, how many must, and what may be installed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from securesystemslib.signer import Key
from tuf.api.metadata import Metadata, Role, Root

from leafcast.publisher.publisher_files import FORMER
from schemas.releases.publisher_roots import RELEASES, ROOT, ROOTS_MAX, PublisherRoots, lowest_of
from schemas.releases.release_manifest import OWN_FIELD
from schemas.releases.release_version import check_version

_NEVER = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
_UNUSED = ("snapshot", "timestamp")
"""Roles that TUF has and no release needs: what is newest is the tree's choice."""


@dataclass(frozen=True, slots=True)
class RootWish:
    """What the next root is to say; what is empty stays as it was."""

    root_keys: Sequence[Key] = ()
    root_threshold: int = 0
    release_keys: Sequence[Key] = ()
    release_threshold: int = 0
    lowest: str = ""


def next_root(before: PublisherRoots | None, wish: RootWish) -> Metadata[Root]:
    """The file of the root that follows, not signed yet; raises ReleaseRefused for a bad version.

    Without keys for releases those for roots sign them.
    """
    old = before.newest if before else None
    keys = {ROOT: wish.root_keys, RELEASES: wish.release_keys}
    thresholds = {ROOT: wish.root_threshold, RELEASES: wish.release_threshold}
    if old is None and not wish.release_keys:
        keys[RELEASES] = wish.root_keys
    root = Root(version=old.version + 1 if old else 1, expires=_NEVER, consistent_snapshot=None)
    for role, named in keys.items():
        former = old.roles[role] if old else None
        threshold = thresholds[role] or (former.threshold if former else 1)
        root.roles[role] = Role([], threshold)
        kept = [old.keys[keyid] for keyid in former.keyids] if old and former else []
        for key in named or kept:
            root.add_key(key, role)
    for role in _UNUSED:
        root.roles[role] = Role([], 1)
    lowest = wish.lowest or (lowest_of(old) if old else "0.0.0")
    root.unrecognized_fields[OWN_FIELD] = {"lowest": check_version(lowest, "lowest")}
    former_files = [it.to_dict() for it in before.files] if before else []
    return Metadata(root, unrecognized_fields={FORMER: former_files[-(ROOTS_MAX - 1) :]})
