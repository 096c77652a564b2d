"""What the centre notes of a change before it has a generation, and after the tree was counted.

An apply names objects; which records come of them is known once the translator has signed these.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import NamedTuple

from relay.core.events import RecordIssued
from relay.ports import Clock
from relay.shell.propagation_times import PropagationTimes
from relay.shell.trace_ring import TRACES_MAX, TraceRing, TraceStage
from schemas.objects.objects import ObjectKey
from schemas.reports.reports import Count
from schemas.values.identity import MailKey
from schemas.values.traceparent import TraceContext

OBJECTS_MAX = 4096
"""Of so many objects that were applied last it is known by which batch."""


class AppliedBatch:
    """What an apply writes at once: one judgement, and one answer to who asked for it."""

    __slots__ = ("acknowledged_ms", "caller", "changes", "judged_ms")

    def __init__(self, judged_ms: int, caller: TraceContext | None = None) -> None:
        """With `caller` whoever asked for it did so in that span."""
        self.judged_ms, self.caller = judged_ms, caller
        self.acknowledged_ms: int | None = None
        # Those that came of it and still wait to hear that it was acknowledged.
        self.changes: dict[tuple[MailKey, int], None] = {}


class _Seen(NamedTuple):
    at_ms: int
    batch: AppliedBatch | None


class CentreWatch:
    """Feeds the centre's times and traces; decides nothing."""

    def __init__(self, times: PropagationTimes, traces: TraceRing, clock: Clock) -> None:
        self.traces = traces
        self._times, self._clock = times, clock
        self._applied: OrderedDict[ObjectKey, AppliedBatch] = OrderedDict()
        # By placement, when the first change was seen that is not signed yet, and of which batch:
        # of those that wait for the translator, and of those that it works on.
        self._seen: OrderedDict[MailKey, _Seen] = OrderedDict()
        self._begun: dict[MailKey, _Seen] = {}

    def writing(
        self, keys: Iterable[ObjectKey], judged_ms: int, caller: TraceContext | None = None
    ) -> AppliedBatch:
        """The batch of an apply that is written from now on."""
        batch = AppliedBatch(judged_ms, caller)
        for key in keys:
            self._applied.pop(key, None)
            self._applied[key] = batch
            if len(self._applied) > OBJECTS_MAX:
                self._applied.popitem(last=False)
        return batch

    def acknowledged(self, batch: AppliedBatch) -> None:
        """Who asked for it is told now that all of it is written."""
        now_ms = batch.acknowledged_ms = self._clock.now().wall_ms
        for key, generation in batch.changes:
            self.traces.note(key, generation, TraceStage.ACKNOWLEDGED, now_ms)
        batch.changes.clear()

    def seen(self, placements: Iterable[MailKey], changed: ObjectKey) -> None:
        """The translator was told of an object's change, which is one of these placements."""
        # What changes it later is not of that apply.
        now_ms, batch = self._clock.now().wall_ms, self._applied.pop(changed, None)
        for key in placements:
            if key not in self._seen:
                self._seen[key] = _Seen(now_ms, batch)
                if len(self._seen) > TRACES_MAX:
                    self._seen.popitem(last=False)

    def begun(self, placements: Iterable[MailKey]) -> None:
        """The translator begins with what it was told of these."""
        for key in placements:
            seen = self._seen.pop(key, None)
            if seen is not None:
                self._begun.setdefault(key, seen)

    def settled(self, placements: Iterable[MailKey]) -> None:
        """It is done with these: what was not signed led to nothing."""
        for key in placements:
            self._begun.pop(key, None)

    def issued(self, event: RecordIssued) -> None:
        """A record was signed, and is in the ledger now; the relay is told next."""
        signed, now_ms = event.signed, self._clock.now().wall_ms
        if signed.envelope.kind != "delta" or signed.body is None or not event.hops:
            return
        key, generation = signed.slot, signed.record.generation
        seen = self._begun.pop(key, None)
        batch = seen.batch if seen is not None else None
        caller = batch.caller if batch is not None else None
        self.traces.begin(key, generation, signed.record.source, caller)
        # In the order in which it was, as each span begins where another ended.
        if batch is not None:
            self.traces.note(key, generation, TraceStage.JUDGED, batch.judged_ms)
        if batch is not None and batch.acknowledged_ms is not None:
            self.traces.note(key, generation, TraceStage.ACKNOWLEDGED, batch.acknowledged_ms)
        elif batch is not None and len(batch.changes) < TRACES_MAX:
            batch.changes[key, generation] = None
        if seen is not None:
            self.traces.note(key, generation, TraceStage.SEEN, seen.at_ms)
        self.traces.note(key, generation, TraceStage.SIGNED, event.hops[0])
        self.traces.note(key, generation, TraceStage.ISSUED, now_ms)

    def counted(self, key: MailKey, count: Count) -> None:
        """A count was taken of a placement over the tree."""
        now = self._clock.now()
        self._times.counted(key, count, now)
        self.traces.counted(key, count, now)
