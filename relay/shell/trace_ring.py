"""What became of each change at one node, and when: noted in a bounded ring, told to who asks.

A trace is named by the slot and the generation of its record (schemas.values.trace_ids), so each
node names it alike, and nothing of it travels. Times are by the clock here. It decides nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple

from relay.core.effects import WriteMail
from relay.core.events import ObjectObserved
from relay.core.instant import Instant
from relay.core.records.accepted import AcceptedRecord, is_delta
from relay.core.view import NodeView
from relay.shell.batch_news import BatchNews, placement_key
from relay.shell.edge_look import Touched
from schemas.records.records import Source
from schemas.reports.reports import Count
from schemas.values.identity import MailKey
from schemas.values.subjects import PROGRESS_KEY
from schemas.values.traceparent import TraceContext

TRACES_MAX = 512
"""Of so many changes a node keeps what it noted: about half a MiB, as each stage is noted once."""
LISTENERS_MAX = 8


class TraceStage(Enum):
    """What happened, in the order in which it does; the value is its word, on the wire, too."""

    JUDGED = "judged"
    """At the centre: the batch of the apply that led to it was judged."""
    SEEN = "seen"
    """At the centre: the placement translator was told what lies in the space."""
    SIGNED = "signed"
    """At the centre: the record was signed."""
    ISSUED = "issued"
    """At the centre: it is in the ledger."""
    ACKNOWLEDGED = "acknowledged"
    """At the centre: the apply was told that all of its batch is written; it may be later."""
    RECEIVED = "received"
    """Below the centre: taken, its signature checked, and kept."""
    COMPLETE = "content complete"
    """Below the centre: all content that this node needs of it is here."""
    FIRST_PASSED_ON = "first passed on"
    """At the centre and at relays: written into the mailbox of the first child."""
    LAST_PASSED_ON = "last passed on"
    """The same, for the last child so far; one that joins later moves it."""
    PLANNED = "planned"
    """At an edge: its syncer was told what the space shall hold."""
    FIRST_APPLIED = "first applied"
    """At an edge: the first object is in its cluster as it was sent."""
    APPLIED = "applied"
    """At an edge: its cluster holds just what the placement prescribes."""
    HEALTHY = "healthy"
    """At an edge: and all of that works."""
    TOLD_DELIVERED = "reported delivered"
    """Below the centre: a report says that all that can be reached below, or it itself, has it."""
    TOLD_WORKING = "reported working"
    """The same, and that it works there."""
    DELIVERED = "counted delivered"
    """At the centre: the count is exact, and says so of all that can be reached."""
    WORKING = "counted working"
    """The same, and that it works there."""


_TOLD = (TraceStage.TOLD_DELIVERED, TraceStage.TOLD_WORKING)
_PROGRESS = placement_key(PROGRESS_KEY)
_MOVES = frozenset({TraceStage.LAST_PASSED_ON})


class TraceSpan(NamedTuple):
    """One stage of a change at this node: from the moment noted before it here until its own."""

    key: MailKey
    generation: int
    stage: TraceStage
    # ms since 1970; both are the same of what came first here.
    start_ms: int
    end_ms: int


class NotedTrace:
    """What is noted of one change."""

    __slots__ = ("caller", "last_child", "source", "stages")

    def __init__(self) -> None:
        # At the centre what was signed, and the span of whoever asked for it if they named one.
        self.source: Source | None = None
        self.caller: TraceContext | None = None
        self.stages: dict[TraceStage, int] = {}
        # The child whose report was the last one before all was delivered, then before all worked.
        self.last_child = ""


TraceSpanListener = Callable[[TraceSpan], None]


class TraceRing:
    """The last changes that a node saw, and the moment (ms since 1970) of each stage."""

    def __init__(self, *, is_edge: bool, began_ms: int) -> None:
        """It knows nothing of before it began."""
        self.began_ms = began_ms
        self.forgotten = 0
        self._is_edge = is_edge
        self._noted: OrderedDict[tuple[MailKey, int], NotedTrace] = OrderedDict()
        # What came in this batch, whose content is still to come, and what is still to be planned;
        # by placement the child that reported last.
        self._new: dict[tuple[MailKey, int], None] = {}
        self._open: dict[tuple[MailKey, int], None] = {}
        self._unplanned: dict[tuple[MailKey, int], None] = {}
        self._heard: OrderedDict[MailKey, str] = OrderedDict()
        # At a relay: what was reported before all mail below was read.
        self._inexact: dict[MailKey, None] = {}
        self._listeners: list[TraceSpanListener] = []

    def listen(self, listener: TraceSpanListener) -> None:
        """Tell this one of each new span as it is noted from now on; it may neither wait nor fail.

        It is not told how LAST_PASSED_ON moves.
        """
        assert len(self._listeners) < LISTENERS_MAX
        self._listeners.append(listener)

    def of(self, key: MailKey, generation: int) -> Mapping[TraceStage, int]:
        """What was noted of a change; empty if nothing was, or if newer ones took its place."""
        noted = self._noted.get((key, generation))
        return MappingProxyType(noted.stages if noted is not None else {})

    def last_child(self, key: MailKey, generation: int) -> str:
        """The child that was heard last before all worked below; "" if that is not known.

        Until it works, before all was delivered.
        """
        noted = self._noted.get((key, generation))
        return noted.last_child if noted is not None else ""

    def caller(self, key: MailKey, generation: int) -> TraceContext | None:
        """The span of whoever asked for a change; None if they named none."""
        noted = self._noted.get((key, generation))
        return noted.caller if noted is not None else None

    def source(self, key: MailKey, generation: int) -> Source | None:
        """The clear key of a change, at the centre."""
        noted = self._noted.get((key, generation))
        return noted.source if noted is not None else None

    def begin(
        self, key: MailKey, generation: int, source: Source, caller: TraceContext | None
    ) -> None:
        """Take who asked for a change, of which all stages are noted next."""
        noted = self._begun(key, generation)
        noted.source, noted.caller = source, caller

    def generations(self, key: MailKey) -> Iterator[int]:
        """Those of a placement of which something is noted, in no order."""
        return (generation for held, generation in self._noted if held == key)

    def spans(self, key: MailKey, generation: int) -> list[TraceSpan]:
        """What is noted of a change, as spans, in the order of time."""
        found = sorted(self.of(key, generation).items(), key=lambda it: it[1])
        starts = [at for _, at in found[:1]] + [at for _, at in found]
        return [
            TraceSpan(key, generation, stage, start, end)
            for (stage, end), start in zip(found, starts, strict=False)
        ]

    def note(self, key: MailKey, generation: int, stage: TraceStage, at_ms: int) -> None:
        """The first moment stays, but of LAST_PASSED_ON the last one."""
        stages = self._begun(key, generation).stages
        if stage in stages:
            if stage in _MOVES:
                stages[stage] = at_ms
            return
        earlier = [at for at in stages.values() if at <= at_ms] if self._listeners else ()
        stages[stage] = at_ms
        if self._listeners:
            span = TraceSpan(key, generation, stage, max(earlier, default=at_ms), at_ms)
            for listener in self._listeners:
                listener(span)

    def _begun(self, key: MailKey, generation: int) -> NotedTrace:
        noted = self._noted.get((key, generation))
        if noted is None:
            noted = self._noted[key, generation] = NotedTrace()
            if len(self._noted) > TRACES_MAX:
                gone, _ = self._noted.popitem(last=False)
                self._open.pop(gone, None)
                self._unplanned.pop(gone, None)
                self.forgotten += 1
        return noted

    def look(
        self, news: BatchNews, view: NodeView, now: Instant, touched: Touched | None = None
    ) -> None:
        """Take what a batch led to, once that is done; at an edge with what that touched."""
        if touched is None and news.is_empty:
            return
        for heard in news.heard:
            self._hear(placement_key(heard.key), heard.child)
        for observed in news.observed:
            self._observed(observed, view, now)
        for key in news.received:
            self._received(view.records.get(key), now)
        # What is passed on has its content here.
        self._look_at_content(view, now, came=news.blob_came)
        for mail in news.written:
            self._written(mail, view, now)
        if news.wants_other:
            self._planned(view, now)
        if touched is not None:
            self._look_at_edge(touched, view, now)
        inexact = list(self._inexact) if _PROGRESS in news.reported else ()
        for key in (*news.reported, *inexact):
            self._told(key, view, now)

    def counted(self, key: MailKey, count: Count, now: Instant) -> None:
        """At the centre: take what was counted of a placement over the tree."""
        stages = (TraceStage.DELIVERED, TraceStage.WORKING)
        self._take_count(key, count, stages, now)

    def _received(self, record: AcceptedRecord | None, now: Instant) -> None:
        if is_delta(record) and record.hops and record.full:
            change = record.key, record.generation
            if change not in self._noted:
                self._new[change] = None
            self.note(*change, TraceStage.RECEIVED, now.wall_ms)

    def _look_at_content(self, view: NodeView, now: Instant, *, came: bool) -> None:
        """What a walk lacks is looked up as it began, and as something came."""
        if not (self._open or self._new):
            return
        looked_at = self._open | self._new if came else self._new
        for change in _in_force(looked_at, view):
            if view.awaits_content(change[0]):
                self._open[change] = None
                continue
            self._open.pop(change, None)
            self.note(*change, TraceStage.COMPLETE, now.wall_ms)
            if self._is_edge:
                self._unplanned[change] = None
        if came:
            self._open = {it: None for it in self._open if it in looked_at}
        self._new.clear()

    def _planned(self, view: NodeView, now: Instant) -> None:
        if not self._unplanned:
            return
        wanted = {key for it in view.wanted.values() for key in it.placements}
        for change in _in_force(self._unplanned, view):
            if change[0] in wanted:
                del self._unplanned[change]
                self.note(*change, TraceStage.PLANNED, now.wall_ms)

    def _observed(self, event: ObjectObserved, view: NodeView, now: Instant) -> None:
        wanted = view.wanted.get(event.key)
        if wanted is None or not event.present or event.address != wanted.address:
            return
        for key in map(MailKey, wanted.placements):
            record = view.records.get(key)
            noted = record and self._noted.get((key, record.generation))
            if record is not None and noted and TraceStage.PLANNED in noted.stages:
                self.note(key, record.generation, TraceStage.FIRST_APPLIED, now.wall_ms)

    def _hear(self, key: MailKey, child: str) -> None:
        self._heard.pop(key, None)
        self._heard[key] = child
        if len(self._heard) > TRACES_MAX:
            self._heard.popitem(last=False)

    def _written(self, mail: WriteMail, view: NodeView, now: Instant) -> None:
        if is_delta(view.records.get(mail.key)):
            for stage in (TraceStage.FIRST_PASSED_ON, TraceStage.LAST_PASSED_ON):
                self.note(mail.key, mail.generation, stage, now.wall_ms)

    def _look_at_edge(self, touched: Touched, view: NodeView, now: Instant) -> None:
        for key in touched.keys:
            record = view.records.get(key)
            noted = record and self._noted.get((key, record.generation))
            if record is None or not noted or TraceStage.HEALTHY in noted.stages:
                continue
            summary = touched.summary(key)
            if summary.states.get("synced"):
                self.note(key, record.generation, TraceStage.APPLIED, now.wall_ms)
                if summary.health.get("healthy"):
                    self.note(key, record.generation, TraceStage.HEALTHY, now.wall_ms)

    def _told(self, key: MailKey, view: NodeView, now: Instant) -> None:
        self._inexact.pop(key, None)
        record = view.records.get(key)
        noted = record and self._noted.get((key, record.generation))
        if record is None or not noted or TraceStage.TOLD_WORKING in noted.stages:
            return
        if not self._is_edge:
            count = view.count(key)
            if not count.exact:
                # It is once the node says how far all below it have read, without another report.
                self._inexact[key] = None
            self._take_count(key, count, _TOLD, now)
            return
        # It is alone, and was looked at a moment ago.
        for stage, told in zip((TraceStage.APPLIED, TraceStage.HEALTHY), _TOLD, strict=True):
            if stage in noted.stages:
                self.note(key, record.generation, told, now.wall_ms)

    def _take_count(
        self, key: MailKey, count: Count, stages: tuple[TraceStage, TraceStage], now: Instant
    ) -> None:
        noted = self._noted.get((key, count.generation))
        if noted is None or not count.exact or stages[1] in noted.stages:
            return
        delivered, working = stages
        summary = count.summary
        reached = summary.awaited - summary.states.get("unreachable", 0)
        if reached <= 0 or summary.states.get("synced", 0) < reached:
            return
        is_working = summary.health.get("healthy", 0) >= reached
        if delivered not in noted.stages or is_working:
            noted.last_child = self._heard.get(key, "")
        self.note(key, count.generation, delivered, now.wall_ms)
        if is_working:
            self.note(key, count.generation, working, now.wall_ms)


def _in_force(
    changes: dict[tuple[MailKey, int], None], view: NodeView
) -> list[tuple[MailKey, int]]:
    """Those that the node still holds; the others are forgotten."""
    found = []
    for change in list(changes):
        record = view.records.get(change[0])
        if record is not None and record.generation == change[1]:
            found.append(change)
        else:
            del changes[change]
    return found
