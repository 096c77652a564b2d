"""How long changes take to get here, and from here to whom they are meant for.

Times are from when the centre signed a change, by its clock, to a moment here, by the clock here.
What was signed before the node was last in session waited for the node, and is not measured.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple

from relay.core.effects import WriteMail
from relay.core.instant import Instant
from relay.core.records.accepted import AcceptedRecord, is_delta
from relay.core.view import NodeView
from relay.shell.batch_news import BatchNews
from relay.shell.distribution import Distribution
from relay.shell.edge_look import Touched
from schemas.reports.reports import Count
from schemas.values.identity import MailKey

BOUNDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900, 3600, 21600, 86400)
"""In seconds."""


class PropagationStage(Enum):
    """Up to what it is measured; the value is its word for people."""

    RECEIVED = "received"
    """Below the centre: taken, its signature checked, and kept."""
    PASSED_ON = "passed on"
    """At the centre and at relays: written for the first child, its content here."""
    APPLIED = "applied"
    """At an edge: its cluster holds just what the placement prescribes."""
    HEALTHY = "healthy"
    """At an edge: and all of that works."""
    DELIVERED = "delivered"
    """At the centre: known to be so at all destinations that can be reached."""
    WORKING = "working"
    """At the centre: and to work at all of them."""


class _Change(NamedTuple):
    generation: int
    signed_ms: int
    trace: str


class PropagationTimes:
    """Counts them at one node from what it is told and from what it does; decides nothing."""

    def __init__(self, *, is_centre: bool, is_edge: bool) -> None:
        self.by_stage = {stage: Distribution(BOUNDS) for stage in _stages(is_centre, is_edge)}
        self._is_centre, self._is_edge = is_centre, is_edge
        # Since when the node has been in session.
        self._since_ms: int | None = None
        self._passed_on: dict[MailKey, int] = {}
        # What is to come to be, by the stages that wait for it.
        self._open: dict[PropagationStage, dict[MailKey, _Change]] = {
            stage: {} for stage in self.by_stage if stage in _AWAITED
        }

    def look(
        self, news: BatchNews, view: NodeView, now: Instant, touched: Touched | None = None
    ) -> None:
        """Take what a batch led to, once that is done; at an edge with what that touched."""
        self._follow_session(view, now)
        if touched is None and news.is_empty:
            return
        for event in news.issued:
            self._begin(view.records.get(event.signed.slot))
        for key in news.received:
            self._received(view.records.get(key), now)
        for mail in news.written:
            self._written(mail, view, now)
        if touched is not None:
            self._look_at_edge(touched, view, now)
        self._forget_gone(view)

    def counted(self, key: MailKey, count: Count, now: Instant) -> None:
        """At the centre: take what was counted of a placement over the tree."""
        if not count.exact:
            return
        summary = count.summary
        reached = summary.awaited - summary.states.get("unreachable", 0)
        for stage, done in (
            (PropagationStage.DELIVERED, summary.states.get("synced", 0)),
            (PropagationStage.WORKING, summary.health.get("healthy", 0)),
        ):
            change = self._open[stage].get(key)
            if change is not None and change.generation == count.generation and done >= reached:
                del self._open[stage][key]
                if reached > 0:
                    self._observe(stage, change, now)

    def _follow_session(self, view: NodeView, now: Instant) -> None:
        if not view.ready:
            self._since_ms = None
        elif self._since_ms is None:
            self._since_ms = now.wall_ms

    def _begin(self, record: AcceptedRecord | None) -> None:
        """A change of a placement is known here: wait for what is to come of it."""
        if not is_delta(record) or not record.hops:
            return
        change = _Change(record.generation, record.hops[0], record.trace)
        for waiting in self._open.values():
            waiting.pop(record.key, None)
            if self._is_measured(change.signed_ms):
                waiting[record.key] = change

    def _received(self, record: AcceptedRecord | None, now: Instant) -> None:
        if not is_delta(record) or not record.full or not record.hops:
            return
        self._begin(record)
        if self._is_measured(record.hops[0]):
            change = _Change(record.generation, record.hops[0], record.trace)
            self._observe(PropagationStage.RECEIVED, change, now)

    def _written(self, mail: WriteMail, view: NodeView, now: Instant) -> None:
        """Only the first child counts: one that comes later gets what is old by then."""
        is_news = self._passed_on.get(mail.key) != mail.generation
        if is_news and is_delta(view.records.get(mail.key)):
            self._passed_on[mail.key] = mail.generation
            if self._is_measured(mail.hops[0]):
                change = _Change(mail.generation, mail.hops[0], mail.trace)
                self._observe(PropagationStage.PASSED_ON, change, now)

    def _forget_gone(self, view: NodeView) -> None:
        """Bound what is noted by what the node holds."""
        kept: list[dict[MailKey, Any]] = [self._passed_on, *self._open.values()]
        for noted in kept:
            if len(noted) > 2 * len(view.records) + 1:
                for key in noted.keys() - view.records.keys():
                    del noted[key]

    def _look_at_edge(self, touched: Touched, view: NodeView, now: Instant) -> None:
        for key in touched.keys:
            waiting = [(stage, it) for stage, its in self._open.items() if (it := its.get(key))]
            if not waiting:
                continue
            summary = touched.summary(key) if key in view.records else None
            for stage, change in waiting:
                is_over = summary is None or not summary.destinations
                is_so = summary is not None and bool(
                    summary.states.get("synced")
                    and (stage is PropagationStage.APPLIED or summary.health.get("healthy"))
                )
                if is_over or is_so:
                    del self._open[stage][key]
                if is_so:
                    self._observe(stage, change, now)

    def _is_measured(self, signed_ms: int) -> bool:
        return self._since_ms is not None and signed_ms >= self._since_ms

    def _observe(self, stage: PropagationStage, change: _Change, now: Instant) -> None:
        # Clocks that differ make nothing arrive before it was signed.
        seconds = max(now.wall_ms - change.signed_ms, 0) / 1000
        self.by_stage[stage].observe(seconds, change.trace, now.wall_ms)


_AWAITED = frozenset(
    {
        PropagationStage.APPLIED,
        PropagationStage.HEALTHY,
        PropagationStage.DELIVERED,
        PropagationStage.WORKING,
    }
)


def _stages(is_centre: bool, is_edge: bool) -> tuple[PropagationStage, ...]:  # noqa: FBT001
    if is_centre:
        return (PropagationStage.PASSED_ON, PropagationStage.DELIVERED, PropagationStage.WORKING)
    if is_edge:
        return (PropagationStage.RECEIVED, PropagationStage.APPLIED, PropagationStage.HEALTHY)
    return (PropagationStage.RECEIVED, PropagationStage.PASSED_ON)
