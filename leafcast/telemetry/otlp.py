"""Sends spans by OTLP over HTTP, from a thread of its own: who hands one over waits for nothing.

Its queue is bounded, as OTEL_BSP_MAX_QUEUE_SIZE says: while a collector is away the oldest spans
are dropped. It alone imports opentelemetry.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import Decision, TraceIdRatioBased
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, TraceFlags

from leafcast.telemetry.change_spans import ChangeSpan
from leafcast.telemetry.settings import TelemetrySettings

SCOPE = "leafcast"
_NS = 1_000_000
_WORDS_MAX = 300
_OF_SYSTEM = re.compile(r"\[Errno -?\d+\] ([\w ]+)")
"""What the machine says of a connection, such as `Connection refused`, amid much else."""

SpanSource: TypeAlias = Resource
"""Which node sends a span, as a collector is told."""
HearCollector = Callable[[str], None]
"""Hears that the collector is away, and why; "" that it is back. It is called in another thread."""


class _FirstWords(logging.Handler):
    """The first that the library said of why something could not be sent: then it only tries."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        said = record.getMessage()
        system = _OF_SYSTEM.search(said)
        self.text = self.text or (system[1] if system else said[:_WORDS_MAX])


class _WatchedExporter(SpanExporter):
    """Tells once that the collector is away, and once that it is back."""

    def __init__(self, exporter: OTLPSpanExporter, hear: HearCollector) -> None:
        self.is_away = False
        self._exporter, self._hear = exporter, hear
        self._words = _FirstWords()
        # Each try, and each span that is dropped, would be a line of the log.
        library = logging.getLogger("opentelemetry")
        library.propagate, library.handlers = False, [logging.NullHandler()]
        logging.getLogger("opentelemetry.exporter").handlers = [self._words]

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send them, or give them up."""
        self._words.text = ""
        result = self._exporter.export(spans)
        is_away = result is not SpanExportResult.SUCCESS
        if is_away is not self.is_away:
            self.is_away = is_away
            self._hear((self._words.text or "it said nothing") if is_away else "")
        return result

    def shutdown(self) -> None:
        """Give up what is under way."""
        self._exporter.shutdown()  # type: ignore[no-untyped-call]


class OtlpSpans:
    """The way to the collector, for all nodes of this process."""

    def __init__(self, settings: TelemetrySettings, hear: HearCollector) -> None:
        """Raises ValueError of settings that the library does not take."""
        self._sampler = TraceIdRatioBased(settings.ratio)
        self._exporter = _WatchedExporter(OTLPSpanExporter(endpoint=settings.url), hear)
        self._processor = BatchSpanProcessor(self._exporter)

    def takes(self, trace_id: int) -> bool:
        """Whether spans of this trace are sent: each node says the same, if their ratios are."""
        decision = self._sampler.should_sample(None, trace_id, SCOPE).decision
        return decision is Decision.RECORD_AND_SAMPLE

    def send(self, span: ChangeSpan, source: SpanSource) -> None:
        """Hand it over; at once, whatever the collector does."""
        self._processor.on_end(readable(span, source))

    def close(self) -> None:
        """Send what waits, unless the collector is away."""
        if self._exporter.is_away:
            self._exporter.shutdown()
        self._processor.shutdown()  # type: ignore[no-untyped-call]


def span_source(attributes: Mapping[str, str]) -> SpanSource:
    """A node by these attributes; what OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME say counts.

    So the user's own words win.
    """
    return Resource(dict(attributes)).merge(OTELResourceDetector().detect())


def readable(span: ChangeSpan, source: SpanSource) -> ReadableSpan:
    """The span as the library has it."""
    caller, parent = span.caller, span.parent_id
    links = []
    if caller is not None:
        links = [Link(_context(caller.trace_id, caller.span_id, caller.flags, is_remote=True))]
    attributes: dict[str, str | int] = {"leafcast.generation": span.generation}
    if span.placement:
        attributes["leafcast.placement"] = span.placement
    return ReadableSpan(
        span.name,
        _context(span.trace_id, span.span_id),
        _context(span.trace_id, parent) if parent is not None else None,
        source,
        attributes,
        links=links,
        start_time=span.start_ms * _NS,
        end_time=span.end_ms * _NS,
        instrumentation_scope=InstrumentationScope(SCOPE),
    )


def _context(
    trace_id: int, span_id: int, flags: int = TraceFlags.SAMPLED, *, is_remote: bool = False
) -> SpanContext:
    return SpanContext(trace_id, span_id, is_remote, TraceFlags(flags))
