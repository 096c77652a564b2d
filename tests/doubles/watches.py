"""What watches the changes of a centre of which nothing else is there."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from relay.ports import Clock
from relay.shell.centre_watch import CentreWatch
from relay.shell.propagation_times import PropagationTimes
from relay.shell.trace_ring import TraceRing


def centre_watch(clock: Clock) -> CentreWatch:
    times = PropagationTimes(is_centre=True, is_edge=False)
    return CentreWatch(times, TraceRing(is_edge=False, began_ms=0), clock)


def issued_of(key: str, generation: int) -> Any:
    """The event that such a centre is told as a delta is in its ledger."""
    envelope, record = (
        SimpleNamespace(kind="delta"),
        SimpleNamespace(generation=generation, source=None),
    )
    signed = SimpleNamespace(envelope=envelope, body=b"", slot=key, record=record)
    return SimpleNamespace(signed=signed, hops=(7,))
