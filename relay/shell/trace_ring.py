"""What became of each change at one node, and when: noted in a bounded ring, told to who asks.

A trace is named by the slot and the generation of its record, so each node names it alike, and
nothing of it travels. Times are by the clock here. It decides nothing.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from types import MappingProxyType

from relay.core.effects import Effect, SendReport, StoreOwn, WriteMail
from relay.core.events import Event, ObjectObserved, RecordIssued
from relay.core.instant import Instant
from relay.core.records.accepted import is_delta
from relay.core.view import NodeView
from schemas.values.identity import MailKey

TRACES_MAX = 512
"""Of so many changes a node keeps what it noted: about half a MiB, as each stage is noted once."""
_TRACE_BYTES = 16
_KEY_CHARACTERS = 32


class TraceStage(Enum):
    """What happened; the value is its word for people and on the wire."""

    ISSUED = "issued"
    """At the centre: signed, and in the ledger."""
    RECEIVED = "received"
    """Below the centre: taken, its signature checked, and kept."""
    FIRST_PASSED_ON = "first passed on"
    """At the centre and at relays: with its content here, written for the first child."""
    LAST_PASSED_ON = "last passed on"
    """The same, for the last child so far; one that joins later moves it."""
    APPLIED = "applied"
    """At an edge: its cluster holds just what the placement prescribes."""
    HEALTHY = "healthy"
    """At an edge: and all of that works."""


def trace_id(slot: str, generation: int) -> str:
    """The W3C trace id of a change, the same at each node: 32 hexadecimal digits, never all 0."""
    said = f"leafcast trace\0{slot}\0{generation}".encode()
    return hashlib.sha256(said).digest()[:_TRACE_BYTES].hex()


class TraceRing:
    """The last changes that a node saw, and the moment (ms since 1970) of each stage."""

    def __init__(self, *, is_edge: bool) -> None:
        self._is_edge = is_edge
        self._noted: OrderedDict[tuple[MailKey, int], dict[TraceStage, int]] = OrderedDict()

    def of(self, key: MailKey, generation: int) -> Mapping[TraceStage, int]:
        """What was noted of a change; empty if nothing was, or if newer ones took its place."""
        return MappingProxyType(self._noted.get((key, generation), {}))

    def generations(self, key: MailKey) -> Iterator[int]:
        """Those of a placement of which something is noted, in no order."""
        return (generation for held, generation in self._noted if held == key)

    def note(self, key: MailKey, generation: int, stage: TraceStage, now_ms: int) -> None:
        """The first moment stays, but of what is passed on the last one."""
        stages = self._noted.get((key, generation))
        if stages is None:
            stages = self._noted[key, generation] = {}
            if len(self._noted) > TRACES_MAX:
                self._noted.popitem(last=False)
        if stage is TraceStage.LAST_PASSED_ON:
            stages[stage] = now_ms
        else:
            stages.setdefault(stage, now_ms)

    def look(
        self, events: Iterable[Event], effects: Sequence[Effect], view: NodeView, now: Instant
    ) -> None:
        """Take what a batch of events led to, once that is done."""
        touched: set[MailKey] = set()
        for event in events:
            if isinstance(event, RecordIssued):
                self._held(event.signed.slot, TraceStage.ISSUED, view, now)
            elif isinstance(event, ObjectObserved) and (wanted := view.wanted.get(event.key)):
                touched.update(map(MailKey, wanted.placements))
        for effect in effects:
            if isinstance(effect, StoreOwn) and effect.hops:
                touched.add(MailKey(effect.key))
                self._held(MailKey(effect.key), TraceStage.RECEIVED, view, now)
            elif isinstance(effect, WriteMail) and effect.has_body and effect.hops:
                self._written(effect, view, now)
            elif isinstance(effect, SendReport):
                touched.add(MailKey(effect.key[:_KEY_CHARACTERS]))
        if self._is_edge:
            for key in touched:
                self._look_at_edge(key, view, now)

    def _held(self, key: MailKey, stage: TraceStage, view: NodeView, now: Instant) -> None:
        record = view.records.get(key)
        if is_delta(record) and record.hops and record.full:
            self.note(key, record.generation, stage, now.wall_ms)

    def _written(self, mail: WriteMail, view: NodeView, now: Instant) -> None:
        if is_delta(view.records.get(mail.key)):
            for stage in (TraceStage.FIRST_PASSED_ON, TraceStage.LAST_PASSED_ON):
                self.note(mail.key, mail.generation, stage, now.wall_ms)

    def _look_at_edge(self, key: MailKey, view: NodeView, now: Instant) -> None:
        record = view.records.get(key)
        if record is None or (key, record.generation) not in self._noted:
            return
        if TraceStage.HEALTHY in self._noted[key, record.generation]:
            return
        summary = view.summary(key)
        if summary.states.get("synced"):
            self.note(key, record.generation, TraceStage.APPLIED, now.wall_ms)
            if summary.health.get("healthy"):
                self.note(key, record.generation, TraceStage.HEALTHY, now.wall_ms)
