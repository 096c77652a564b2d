"""Objects that are read at the centre alone: each once for each change of its spec."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Generic, TypeVar

from schemas.objects.objects import GroupResource, Object, is_terminating
from schemas.values.faults import InvalidObject

V = TypeVar("V")
T = TypeVar("T", str, GroupResource)


class ReadObjects(Generic[V, T]):
    """Those of one kind, by name; each change returns what it touches: placements, or kinds."""

    def __init__(self) -> None:
        self.objects: dict[str, Object] = {}
        # What is wrong, by name.
        self.invalid: dict[str, tuple[str, ...]] = {}
        # What they say, as it was read.
        self.values: dict[str, V] = {}

    def put(self, name: str, obj: Object) -> frozenset[T]:
        """Take the present state of one; one that is terminating counts as gone."""
        if is_terminating(obj):
            return self.remove(name)
        former = self.objects.get(name)
        self.objects[name] = obj
        if former is not None and former.get("spec") == obj.get("spec"):
            # A list shows it again, or its status is new: to read it takes a while.
            return frozenset()
        self.invalid.pop(name, None)
        before = self.values.get(name)
        try:
            value: V | None = self._read(name, obj)
        except InvalidObject as error:
            self.invalid[name] = tuple(map(str, error.faults))
            value = self._unreadable(name, obj)
        self.values.pop(name, None)
        if value is not None:
            self.values[name] = value
        return frozenset() if value == before else self._touched(name, before, value)

    def remove(self, name: str) -> frozenset[T]:
        """Take it that one is gone."""
        self.objects.pop(name, None)
        self.invalid.pop(name, None)
        before = self.values.pop(name, None)
        return frozenset() if before is None else self._touched(name, before, None)

    def warnings(self, _name: str, _served: AbstractSet[GroupResource] | None) -> tuple[str, ...]:
        """What else is to be known of one; `served` are the kinds that there are, if known."""
        return ()

    def _read(self, name: str, obj: Object) -> V:
        """What one says; raises InvalidObject."""
        raise NotImplementedError

    def _unreadable(self, _name: str, _obj: Object) -> V | None:
        """What counts of one that is not valid; nothing, unless a kind says otherwise."""
        return None

    def _touched(self, name: str, before: V | None, after: V | None) -> frozenset[T]:
        raise NotImplementedError
