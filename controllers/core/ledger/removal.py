"""Nothing is deleted because something is unknown: which removals pass, which are held.

An explicit deletion, or an edit of a placement or a label, is taken at its word. A removal that is
only inferred, because a list no longer shows what was there, is held if it looks like blindness.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Generic, TypeVar

from schemas.objects.objects import DEFINITIONS, NAMESPACES, GroupResource, ObjectKey
from schemas.values.wording import some_of

REMOVALS_MIN = 10
REMOVALS_SHARE = 0.2

NAMED_MAX = 5
UNREADABLE = "the content of what it held is lost, so nobody can tell what would go"
LOST = "what the centre's space stored of them is damaged or lost"
REMEDY = "apply them again, or let them go with `leafcast accept {name}`"
OUTDATED = "the centre's space lost what was newest, and may show them as they once were"
OUTDATED_REMEDY = (
    "apply them as they should be, delete what was deleted, then let out what else differs with "
    "`leafcast accept {name}`"
)

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True, slots=True)
class HeldRemoval(Generic[T]):
    """Removals that wait for someone's word, and why; nothing is held if `items` is empty."""

    items: frozenset[T]
    reason: str = ""


def removals_max(count: int) -> int:
    """How many of `count` may go at once by inference."""
    return max(REMOVALS_MIN, int(count * REMOVALS_SHARE))


def hold_objects(
    before: AbstractSet[ObjectKey],
    inferred: AbstractSet[ObjectKey],
    kinds_now: AbstractSet[GroupResource],
    shown: AbstractSet[ObjectKey] = frozenset(),
    undefined: AbstractSet[ObjectKey] = frozenset(),
) -> HeldRemoval[ObjectKey]:
    """Judge the inferred removals of one placement's objects.

    `before` is all that the placement held, `kinds_now` the kinds of which the space still shows
    some object; those that are `shown` would go for the labels of their Namespace alone, those that
    are `undefined` went with their definition. (A space of another identity has placements of its
    own, and removes none of these.)
    """
    if not inferred:
        return HeldRemoval(frozenset())
    if len(inferred) > removals_max(len(before)):
        return HeldRemoval(frozenset(inferred), _too_many(len(inferred), len(before), "objects"))
    blind = {key for key in inferred if key.group_resource not in kinds_now}
    kinds = {key.resource for key in blind}
    if inferred & shown and NAMESPACES not in kinds_now:
        blind |= inferred & shown
        kinds.add("namespaces")
    if gone := inferred & undefined:
        said = f"the definition of {', '.join(sorted({_defined(key) for key in gone}))} is gone"
        return HeldRemoval(frozenset(blind | gone), said)
    if not blind:
        return HeldRemoval(frozenset())
    return HeldRemoval(frozenset(blind), f"no {', '.join(sorted(kinds))} are seen any more")


def hold_records(
    before: Collection[T], inferred: AbstractSet[T], what: str, *, seen_any: bool
) -> HeldRemoval[T]:
    """Judge inferred removals of whole placements, destinations or Locations.

    `seen_any` says whether the space still shows one of their kind.
    """
    if not inferred:
        return HeldRemoval(frozenset())
    if not seen_any:
        return HeldRemoval(frozenset(inferred), f"no {what} are seen any more")
    if len(inferred) > removals_max(len(before)):
        return HeldRemoval(frozenset(inferred), _too_many(len(inferred), len(before), what))
    return HeldRemoval(frozenset())


def named(keys: Collection[ObjectKey]) -> str:
    """Some of these objects by name, and how many more there are."""
    return some_of([str(key) for key in sorted(keys)], NAMED_MAX)


def _defined(key: ObjectKey) -> str:
    return key.name if key.group_resource == DEFINITIONS else f"{key.resource}.{key.group}"


def _too_many(count: int, whole: int, what: str) -> str:
    return f"{count} of {whole} {what} would go at once, at most {removals_max(whole)} may"
