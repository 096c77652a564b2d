"""What is being done about objects, and which of them may be otherwise by it than is known."""

from __future__ import annotations

from collections import Counter

from relay.core.destination.claims import DesiredObject
from relay.syncer.pending import key_of
from relay.syncer.plan import ApplyObject, InspectObject, ObjectAction, PruneObject
from schemas.objects.objects import ObjectKey

APPLIED, APPLY_FAILED, PRUNED, PRUNE_FAILED = "applied", "apply_failed", "pruned", "prune_failed"
RESULTS = (APPLIED, APPLY_FAILED, PRUNED, PRUNE_FAILED)
"""How an action ends that changes an object; one that failed is tried again, and counts anew."""


class ActionsUnderWay:
    """At most one action per object; a failed one may have been carried out all the same."""

    def __init__(self) -> None:
        self._busy: dict[ObjectKey, ObjectAction] = {}
        # Per object the last action that changes it and was not confirmed.
        self._unconfirmed: dict[ObjectKey, ApplyObject | PruneObject] = {}
        self.results: Counter[str] = Counter()
        """How many ended how; see RESULTS."""

    def __contains__(self, key: ObjectKey) -> bool:
        return key in self._busy

    def __bool__(self) -> bool:
        return bool(self._busy)

    @property
    def keys(self) -> frozenset[ObjectKey]:
        """The objects about which something is being done now."""
        return frozenset(self._busy)

    def begin(self, action: ObjectAction) -> ObjectKey:
        """The object of an action that begins now."""
        key = key_of(action)
        self._busy[key] = action
        if not isinstance(action, InspectObject):
            self._unconfirmed[key] = action
        return key

    def end(self, key: ObjectKey, *, confirmed: bool) -> None:
        """It was carried out, or the object was looked at; else nobody knows what became of it."""
        match self._busy.pop(key, None):
            case ApplyObject():
                self.results[APPLIED if confirmed else APPLY_FAILED] += 1
            case PruneObject():
                self.results[PRUNED if confirmed else PRUNE_FAILED] += 1
            case _:
                pass
        if confirmed:
            self.forget(key)

    def forget(self, key: ObjectKey) -> None:
        """The object is not looked after any more, or is known."""
        self._unconfirmed.pop(key, None)

    def may_change(self, key: ObjectKey, wanted: DesiredObject | None) -> bool:
        """Whether the object may be made another than is wanted now, or is already."""
        match self._unconfirmed.get(key):
            case None:
                return False
            case PruneObject():
                return True
            case ApplyObject(former):
                return wanted is None or former.address != wanted.address
