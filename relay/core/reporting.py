"""When a node reports, and of what: to its parent, or at the centre to those who follow counts."""

from __future__ import annotations

from collections.abc import Iterable

from relay.core.effects import CountChanged
from relay.core.reports.throttle import ReportThrottle
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
