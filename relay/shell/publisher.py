"""What the centre's controllers publish through, and learn from: the ledger, counts, snapshots."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import TypeVar

from relay.core.collectors.collected_results import Result
from relay.core.content.content import references_in
from relay.core.effects import SnapshotShown, StoreOwn
from relay.core.events import Event, HistoryKept, Issued, OwnRecord, SnapshotIssued
from relay.core.node import Node
from relay.core.records.accepted import read_record, to_keep
from relay.ports import Bus, Clock
from relay.shell.counters import Counters
from schemas.content.blobs import Reference, open_value
from schemas.content.carried import Carried
from schemas.records.records import FormerRollout, History, Source, SpaceMark
from schemas.records.signing import Envelope, decode_envelope
from schemas.reports.reports import Count, ObjectResult
from schemas.values.identity import SNAPSHOT_KEY, ContentHash, MailKey, TreeId
from schemas.values.refusals import WireRefused
from schemas.values.subjects import FORMER_ROLLOUT_PREFIX, HISTORY_PREFIX, SPACE_PREFIX
from schemas.values.wire import decode, encode

CARRIED_MAX_BYTES = 2048
"""Of the new content that travels along with one record."""

Load = Callable[[Reference], Awaitable[bytes | None]]
_N = TypeVar("_N", History, FormerRollout, SpaceMark)


class CentrePublisher:
    """The centre's relay as its controllers see it; `node` gives the state machine of the run."""

    def __init__(
        self,
        bus: Bus,
        clock: Clock,
        tree: TreeId,
        node: Callable[[], Node],
        load: Load,
        counters: Counters,
    ) -> None:
        self.tree = tree
        self._bus = bus
        self._clock = clock
        self._node = node
        self._load = load
        self._counters = counters
        self._ledger: dict[str, bytes] = {}
        # Blobs that are kept, or about to be, of records that the node was not told of yet.
        self._coming: list[frozenset[ContentHash]] = []
        # Erasing blobs and keeping them exclude each other.
        self._erasing = asyncio.Lock()
        self._in_order = asyncio.Lock()
        self._counts: dict[MailKey, None] = {}
        self._counted = asyncio.Event()
        self._shown: SnapshotShown | None = None
        self._shown_news = asyncio.Event()

    def restore(self, own: Iterable[OwnRecord]) -> None:
        """Begin with what the stream holds."""
        self._ledger = {record.key: record.data for record in own}

    def ledger(self) -> Mapping[str, Envelope]:
        """All that is kept, by OWN key; what cannot be read is left out."""
        found = {}
        for key, data in self._ledger.items():
            try:
                found[key] = decode_envelope(data)
            except WireRefused:
                continue
        return found

    async def publish(
        self, blobs: Mapping[ContentHash, bytes], envelopes: Sequence[Envelope]
    ) -> None:
        """Keep blobs and records, then send the records to whom they concern; raises BusBroken."""
        hops, fresh = (self._clock.now().wall_ms,), frozenset(blobs)
        kept: list[StoreOwn] = []
        issued: list[Event] = []
        for at, envelope in enumerate(envelopes, 1):
            data = envelope.encode()
            _, accepted = read_record(data, hops)
            content = accepted.body.content if accepted.body is not None else ()
            carried = small_content(content, blobs) if blobs else ()
            kept.append(to_keep(accepted))
            last = fresh if at == len(envelopes) else frozenset[ContentHash]()
            issued.append(Issued(data, hops, last, carried))
        await self._keep(blobs, kept, issued)

    async def publish_snapshot(
        self,
        blobs: Mapping[ContentHash, bytes],
        envelope: Envelope,
        dropped: Sequence[MailKey],
    ) -> None:
        """Keep blobs and the snapshot, erase what it lists no more, and send it."""
        data = envelope.encode()
        kept = [StoreOwn(SNAPSHOT_KEY, data), *(StoreOwn(key, None) for key in dropped)]
        issued = SnapshotIssued(data, tuple(dropped), frozenset(blobs))
        await self._keep(blobs, kept, [issued])

    def kept_history(self) -> Mapping[MailKey, tuple[Reference, ...]]:
        """The former contents that are kept, by placement; what cannot be read is left out."""
        return {key: history.references for key, history in self._histories()}

    def rejections(self) -> Mapping[MailKey, tuple[Reference, Reference]]:
        """Of placements of which something is rejected: what was wanted, and what goes out."""
        found = {}
        for key, history in self._histories():
            if history.rejected:
                wish, target = history.rejected
                found[key] = wish, target
        return found

    def _histories(self) -> Iterator[tuple[MailKey, History]]:
        return self._notes(HISTORY_PREFIX, History)

    def _notes(self, prefix: str, kind: type[_N]) -> Iterator[tuple[MailKey, _N]]:
        """The notes of placements whose keys begin so."""
        for key, data in self._ledger.items():
            if key.startswith(prefix):
                with suppress(WireRefused):
                    yield MailKey(key.removeprefix(prefix)), decode(kind, data)

    async def keep_history(
        self,
        key: MailKey,
        references: Sequence[Reference],
        blobs: Mapping[ContentHash, bytes] = MappingProxyType({}),
        rejected: Sequence[Reference] = (),
    ) -> None:
        """Keep these contents of a placement, and no others; raises BusBroken."""
        kept = tuple(references)
        data = encode(History(kept, tuple(rejected))) if kept else None
        own = StoreOwn(f"{HISTORY_PREFIX}{key}", data)
        await self._keep(blobs, [own], [HistoryKept(key, kept, frozenset(blobs))])

    def former_rollouts(self) -> Mapping[MailKey, FormerRollout]:
        """What is known of the Rollouts that placements had; what cannot be read is left out."""
        return dict(self._notes(FORMER_ROLLOUT_PREFIX, FormerRollout))

    async def keep_former_rollout(self, key: MailKey, known: FormerRollout) -> None:
        """Keep what is known of the Rollout that a placement had; raises BusBroken."""
        data = encode(known) if known != FormerRollout() else None
        await self._keep({}, [StoreOwn(f"{FORMER_ROLLOUT_PREFIX}{key}", data)], [])

    def space_mark(self, space: str) -> SpaceMark | None:
        """How far a space was known; None if that was never noted, or cannot be read."""
        return dict(self._notes(SPACE_PREFIX, SpaceMark)).get(_space_key(space))

    async def keep_space_mark(self, space: str, mark: SpaceMark) -> None:
        """Keep how far a space is known; raises BusBroken."""
        own = StoreOwn(f"{SPACE_PREFIX}{_space_key(space)}", encode(mark))
        await self._keep({}, [own], [])

    async def load(self, reference: Reference) -> bytes | None:
        """The plain bytes of a blob kept earlier, checked; None if it is not there."""
        return await self._load(reference)

    def lacks(self, addresses: Iterable[ContentHash]) -> frozenset[ContentHash]:
        """Which of these blobs are not kept here."""
        return self._node().lacks(addresses).difference(*self._coming)

    def count(self, key: MailKey) -> Count | None:
        """What is counted over the tree for a placement; None if it is not in force."""
        node = self._node()
        return node.count(key) if key in node.records else None

    def unreachable(self, key: MailKey) -> Sequence[tuple[str, int]]:
        """The children behind which some cannot be reached, and how many; the most first."""
        found = self._node().children_in_state(key, "unreachable")
        return sorted(found, key=lambda each: (-each[1], each[0]))

    def results(self, key: MailKey) -> Sequence[ObjectResult]:
        """The objects' returned states for a placement."""
        return tuple(self._node().results(key).values())

    def collected(self, key: MailKey) -> Sequence[Result]:
        """What collectors collected of a placement."""
        return self._node().collected(key)

    async def counts_changed(self) -> frozenset[MailKey]:
        """Wait until counts changed since the last call, and name them."""
        await self._counted.wait()
        self._counted.clear()
        changed, self._counts = self._counts, {}
        return frozenset(changed)

    async def shown(self) -> SnapshotShown:
        """Wait for a child that shows a snapshot above the centre's last, or of another term."""
        await self._shown_news.wait()
        self._shown_news.clear()
        assert self._shown is not None
        return self._shown

    # What the driver tells.

    def count_changed(self, key: MailKey) -> None:
        self._counts[key] = None
        self._counted.set()

    def snapshot_shown(self, shown: SnapshotShown) -> None:
        told = self._shown if self._shown_news.is_set() else None
        if told is None or shown.rank > told.rank:
            self._shown = shown
            self._shown_news.set()

    def handled(self, event: Event) -> None:
        """The node knows of the blobs that came with an event."""
        if isinstance(event, Issued | SnapshotIssued | HistoryKept) and event.blobs:
            self._coming.remove(event.blobs)

    async def drop_blobs(self, addresses: Sequence[ContentHash]) -> None:
        """Erase what no record leads to, but not what one names that is on its way."""
        async with self._erasing:
            coming = frozenset[ContentHash]().union(*self._coming)
            await self._bus.drop_blobs([it for it in addresses if it not in coming])

    async def _keep(
        self, blobs: Mapping[ContentHash, bytes], own: Sequence[StoreOwn], events: Sequence[Event]
    ) -> None:
        if events and blobs:
            self._coming.append(frozenset(blobs))
        self._counters.blobs_kept += len(blobs)
        async with self._in_order:
            async with self._erasing:
                # Content first: a loss of power must leave no record whose content nobody has.
                if blobs:
                    await self._bus.write(blobs=blobs)
                await self._bus.write(own=own)
            for record in own:
                self._ledger.pop(record.key, None)
                if record.data is not None:
                    self._ledger[record.key] = record.data
            for event in events:
                await self._bus.inbox.put(event)


def small_content(
    references: Iterable[Reference],
    blobs: Mapping[ContentHash, bytes],
    most: int = CARRIED_MAX_BYTES,
) -> Carried:
    """Of these stored values those that a record leads to, the nearest first, while they fit."""
    found: dict[ContentHash, bytes] = {}
    level = list(references)
    while level:
        below: list[Reference] = []
        for reference in level:
            value = blobs.get(reference.address)
            if value is None or reference.address in found or len(value) > most:
                continue
            try:
                below += references_in(reference.kind, open_value(reference, value))
            except WireRefused:
                continue
            found[reference.address] = value
            most -= len(value)
        level = below
    return tuple(found.items())


def _space_key(space: str) -> MailKey:
    return Source("", space, "", "").key
