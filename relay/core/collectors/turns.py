"""How much a node evaluates at a time: what is left waits, and all else goes first.

It is counted in estimated steps, so that the same events have the same effects on any machine.
"""

from __future__ import annotations

import math

TURN_STEPS = 25_000
"""About 10 ms: no evaluation begins after so many, and none takes more than about 40 ms."""
STEPS_PER_SECOND = 1_250_000
"""About half of a processor."""


class Unfinished(Exception):
    """The turn is over before all is evaluated."""


class Turns:
    """Steps that are left; without a turn begun there is no end of them."""

    def __init__(self) -> None:
        self._left = math.inf
        self._began = 0.0

    def begin(self, now: float) -> None:
        """A turn at this monotonic second: so many steps as came since the last one."""
        came = self._left + max(now - self._began, 0.0) * STEPS_PER_SECOND
        self._left, self._began = min(TURN_STEPS, came), now

    def next(self) -> float:
        """The monotonic second at which it is worth to go on."""
        return self._began + max(TURN_STEPS / 2 - self._left, 0.0) / STEPS_PER_SECOND

    def check(self) -> None:
        """Raises Unfinished if nothing may be evaluated any more."""
        if self._left <= 0:
            raise Unfinished

    def spend(self, steps: int) -> None:
        """So many steps were taken."""
        self._left -= steps
