"""What was aborted or undone stays back by itself: object by object, until the space says another.

Two contents tell it: what the space wanted last, and what goes out of that. Where these differ an
object is rejected, and stays as what goes out says. What changes in the space since goes out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple, TypeVar

from controllers.core.rollout.state import changed, reference, target_of
from relay.objects.stored_object import timestamp
from schemas.api.rollout_status import RejectedObjects, RolloutStatus
from schemas.content.blobs import Reference
from schemas.content.manifest import ManifestEntry, build_manifest
from schemas.objects.objects import ObjectKey
from schemas.values.wording import namespace_first

NAMED_MAX = 16
"""So many rejected objects a status names."""
TOLD_MAX = 5
NOTHING = build_manifest(())[0].reference
"""The content of a placement that has none."""

Entries = Mapping[ObjectKey, ManifestEntry]
Needs = Callable[[AbstractSet[ObjectKey]], AbstractSet[ObjectKey]]
"""What must be at a destination for these objects to be there."""
K = TypeVar("K")


class Rejection(NamedTuple):
    """What the space wanted last, and what of that goes out."""

    wish: Reference
    target: Reference


class Wanted(NamedTuple):
    """What is to go out of what a space wants."""

    target: Reference
    # What the space wants in fact, if some of it is rejected, and which objects these are.
    wish: Reference | None = None
    rejected: tuple[ObjectKey, ...] = ()
    # What was rejected before; what is made over another one is out of date.
    over: Rejection | None = None

    @property
    def rejection(self) -> Rejection | None:
        """What is to be remembered of it."""
        return None if self.wish is None else Rejection(self.wish, self.target)


def rejection_of(state: RolloutStatus) -> Rejection | None:
    """What a rollout rejects; None if nothing."""
    target = target_of(state)
    if not state.wish or target is None:
        return None
    return Rejection(reference(state.wish, state.wish_size), target)


def rejecting(
    state: RolloutStatus, former: Reference | None, number: int, now_ms: int, *, undone: bool
) -> RolloutStatus:
    """The state in which a revision is rejected where it differs from a former content."""
    known, instead = rejection_of(state), former or NOTHING
    wish = known.wish if known is not None else target_of(state)
    state = changed(state, target=instead.address, target_size=instead.size)
    if wish is None or wish == instead:
        return accepting(state)
    said = RejectedObjects(
        reason="Undone" if undone else "Aborted", revision=number, since=timestamp(now_ms)
    )
    return changed(state, wish=wish.address, wish_size=wish.size, rejected=said)


def accepting(state: RolloutStatus) -> RolloutStatus:
    """The state in which nothing is rejected."""
    return changed(state, wish="", wish_size=0, rejected=None)


def taken(state: RolloutStatus, wanted: Wanted) -> RolloutStatus:
    """The state that knows what of the present wish is rejected."""
    if wanted.wish is None:
        return accepting(state)
    said = counted(state.rejected or RejectedObjects(reason="Aborted"), wanted.rejected)
    return changed(state, wish=wanted.wish.address, wish_size=wanted.wish.size, rejected=said)


def counted(said: RejectedObjects, keys: Sequence[ObjectKey] | None) -> RejectedObjects:
    """The same with how many objects these are, and some by name; None: nobody knows yet."""
    if keys is None:
        return said
    names = tuple(namespace_first(str(key)) for key in keys[:NAMED_MAX])
    return changed(said, objects=len(keys), names=names)


def still_rejected(
    wish: Mapping[K, object],
    wish_before: Mapping[K, object],
    target_before: Mapping[K, object],
    needs: Callable[[AbstractSet[K]], AbstractSet[K]],
) -> frozenset[K]:
    """The objects of which a wish says what was rejected, so that they stay as they went out.

    What goes out takes along what it needs. A first revision leaves nothing to stay at: a change of
    one of its objects lets all of it out.
    """
    listed = wish_before.keys() | target_before.keys()
    rejected = {key for key in listed if wish_before.get(key) != target_before.get(key)}
    left = {key for key in rejected if wish.get(key) == wish_before.get(key)}
    if len(left) < len(rejected) and not target_before:
        return frozenset()
    coming = wish.keys() - target_before.keys() - left
    while coming:
        coming = {key for key in needs(coming) if key in left and key not in target_before}
        left -= coming
    return frozenset(left)


def differences(entries: Entries) -> dict[ObjectKey, tuple[object, ...]]:
    """What is compared of objects: all that decides what a destination gets."""
    return {
        key: (entry.identity, entry.customizer, entry.flags, entry.order)
        for key, entry in entries.items()
    }


def told(rejected: RejectedObjects) -> str:
    """How many objects are rejected, some by name, and of which revision."""
    count = rejected.objects or 0
    done = "aborted" if rejected.reason == "Aborted" else "undone"
    of = f"revision {rejected.revision}" if rejected.revision else "a revision"
    if not count:
        return f"{of} was {done}, and is still what the centre says"
    shown = list(rejected.names[:TOLD_MAX])
    more = f", and {count - len(shown)} more" if count > len(shown) else ""
    who = "1 object differs" if count == 1 else f"{count} objects differ"
    return f"{of} was {done}, and {who} at the centre: {', '.join(shown)}{more}"
