"""How often one object is repaired: at once at first, then ever more rarely, so that no war begins.

Whoever changes it back each time (a person, an operator, another tool) is named, and neither
floods the server.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from schemas.objects.objects import ObjectKey

FREE, FREE_SECONDS = 5, 60.0
PAUSE_SECONDS_MIN, PAUSE_SECONDS_MAX = 60.0, 600.0


@dataclass(slots=True)
class _Repaired:
    """When an object was repaired lately, and how long the next repair waits for the last one."""

    lately: deque[float] = field(default_factory=lambda: deque(maxlen=FREE))
    pause: float = 0.0


class Repairs:
    """The repairs of all objects; an object that was calm for long is forgotten."""

    def __init__(self) -> None:
        self._by_object: dict[ObjectKey, _Repaired] = {}

    def due(self, key: ObjectKey, now: float) -> float:
        """When the object may be repaired: now, or later."""
        held = self._by_object.get(key)
        if held is None:
            return now
        if now - held.lately[-1] >= 2 * max(held.pause, FREE_SECONDS):
            del self._by_object[key]
            return now
        is_spent = len(held.lately) == FREE and now - held.lately[0] < FREE_SECONDS
        if not held.pause and is_spent:
            held.pause = PAUSE_SECONDS_MIN
        return max(now, held.lately[-1] + held.pause)

    def made(self, key: ObjectKey, now: float) -> None:
        """The object was repaired."""
        held = self._by_object.setdefault(key, _Repaired())
        if held.pause:
            held.pause = min(2 * held.pause, PAUSE_SECONDS_MAX)
        held.lately.append(now)

    def forget(self, key: ObjectKey) -> None:
        """The object is not looked after any more."""
        self._by_object.pop(key, None)
