"""Contents of a placement as the store has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from controllers.core.rollout.rejection import Needs
from schemas.content.blobs import Reference
from schemas.content.manifest import ManifestEntry
from schemas.content.sealing import SealingKey
from schemas.objects.objects import ObjectKey
from schemas.reports.upsync import UpsyncClause
from schemas.values.identity import ContentHash

Entries = Mapping[ObjectKey, ManifestEntry]


def differing(had: Entries, wanted: Entries) -> frozenset[ObjectKey]:
    """The objects of which two contents say something else to a destination."""
    return frozenset(
        key
        for key in had.keys() | wanted.keys()
        if (old := had.get(key)) is None
        or (new := wanted.get(key)) is None
        or old.content != new.content
    )


class StoredArm(NamedTuple):
    """One content of a placement, and the blobs of its manifest."""

    entries: Entries
    kept: frozenset[ContentHash]
    sealed_under: SealingKey | None = None
    upsync: tuple[UpsyncClause, ...] = ()


class WishedArm(NamedTuple):
    """What a space wants and a target does not say: its manifest, and the objects that differ."""

    root: Reference
    arm: StoredArm
    rejected: tuple[ObjectKey, ...]


class RejectedArms(NamedTuple):
    """What a space wanted last, what of that goes out, and what objects need to be there."""

    wish: StoredArm
    target: StoredArm
    needs: Needs
