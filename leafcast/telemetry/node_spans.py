"""The spans of one run of a node, on their way to the collector."""

from __future__ import annotations

from importlib.metadata import version

from leafcast.telemetry.change_spans import (
    ChangeSpan,
    TracedChange,
    change_spans,
    trace_number,
)
from leafcast.telemetry.otlp import OtlpSpans, span_source
from relay.ports import Clock
from relay.shell.driver import Driver
from relay.shell.trace_ring import TraceSpan, TraceStage
from schemas.records.placements import placement_of, title
from schemas.values.identity import MailKey

SERVICE = "leafcast"
QUIET_SECONDS = 5.0
"""After so long without another child a change counts as passed on; who joins later is no news."""


class NodeSpans:
    """Sends what a node's ring notes, a bounded number for each change whatever the tree's size."""

    def __init__(self, driver: Driver, role: str, clock: Clock, spans: OtlpSpans) -> None:
        self._driver, self._clock, self._spans = driver, clock, spans
        self._path = driver.config.path
        self._source = span_source(
            {
                "service.name": SERVICE,
                "service.version": version(SERVICE),
                "leafcast.path": str(self._path),
                "leafcast.role": role,
            }
        )
        # What is being passed on, as the ring moves that without a word.
        self._passing: dict[tuple[MailKey, int], None] = {}
        driver.traces.listen(self._hear)

    def _hear(self, span: TraceSpan) -> None:
        if span.stage is TraceStage.LAST_PASSED_ON:
            self._passing[span.key, span.generation] = None
        else:
            self._send(span)

    def _send(self, span: TraceSpan) -> None:
        if self._spans.takes(trace_number(span.key, span.generation)):
            for each in self._told(span):
                self._spans.send(each, self._source)

    def _told(self, span: TraceSpan) -> list[ChangeSpan]:
        ring, change = self._driver.traces, (span.key, span.generation)
        record = self._driver.node.records.get(span.key)
        # The centre's relay is told of a record once that is in the ledger.
        source = ring.source(*change) or (record.record.source if record is not None else None)
        placement = source and placement_of(source)
        began_ms = min(ring.of(*change).values(), default=span.start_ms)
        known = TracedChange(title(placement) if placement else "", began_ms, ring.caller(*change))
        return list(change_spans(self._path, span, known))

    async def run(self) -> None:
        """Send how long each change was passed on, once that is over; until cancelled."""
        while True:
            await self._clock.sleep(QUIET_SECONDS)
            self.settle(self._clock.now().wall_ms)

    def settle(self, now_ms: int) -> None:
        """Send what has not been passed on to another child for a while."""
        for change in list(self._passing):
            stages = self._driver.traces.of(*change)
            first = stages.get(TraceStage.FIRST_PASSED_ON)
            last = stages.get(TraceStage.LAST_PASSED_ON)
            if first is None or last is None:
                # Newer changes took its place in the ring.
                del self._passing[change]
            elif now_ms - last >= QUIET_SECONDS * 1000:
                del self._passing[change]
                self._send(TraceSpan(*change, TraceStage.LAST_PASSED_ON, first, last))
