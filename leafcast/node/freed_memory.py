"""Memory that a long-living program has freed goes back to the system, and is looked for cheaply.

The C library keeps what lies between two blocks in use, and its heap grew with each sweep: 0.3 MB a
minute in a soak, of which nothing was in use. And each search for cycles went through all that a
program has once it has started, its modules above all: 0.1 s in the midst of work. Python begins
one after 700 new objects, a dozen changes, and nearly all of those are in use: a quarter of
the processor time of an edge went into searches that found nothing.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable

from relay.ports import Clock

STARTED_SECONDS = 10.0
SEARCH_AFTER_OBJECTS = 10_000
TRIM_EVERY_SECONDS = 60.0


async def give_back_freed(clock: Clock) -> None:
    """Give it back now and then, until cancelled; returns soon where the C library cannot."""
    await clock.sleep(STARTED_SECONDS)
    search_rarely()
    trim = _trim()
    while trim is not None:
        trim(0)
        await clock.sleep(TRIM_EVERY_SECONDS)


def search_rarely() -> None:
    """From now on look for cycles seldom, and never in what is there already."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(SEARCH_AFTER_OBJECTS)


def _trim() -> Callable[[int], int] | None:
    """`malloc_trim` of glibc."""
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None
