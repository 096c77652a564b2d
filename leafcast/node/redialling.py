"""When a server is to dial its parent at another address: once nothing has answered for a while.

Pure. A link whose other end lost its power seems open for minutes. Where there is no link the
server dials by itself; and a parent that refuses does so at each of its addresses.
"""

from __future__ import annotations

from relay.ports import Dice

REDIAL_SECONDS, REDIAL_SECONDS_MAX = 15.0, 240.0
"""So long a parent is silent that only changes its active member; longer after each try in vain."""
SPREAD = 0.5
"""Of a pause: children that lost one parent do not come back as one."""


class Redialling:
    """What is known of one link; it is looked at every second or so."""

    def __init__(self, dice: Dice) -> None:
        self._dice = dice
        self._pause = REDIAL_SECONDS
        self._due: float | None = None
        self._was_silent = False

    def is_due(self, now: float, *, is_linked: bool, is_silent: bool) -> bool:
        """Whether the link is to be cut now.

        `is_silent` if the parent was asked last over a link that seems open, and did not answer.
        """
        if is_linked:
            self._pause, self._due, self._was_silent = REDIAL_SECONDS, None, False
            return False
        if self._due is None:
            self._due = self._after(now)
        self._was_silent = self._was_silent or is_silent
        if now < self._due:
            return False
        is_due, self._was_silent = self._was_silent, False
        if is_due:
            self._pause = min(2 * self._pause, REDIAL_SECONDS_MAX)
        self._due = self._after(now)
        return is_due

    def _after(self, now: float) -> float:
        return now + self._pause * (1 + SPREAD * self._dice.fraction())
