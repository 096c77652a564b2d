"""What watches the changes of a centre of which nothing else is there."""

from __future__ import annotations

from relay.ports import Clock
from relay.shell.centre_watch import CentreWatch
from relay.shell.propagation_times import PropagationTimes
from relay.shell.trace_ring import TraceRing


def centre_watch(clock: Clock) -> CentreWatch:
    times = PropagationTimes(is_centre=True, is_edge=False)
    return CentreWatch(times, TraceRing(is_edge=False, began_ms=0), clock)
