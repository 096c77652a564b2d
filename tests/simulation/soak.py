"""A year of virtual time: what a node keeps and remembers does not grow with time."""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

from relay.core.node import Node
from relay.core.reports.fold import Shapes
from relay.objects.expressions.cel import CompiledExpression, ExpressionValues
from schemas.values.bounded_cache import BoundedCache
from tests.simulation.faults import NO_FAULTS
from tests.simulation.host import Host
from tests.simulation.run import Run
from tests.simulation.scripts import CHANGES
from tests.simulation.signatures import cheap_signatures
from tests.simulation.sizes import SMALL, Size

DAY = 86400.0
LASTING = tuple(change for change in CHANGES if change not in ("grow", "shrink"))
STEPS_A_DAY = 300_000
GROWTH_MAX = 1.1
"""How much more the last third of a soak may need than the second."""
SWEPT_SECONDS = 3 * 3600.0
"""After so long nothing refers to what went before, and sweeps have taken it."""


@dataclass(frozen=True, slots=True)
class Sample:
    """At one time, of one node: bytes of memory (its state, pickled) and of its streams."""

    day: float
    path: str
    memory: int
    storage: int

    def __str__(self) -> str:
        memory, storage = self.memory / 1024, self.storage / 1024
        where = f"day {self.day:6.1f} {self.path:10}"
        return f"  {where} memory {memory:7.1f} KiB  streams {storage:7.1f} KiB"


def soak(days: float, changes: int, samples: int, size: Size = SMALL) -> Iterator[Sample]:
    """Live with so many changes, each tenth with a crash and a cut before it."""
    with cheap_signatures(), closing(Run(1, NO_FAULTS, size)) as one:
        yield from _soak(one, days, changes, samples)


def flat(taken: list[Sample]) -> bool:
    """Whether no node needs more at the end than after the warm-up, for as much in force."""
    third = len(taken) // 3
    early, late = taken[third : 2 * third], taken[2 * third :]
    return all(
        max(s.memory for s in late if s.path == path)
        <= GROWTH_MAX * max(s.memory for s in early if s.path == path)
        and max(s.storage for s in late if s.path == path)
        <= GROWTH_MAX * max(s.storage for s in early if s.path == path)
        for path in {s.path for s in early} & {s.path for s in late}
    )


def told(taken: list[Sample]) -> str:
    """The figures: a line for each sample."""
    return "\n".join(map(str, taken))


def _soak(one: Run, days: float, changes: int, samples: int) -> Iterator[Sample]:
    one.world.steps_max = int(days * STEPS_A_DAY)
    one.build()
    end, change_every = one.world.now + days * DAY, days * DAY / changes
    sample_at, sample_every = one.world.now + days * DAY / samples, days * DAY / samples
    made = 0
    while one.world.now < end:
        made += 1
        if made % 10 == 0:
            _fault(one, made)
        one.workload.do(one.world.random.choice(LASTING))
        one.world.run(change_every)
        if one.world.now >= sample_at:
            sample_at += sample_every
            one.settle()
            one.workload.fill()
            one.settle()
            one.world.run(SWEPT_SECONDS)
            for host in one.world.hosts.values():
                if host.node is not None:
                    day = one.world.now / DAY
                    held = memory_of(host.driver.machine)
                    yield Sample(day, str(host.path), held, _storage(host))
    one.settle()


def _fault(one: Run, made: int) -> None:
    hosts = list(one.world.hosts.values())
    host = hosts[made // 10 % len(hosts)]
    if host.node is not None:
        host.armed = (True, 60.0)
    other = hosts[(made // 10 + 1) % len(hosts)]
    if not other.path.is_root:
        one.world.cut(other.path)
        one.world.after(600.0, one.world.heal, other.path)


def _storage(host: Host) -> int:
    streams = host.streams
    kept = [len(record.data) for record in streams.own.values()]
    kept += [
        len(slot.data) for stream in (streams.mail, streams.stat) for _, slot in stream.items()
    ]
    return sum(kept) + sum(len(value) for value in streams.blobs.values()) + 64 * len(streams.done)


def memory_of(node: Node | None) -> int:
    """The node's state as bytes: a figure that grows as its containers do."""
    stored = io.BytesIO()
    _Plain(stored, pickle.HIGHEST_PROTOCOL).dump(node)
    return stored.tell()


class _Plain(pickle.Pickler):
    """Pickles a node; what a function closes over is the node itself.

    Summaries that are kept only to be shared, and programs bound to objects, have bounds of their
    own, and come and go below these.
    """

    def reducer_override(self, obj: object) -> object:
        if hasattr(obj, "__closure__") or hasattr(obj, "cache_clear"):
            return str, ("function",)
        if isinstance(obj, Shapes | BoundedCache):
            return str, ("kept within a bound of its own",)
        if isinstance(obj, CompiledExpression | ExpressionValues):
            return str, ("of CEL's, one for each that is asked for",)
        return NotImplemented
