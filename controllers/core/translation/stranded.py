"""A placement whose Rollout is gone: what its space wants now, and what of it nobody has yet."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from controllers.core.translation.stored_arms import Entries, differing
from controllers.core.translation.translate import IssuedDelta
from schemas.content.blobs import Reference
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


def news_among(before: IssuedDelta | None, wanted: Entries) -> frozenset[ObjectKey]:
    """The objects that someone has otherwise than this, lacks, or has too many."""
    contents = before.in_force if before is not None else []
    if before is None or not contents or any(gate.arm is None for gate in before.gates):
        # Someone has nothing yet: the waves of a new placement begin over nothing.
        contents = [*contents, {}]
    return frozenset[ObjectKey]().union(*(differing(entries, wanted) for entries in contents))


def objects_text(keys: Iterable[ObjectKey]) -> str:
    """How many objects these are, and some of them by name."""
    listed = sorted(keys)
    if not listed:
        return ""
    named = some_of([namespace_first(str(key)) for key in listed], OBJECTS_NAMED_MAX)
    return f"{many(len(listed), 'object')}: {named}"
