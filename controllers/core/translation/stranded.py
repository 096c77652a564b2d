"""A placement whose Rollout is gone: what its space wants now, and what of it nobody has yet."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from controllers.core.translation.stored_arms import Entries
from controllers.core.translation.translate import IssuedDelta, Translation
from schemas.content.blobs import Reference
from schemas.content.manifest import ManifestEntry
from schemas.objects.objects import ObjectKey
from schemas.values.wording import many, namespace_first, some_of

OBJECTS_NAMED_MAX = 4


class Stranded(NamedTuple):
    """What everyone would get if it were let go; `differing` are those that are new to someone."""

    newest: Reference | None
    differing: frozenset[ObjectKey]
    entries: Entries

    @property
    def news(self) -> str:
        """`2 objects: shop/deployments.apps/web, shop/services/web`; "" if nothing differs."""
        return objects_text(self.differing)


def stranded(before: IssuedDelta, stays: Translation) -> Stranded:
    """What a placement that stays as it is would come to."""
    return Stranded(stays.root, differing(before, stays.entries), stays.entries)


def differing(before: IssuedDelta, wanted: Entries) -> frozenset[ObjectKey]:
    """The objects that someone has otherwise than this, lacks, or has too many."""
    found = set[ObjectKey]()
    contents = before.in_force
    if not contents or any(gate.arm is None for gate in before.gates):
        # Someone has nothing yet: the waves of a new placement begin over nothing.
        contents = [*contents, {}]
    for entries in contents:
        found |= {key for key, entry in wanted.items() if not _same(entries.get(key), entry)}
        found |= entries.keys() - wanted.keys()
    return frozenset(found)


def _same(former: ManifestEntry | None, entry: ManifestEntry) -> bool:
    """Whether a destination would not tell them apart: a write that changed nothing is no news."""
    if former is None:
        return False
    return (former.identity, former.customizer) == (entry.identity, entry.customizer)


def objects_text(keys: Iterable[ObjectKey]) -> str:
    """How many objects these are, and some of them by name."""
    listed = sorted(keys)
    if not listed:
        return ""
    named = some_of([namespace_first(str(key)) for key in listed], OBJECTS_NAMED_MAX)
    return f"{many(len(listed), 'object')}: {named}"
