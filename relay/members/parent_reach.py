"""How a member reaches its node's parent by its own server, and whether another should be active.

Each member asks the parent by its own server, active or not. Where the active one alone is cut off,
it steps aside for one that is not; for a while it takes no lease then. Where none took the lease
meanwhile, it waits longer until it steps aside again. Pure: times are seconds of a
monotonic clock.
"""

from __future__ import annotations

from collections.abc import Mapping

CUT_OFF_SECONDS = 30.0
"""So long the parent answers nothing until the active member steps aside: it may just restart."""
REACHES_SECONDS = 10.0
"""So long another member's server must have had answers: its link may come and go."""
ASIDE_SECONDS = 20.0
"""So long who stepped aside leaves the lease to others, which look at it twice a second."""
TAKEN_SECONDS = 20.0
"""Active again within so long after it was aside: no other one took the lease."""
IN_VAIN_MAX = 6
"""Each time in vain doubles what it waits for; so many times at most."""


class ParentReach:
    """What one member knows; it begins with no answer."""

    def __init__(self, now: float) -> None:
        self._is_reached, self._since = False, now
        self._aside_until = float("-inf")
        self._active_from, self._in_vain = now, 0

    def asked(self, now: float, *, is_answered: bool) -> None:
        """The parent was asked, and answered by then or did not."""
        if is_answered is not self._is_reached:
            self._is_reached, self._since = is_answered, now

    def active(self, now: float) -> None:
        """This member is the active one from now on."""
        self._active_from = now
        if self._aside_until == float("-inf"):
            return
        is_in_vain = now <= self._aside_until + TAKEN_SECONDS
        self._in_vain = min(self._in_vain + 1, IN_VAIN_MAX) if is_in_vain else 0

    def seconds(self, now: float) -> float:
        """For how long it has answered each time; 0 if it did not last."""
        return now - self._since if self._is_reached else 0.0

    def better_one(self, now: float, others: Mapping[str, float]) -> str:
        """The member that should be active in place of this one, "" if none should.

        `others` says of the other members that may be active for how long each has had answers.
        """
        patience = CUT_OFF_SECONDS * 2**self._in_vain
        if self._is_reached or now - max(self._since, self._active_from) < patience:
            return ""
        return next((it for it in sorted(others) if others[it] >= REACHES_SECONDS), "")

    def step_aside(self, now: float) -> None:
        """This member was active, and lets another one be so."""
        self._aside_until = now + ASIDE_SECONDS

    def is_aside(self, now: float) -> bool:
        """Whether it leaves the lease to others."""
        return not self._is_reached and now < self._aside_until
