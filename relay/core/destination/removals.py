"""Which record made an object unwanted: it is pruned only once a snapshot has settled that.

Whatever gains the object again was issued within 2 s of that record, and is known by then
(docs/protocol.md, D2).
"""

from __future__ import annotations

from collections.abc import Iterable

from schemas.objects.objects import NAMESPACES, ObjectKey

DROPPED = 0
"""The cause of what a snapshot dropped: it is carried out under that very snapshot."""


class RemovalCauses:
    """For each object that lost a claim the generation of the record that caused it."""

    def __init__(self, unknown: int) -> None:
        """`unknown` is the cause of what was unwanted before this run."""
        self._unknown = unknown
        self._causes: dict[ObjectKey, int] = {}

    def lost(self, keys: Iterable[ObjectKey], cause: int) -> None:
        """Something ceased to claim these objects; of several causes the newest counts."""
        for key in keys:
            self._causes[key] = max(self._causes.get(key, DROPPED), cause)

    def lost_before(self, keys: Iterable[ObjectKey], cause: int) -> None:
        """They were claimed before this run: of what is not known better this may be the cause."""
        for key in keys:
            if self._causes.get(key) == self._unknown:
                self._causes[key] = max(self._unknown, cause)

    def forget(self, key: ObjectKey) -> None:
        """The object is wanted again, or gone."""
        self._causes.pop(key, None)

    def of(self, key: ObjectKey) -> int:
        """The generation that has to be settled; of a Namespace that was implied, what it held."""
        cause = self._causes.get(key)
        if cause is not None:
            return cause
        if key.group_resource != NAMESPACES:
            return self._unknown
        inside = (c for other, c in self._causes.items() if other.namespace == key.name)
        return max(inside, default=self._unknown)
