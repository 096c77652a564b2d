"""The figures of one node: what it counted, and how it is, when somebody asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from leafcast.metrics import catalogue as m
from leafcast.metrics.reading import MetricReading
from relay.adapters.server.server_figures import ServerFigures
from relay.adapters.server.store_space import free_bytes
from relay.core.link.session import WORDS
from relay.core.view import NodeView
from relay.shell.driver import Driver
from relay.syncer.under_way import RESULTS


@dataclass(frozen=True, slots=True)
class EdgeFigures:
    """What an edge's cluster holds, and what came of what was done there."""

    applied: int
    kept: int
    results: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class NodeFigures:
    """What is read of one node: `driver` is its run now, `server_starts` of a server of its own."""

    path: str
    role: str
    folder: Path
    driver: Driver | None
    edge: EdgeFigures | None = None
    server: ServerFigures | None = None
    server_starts: int | None = None


def node_readings(found: NodeFigures) -> Iterator[MetricReading]:
    """All of them; a node that has not begun yet has few."""
    path, driver = found.path, found.driver
    view = driver.node if driver is not None and driver.started.is_set() else None
    yield m.NODE.of(1, path, found.role)
    yield m.NODE_READY.of(view is not None and view.ready, path)
    if driver is not None:
        yield from _counted(path, driver)
    if view is not None:
        yield from _known(path, view)
    if found.edge is not None:
        wanted = len(view.wanted) if view is not None else 0
        yield from _of_edge(
            path, found.edge, wanted, in_maintenance=bool(view and view.in_maintenance)
        )
    # The folder of a node that has not begun, or was removed, is on the disk of what is above it.
    existing = next(at for at in (found.folder, *found.folder.parents) if at.exists())
    yield m.DISK_FREE.of(free_bytes(existing), path)
    if found.server_starts is not None:
        yield m.SERVER_STARTS.of(found.server_starts, path)
    yield m.SERVER_UP.of(found.server is not None, path)
    if found.server is not None:
        yield from _of_server(path, found.server)


def _counted(path: str, driver: Driver) -> Iterator[MetricReading]:
    counters = driver.counters
    yield m.MAIL_MESSAGES.of(counters.mail_written, path)
    yield m.MAIL_BYTES.of(counters.mail_bytes, path)
    yield m.SNAPSHOTS_WRITTEN.of(counters.snapshots_written, path)
    yield m.BLOBS_KEPT.of(counters.blobs_kept, path)
    yield from m.NOTES.states(dict(counters.noted), path)
    tier = str(len(driver.config.path.names))
    for stage, times in driver.times.by_stage.items():
        yield m.PROPAGATION.of(times, path, stage.value, tier)


def _known(path: str, view: NodeView) -> Iterator[MetricReading]:
    said, reached = view.own_state(), view.snapshot_reached
    yield m.VIEW_STALE.of(said["stale"], path)
    yield m.SNAPSHOT_GENERATION.of(said["snapshotGeneration"], path)
    if reached is not None:
        yield m.SNAPSHOT_TIME.of(reached.time_ms / 1000, path)
    yield m.PLACEMENTS_HELD.of(said["placements"], path)
    yield m.RECORDS_OUTDATED.of(said["withheld"], path)
    yield m.RECORDS_ORPHANED.of(said["orphaned"], path)
    yield m.REPORTS_REFUSED.of(said["refused"] - said["disbelieved"], path)
    yield from m.RECORDS_REFUSED.states(view.refusals, path)
    children = view.children()
    states = Counter(it.word for name in children if (it := view.standing_of(name)))
    yield from m.CHILDREN.states({word: states[word] for word in WORDS}, path)
    yield m.LAG.of(sum(map(view.lag, children)), path)


def _of_edge(
    path: str, edge: EdgeFigures, wanted: int, *, in_maintenance: bool
) -> Iterator[MetricReading]:
    there = {"wanted": wanted, "applied": edge.applied, "kept": edge.kept}
    yield from m.OBJECTS.states(there, path)
    yield from m.APPLY_OBJECTS.states({it: edge.results.get(it, 0) for it in RESULTS}, path)
    yield m.MAINTENANCE.of(in_maintenance, path)


def _of_server(path: str, server: ServerFigures) -> Iterator[MetricReading]:
    yield m.SERVER.of(1, path, server.version)
    yield m.CONNECTIONS.of(server.connections, path)
    yield m.LEAF_LINKS.of(server.leaf_links, path)
    yield from m.MESSAGES.states({"in": server.messages_in, "out": server.messages_out}, path)
    yield from m.MESSAGE_BYTES.states({"in": server.bytes_in, "out": server.bytes_out}, path)
    yield m.SLOW_CONSUMERS.of(server.slow_consumers, path)
    yield m.SERVER_MEMORY.of(server.memory_bytes, path)
    yield m.SERVER_PROCESSOR.of(server.processor_ratio, path)
    yield m.STREAMS.of(server.streams, path)
    yield m.CONSUMERS.of(server.consumers, path)
    yield m.STORED_MESSAGES.of(server.stored_messages, path)
    yield m.STORED_BYTES.of(server.stored_bytes, path)
