"""When changes are reported: they are gathered in windows, which grow under load."""

from __future__ import annotations

from schemas.values.identity import MailKey

GATHER_SECONDS = 0.1
GATHER_MAX_SECONDS = 5.0
BUSY_REPORTS = 500
OF_ONE_MAX = BUSY_REPORTS // 2
"""So many slots of one child count in a window, if there are others."""
BUSY_MAIL = 100


class ReportThrottle:
    """The end of the window in which a node gathers changes; times are its monotonic seconds.

    Under load the windows grow. A destination that is at work is not reported before it is done, or
    has taken as long as the longest window: one report then says all. However much one child of
    several reports, it alone makes no window longer.
    """

    def __init__(self) -> None:
        self.ends: float | None = None
        self._gather = GATHER_SECONDS
        self._began = 0.0
        # The slots that children reported in since the last window ended.
        self._heard: dict[str, set[str]] = {}
        self._hurried = False
        self._hurried_last = float("-inf")
        self._ended_last = float("-inf")
        self._at_work: dict[MailKey, float] = {}
        self._waiting: dict[MailKey, None] = {}
        # Since when some report or other waits, and no progress was said.
        self._waits_since: float | None = None

    def heard(self, child: str, slot: str) -> None:
        """A child has reported in a slot."""
        slots = self._heard.setdefault(child, set())
        if len(slots) < BUSY_REPORTS:
            slots.add(slot)

    def gather(self, now: float) -> None:
        """Something changed: a window begins, unless one has."""
        self._end(now, now + self._gather)

    def tell(self, now: float) -> None:
        """Something changed that goes no further up: a window began when the last one ended."""
        self._end(now, max(now, self._ended_last + self._gather))

    def hurry(self, now: float) -> None:
        """What was waited for is there: the window ends, at most so often as the shortest do."""
        self._hurried = True
        self._end(now, max(now, self._hurried_last + GATHER_SECONDS))

    @property
    def is_waiting(self) -> bool:
        """Whether a report waits for a destination that is at work."""
        return bool(self._waiting)

    def is_over(self, now: float) -> bool:
        return self.ends is not None and self.ends <= now

    def put_off(self, now: float, mail: int) -> bool:
        """Gather on while much mail is on its way, no longer than the longest window lasts.

        Whether it does: mail goes before reports, and one report then says all that it changed.
        """
        if mail < BUSY_MAIL or now >= self._began + GATHER_MAX_SECONDS:
            return False
        self.ends = now + GATHER_SECONDS
        return True

    def close(self, now: float, *, only_child: bool = False) -> dict[MailKey, None]:
        """End the window; the next is longer after many reports, unless of an `only_child`."""
        most = BUSY_REPORTS if only_child else OF_ONE_MAX
        busy = sum(min(len(slots), most) for slots in self._heard.values()) >= BUSY_REPORTS
        self._gather = min(self._gather * 2, GATHER_MAX_SECONDS) if busy else GATHER_SECONDS
        self._ended_last = now
        if self._hurried:
            self._hurried_last = now
        self._heard, self._hurried, self.ends = {}, False, None
        waiting, self._waiting = self._waiting, {}
        if not waiting:
            self._waits_since = None
        return waiting

    def waits(self, key: MailKey, now: float, *, at_work: bool) -> bool:
        """Whether a report waits for a destination that is at work on the placement."""
        if not at_work:
            self._at_work.pop(key, None)
            return False
        if self._waits_since is None:
            self._waits_since = now
        # What others wait for counts, too: else one after the other would put off all progress.
        until = min(self._at_work.setdefault(key, now), self._waits_since) + GATHER_MAX_SECONDS
        if now >= until:
            return False
        self._waiting[key] = None
        self._end(now, until)
        return True

    def assert_invariants(self) -> None:
        """Assert that whatever waits is reported in the end."""
        assert self.ends is not None or not (self._waiting or self._hurried)

    def _end(self, now: float, at: float) -> None:
        if self.ends is None:
            self._began = now
        self.ends = at if self.ends is None else min(self.ends, at)
