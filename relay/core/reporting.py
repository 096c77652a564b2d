"""When a node reports, and of what: to its parent, or at the centre to those who follow counts."""

from __future__ import annotations

from collections.abc import Iterable

from relay.core.effects import CountChanged
from relay.core.rooms import Rooms, RoomsPart
from relay.core.upstream import Upstream
from relay.core.view import NodeView
from schemas.values.identity import MailKey


class Reporting(RoomsPart):
    """Gathers what changed in windows, and says it at their ends."""

    def __init__(self, rooms: Rooms, view: NodeView, upstream: Upstream | None) -> None:
        """Without a parent, at the centre, it tells of counts."""
        super().__init__(rooms)
        self._view = view
        self._upstream = upstream
        self._throttle = ReportThrottle()
        # Placements of objects of which the syncer has just said something.
        self._observed: dict[MailKey, None] = {}
        # At the centre, placements whose count was not exact when it was said last.
        self._inexact: dict[MailKey, None] = {}

    def heard(self, child: str, slot: str) -> None:
        """A child has reported in a slot."""
        self._throttle.heard(child, slot)

    def observed(self, placements: Iterable[MailKey]) -> None:
        """The syncer said something of objects of these."""
        for key in placements:
            self._reports.touch(key)
            self._observed[key] = None

    def progressed(self) -> None:
        """A child's reports reach further: what waited for it may be exact, or be reported."""
        for key in self._inexact:
            self._reports.touch(key)
        if self._upstream is not None:
            self._upstream.child_progressed()

    def deadline(self) -> float | None:
        """The monotonic second at which the window ends; None if nothing waits."""
        return self._throttle.ends

    def say_in_time(self) -> None:
        """Open or close the window, and report if it is over."""
        now, upstream, destination = self._clock().seconds, self._upstream, self._destination
        observed, self._observed = self._observed, {}
        if destination is not None and not all(map(destination.is_pending, observed)):
            self._throttle.hurry(now)
        in_sync = destination is None and self._children.is_in_sync
        if upstream is None:
            if self._reports.is_dirty:
                # What the centre only tells its controllers takes no message.
                (self._throttle.hurry if in_sync else self._throttle.tell)(now)
        elif upstream.may_report and upstream.caught_up and in_sync:
            self._throttle.hurry(now)
        elif self._reports.is_dirty or upstream.may_report:
            self._throttle.gather(now)
        if self._throttle.is_over(now) and not self._throttle.put_off(now, self._load()):
            self._flush(now)

    def assert_invariants(self) -> None:
        """Assert what must hold between events."""
        self._sender.assert_invariants()

    def _load(self) -> int:
        """How much mail is on its way, to here and to children."""
        unread = self._upstream.unread if self._upstream is not None else 0
        return self._children.load() + unread

    def _flush(self, now: float) -> None:
        """Say what changed since the last window, and then how far that reaches."""
        upstream, below = self._upstream, self._children.count
        only_child = below == 1 and self._destination is None
        dirty = self._throttle.close(now, only_child=only_child) | self._reports.take_dirty()
        if upstream is None:
            self._tell_counts(dirty)
        elif upstream.welcomed:
            for key in self._sender.in_turn(dirty, below=below):
                self._report(key, now, upstream)
            if not self._throttle.is_waiting:
                upstream.say_progress()

    def _tell_counts(self, keys: Iterable[MailKey]) -> None:
        for key in keys:
            self._out.append(CountChanged(key))
            self._inexact.pop(key, None)
            if self._book.get(key) is not None and not self._view.count(key).exact:
                self._inexact[key] = None

    def _report(self, key: MailKey, now: float, upstream: Upstream) -> None:
        record, gone, summary = self._book.get(key), self._is_gone(key), self._view.summary(key)
        at_work = self._children.count == 0 and "pending" in summary.states
        if self._throttle.waits(key, now, at_work=at_work):
            return
        self._sender.report(
            key,
            summary,
            self._view.results(key).values(),
            self._collected.collected(key),
            generation=self._judge.reported_generation(key),
            gone=gone,
            unsaid=self._reports.unsaid(key),
        )
        if gone and record is not None:
            upstream.forget(key)

    def _is_gone(self, key: MailKey) -> bool:
        """Whether nothing of a placement is left at or below this node, or should be."""
        record, destination = self._book.get(key), self._destination
        if record is not None and (record.full or self._view.is_meant(key)):
            return False
        if self._children.with_head(key):
            return False
        return destination is None or destination.is_over(key, in_force=record is not None)


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
