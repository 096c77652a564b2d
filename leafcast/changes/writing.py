"""What of a batch is written in one step, and which steps lean on others."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from leafcast.changes.batches import Batch, WriteStep
from leafcast.changes.forms import pack
from leafcast.changes.space_pair import SpacePair
from leafcast.changes.wishes import PlannedWrite, Wish, order
from relay.objects.serving import Serving
from relay.ports import Clock
from relay.space_errors import NOT_FOUND, SpaceError
from relay.space_port import Object
from schemas.values.traceparent import TraceContext
from schemas.values.wire import to_builtins

AT_ONCE = 8
"""So many objects are written at a time: an answer has room for as many of the largest size."""
SERVED_SECONDS_MAX, LOOK_SECONDS = 10.0, 0.2
"""How long a definition may take until its kind is served, and how often to look."""
PAGE_BYTES = 2_000_000
"""So much a page of judged objects holds, or a single larger one."""


def batch_of(
    spaces: SpacePair,
    writes: Sequence[PlannedWrite],
    clock: Clock,
    caller: TraceContext | None = None,
) -> Batch:
    """The batch that makes these wishes true; its pages tell of each write, as forms.

    With `caller` it is asked for in that span.
    """
    serving = Serving().extended_by(write.wish.object for write in writes)
    steps = (
        (order(write.wish), partial(make, spaces, write.wish, serving, clock)) for write in writes
    )
    pages, size = _pages(writes)
    rounds, keys = in_rounds(steps, AT_ONCE), [write.wish.key for write in writes]
    return Batch(rounds, size, goes_on=True, at_once=AT_ONCE, pages=pages, keys=keys, caller=caller)


async def make(spaces: SpacePair, wish: Wish, brought: Serving, clock: Clock) -> Object:
    """Write one wish; what really came of it. Raises SpaceError.

    What the batch defines is `brought`: an API server serves it somewhat later.
    """
    until = clock.now().seconds + SERVED_SECONDS_MAX
    while True:
        try:
            return await spaces.space_for(wish.key).apply(wish.object, wish.manager)
        except SpaceError as error:
            may_come = error.reason == NOT_FOUND and brought.brings(wish.object)
            if not may_come or clock.now().seconds > until:
                raise
            await clock.sleep(LOOK_SECONDS)


def in_rounds(steps: Iterable[tuple[Any, WriteStep]], size: int) -> list[Sequence[WriteStep]]:
    """Steps with their ranks, in their order: those of one rank are a round, or several."""
    rounds: list[Sequence[WriteStep]] = []
    for _, ranked in groupby(steps, key=lambda step: step[0]):
        alike = [step for _, step in ranked]
        rounds += [alike[at : at + size] for at in range(0, len(alike), size)]
    return rounds


def _pages(writes: Iterable[PlannedWrite]) -> tuple[list[str], int]:
    """What is to be told of these, as texts of a bounded size; and how many bytes it is in all."""
    pages, forms = list[str](), list[Any]()
    size = total = 0
    for write in writes:
        form = to_builtins(write)
        forms.append(form)
        size += len(json.dumps(form))
        if size > PAGE_BYTES:
            pages.append(pack(forms))
            total, size, forms = total + size, 0, []
    if forms:
        pages.append(pack(forms))
    return pages, total + size
