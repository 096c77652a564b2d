"""Whether a joined edge was taken out of its tree for good: then its run has nothing left to do."""

from __future__ import annotations

from dataclasses import dataclass

REFUSED_SECONDS = 10.0
"""How long its parent has to refuse it: a parent that starts anew is told of its children soon."""


@dataclass(slots=True)
class Withdrawal:
    """Signed words took its destination away, nothing is left there, and its parent refuses it.

    That a parent refuses it alone proves nothing: it may have lost its disk.
    """

    was_destination: bool = False
    refused_at: float | None = None

    def look(self, *, is_destination: bool, holds: bool, is_refused: bool, now: float) -> bool:
        """Take in how it stands; whether it was taken out."""
        self.was_destination = self.was_destination or is_destination
        if not is_refused or is_destination or holds or not self.was_destination:
            self.refused_at = None
            return False
        if self.refused_at is None:
            self.refused_at = now
        return now - self.refused_at >= REFUSED_SECONDS
