"""Programs that are ready for an object: a few, as each of them holds a copy of it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

BOUND_BYTES_MAX = 32 * 1024 * 1024
"""Of all at one node; what is over is made ready anew when it is evaluated."""


class BoundPrograms:
    """The ones that were used last."""

    def __init__(self, most: int = BOUND_BYTES_MAX) -> None:
        self._most = most
        self._held: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._bytes = 0

    def get(self, place: Hashable) -> Any | None:
        """The program that is ready for a place, if it is still held."""
        found = self._held.get(place)
        if found is None:
            return None
        self._held.move_to_end(place)
        return found[0]

    def put(self, place: Hashable, bound: object, weight: int) -> None:
        """Hold one of so many bytes, and let go of those that were not used for longest."""
        self.forget(place)
        self._held[place] = (bound, weight)
        self._bytes += weight
        while self._bytes > self._most and len(self._held) > 1:
            self._bytes -= self._held.popitem(last=False)[1][1]

    def forget(self, place: Hashable) -> None:
        _, weight = self._held.pop(place, (None, 0))
        self._bytes -= weight
