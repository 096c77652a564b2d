"""The spans that are sent of a change: ids and parents follow from the change, the node, the stage.

So the spans of all nodes make one tree, though none tells another of its own. Each is sent as its
stage is over, and once: what is under way for a day is seen from its beginning.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

from relay.shell.trace_ring import TraceSpan, TraceStage
from schemas.values.identity import MailKey, NodePath
from schemas.values.trace_ids import trace_id
from schemas.values.traceparent import TraceContext

ROOT = "change"
"""The name of the root span: up to when the change is in the ledger."""
_SPAN_ID_BYTES = 8


class ChangeSpan(NamedTuple):
    """One span as a collector gets it; times are ms since 1970, by the clock of the node."""

    name: str
    trace_id: int
    span_id: int
    # None of the root.
    parent_id: int | None
    start_ms: int
    end_ms: int
    generation: int
    # The placement as people name it; "" if the node holds it no more.
    placement: str
    # Who asked for the change; of a root only.
    caller: TraceContext | None = None


class TracedChange(NamedTuple):
    """What is known of a change beside its stages: when it began here, and who asked for it."""

    placement: str
    began_ms: int
    caller: TraceContext | None = None


def change_spans(path: NodePath, span: TraceSpan, change: TracedChange) -> Iterator[ChangeSpan]:
    """What is sent as a stage is over at the node of this path."""
    trace = trace_id(span.key, span.generation)
    of_node = _span_id(trace, path, "")
    mine = span.generation, change.placement
    number = trace_number(span.key, span.generation)
    if span.stage is TraceStage.ISSUED:
        times = change.began_ms, span.end_ms
        yield ChangeSpan(ROOT, number, of_node, None, *times, *mine, change.caller)
    name, times = span.stage.value, (span.start_ms, span.end_ms)
    if span.stage is TraceStage.RECEIVED:
        # It stands for the node: what happens there, and below, hangs at it.
        yield ChangeSpan(name, number, of_node, _span_id(trace, path.parent, ""), *times, *mine)
    else:
        yield ChangeSpan(name, number, _span_id(trace, path, name), of_node, *times, *mine)


def trace_number(key: MailKey, generation: int) -> int:
    """The trace id as the library has it."""
    return int.from_bytes(trace_id(key, generation), "big")


def _span_id(trace: bytes, path: NodePath, stage: str) -> int:
    said = b"span\0" + trace + f"\0{path}\0{stage}".encode()
    return int.from_bytes(hashlib.sha256(said).digest()[:_SPAN_ID_BYTES], "big") or 1
