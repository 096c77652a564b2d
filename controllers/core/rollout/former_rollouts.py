"""A placement whose Rollout is gone: whether someone deleted it, and that it is let go once.

An annotation that lets a placement go counts for the Rollout that it had then. One that stays there
says nothing of a later Rollout.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schemas.objects.annotations import RELEASE_ROLLOUT
from schemas.records.records import FormerRollout

Object = Mapping[str, Any]


def says_release(placement: Object | None) -> bool:
    """Whether the annotation is there by which a person lets a placement go on."""
    metadata = (placement or {}).get("metadata") or {}
    return (metadata.get("annotations") or {}).get(RELEASE_ROLLOUT) == "true"


class FormerRollouts:
    """By the names of placements."""

    def __init__(self) -> None:
        # Those whose Rollout someone took away: they follow their space once nothing differs.
        self.deleted: set[str] = set()
        # Those whose annotation counted already.
        self.released: set[str] = set()

    def inherit(self, other: FormerRollouts) -> None:
        """Take over what is known, to try a change on."""
        self.deleted |= other.deleted
        self.released |= other.released

    def restore(self, name: str, known: FormerRollout) -> None:
        """Begin with what the ledger says of one."""
        if known.deleted:
            self.deleted.add(name)
        if known.released:
            self.released.add(name)

    def put(self, name: str, placement: Object) -> None:
        """Take the present state of a placement: an annotation that comes again counts again."""
        if not says_release(placement):
            self.released.discard(name)

    def lets_go(self, name: str, placement: Object | None) -> bool:
        """Whether a person lets a placement go on without the Rollout that it had."""
        return says_release(placement) and name not in self.released

    def counted(self, name: str, placement: Object | None) -> bool:
        """Whether the annotation is there, and let the placement go from a former Rollout."""
        return says_release(placement) and name in self.released

    def settle(
        self, name: str, placement: Object | None, *, is_steered: bool, is_gated: bool | None
    ) -> FormerRollout:
        """What the ledger is to say of one, which it has with gates or without, or not at all."""
        if is_gated is None and placement is None:
            self.released.discard(name)
        elif says_release(placement) and not is_steered and not is_gated:
            # There is nothing any more that it could let go.
            self.released.add(name)
        if is_steered or not is_gated:
            self.deleted.discard(name)
        return FormerRollout(name in self.deleted, name in self.released)
