"""Which record made an object unwanted: it is pruned only once a snapshot has settled that.

Whatever gains the object again was issued within 2 s of that record, and is known by then
(docs/protocol.md, D2).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from schemas.objects.objects import NAMESPACES, ObjectKey
from schemas.values.identity import MailKey

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


_A = TypeVar("_A")
_B = TypeVar("_B")


class ClaimHistory:
    """Objects by placement and placements by object, and which of the objects are left over."""

    def __init__(self) -> None:
        self._objects: dict[MailKey, dict[ObjectKey, None]] = {}
        self._placements: dict[ObjectKey, dict[MailKey, None]] = {}
        # Of each placement the objects that are there and that nothing wants.
        self._left: dict[MailKey, dict[ObjectKey, None]] = {}

    def add(self, placement: MailKey, key: ObjectKey) -> None:
        """The placement claims the object."""
        self._objects.setdefault(placement, {})[key] = None
        self._placements.setdefault(key, {})[placement] = None

    def remove(self, placement: MailKey, key: ObjectKey) -> None:
        """The placement has nothing to do with the object any more."""
        _discard(self._objects, placement, key)
        _discard(self._placements, key, placement)
        _discard(self._left, placement, key)

    def placements(self, key: ObjectKey) -> list[MailKey]:
        """Who claimed the object."""
        return list(self._placements.get(key, ()))

    def objects(self, placement: MailKey) -> list[ObjectKey]:
        """What the placement claimed."""
        return list(self._objects.get(placement, ()))

    def left(self, placement: MailKey) -> Mapping[ObjectKey, None]:
        """What the placement claimed, nothing wants, and is there."""
        return self._left.get(placement, {})

    def set_left(self, key: ObjectKey, *, is_left: bool) -> None:
        """Whether the object is there, and nothing wants it."""
        for placement in self._placements.get(key, ()):
            if is_left:
                self._left.setdefault(placement, {})[key] = None
            else:
                _discard(self._left, placement, key)

    def assert_invariants(self, left: Iterable[ObjectKey]) -> None:
        """Assert that both directions agree, and that just these objects are left over."""
        pairs = {(p, key) for p, keys in self._objects.items() for key in keys}
        assert pairs == {(p, key) for key, ps in self._placements.items() for p in ps}
        over = set(left)
        assert {(p, key) for p, keys in self._left.items() for key in keys} == {
            (p, key) for p, key in pairs if key in over
        }


def _discard(pairs: dict[_A, dict[_B, None]], first: _A, second: _B) -> None:
    held = pairs.get(first)
    if held is not None:
        held.pop(second, None)
        if not held:
            del pairs[first]
