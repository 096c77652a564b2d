"""What the centre's controllers publish through, and learn from: the ledger, counts, snapshots."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType

from relay.core.collectors.collected_results import Result
from relay.core.effects import SnapshotShown, StoreOwn
from relay.core.events import Event, HistoryKept, RecordIssued, Remembered, SnapshotIssued
from relay.core.notes import Notes, is_note
from relay.core.records.accepted import accept_own, to_keep
from relay.core.view import NodeView
from relay.ports import Bus, Clock
from relay.shell.centre_watch import CentreWatch
from relay.shell.counters import Counters
from schemas.content.blobs import Reference
from schemas.content.carried import Carried
from schemas.records.records import FormerRollout, History, SpaceMark, space_key
from schemas.records.signed_records import SignedRecord, StoredMessages, read_signed, read_stored
from schemas.records.signing import Envelope, decode_envelope
from schemas.records.snapshots import SnapshotRecord
from schemas.reports.reports import Count, ObjectResult
from schemas.reports.running import Running
from schemas.values.identity import SNAPSHOT_KEY, ContentHash, MailKey, TreeId
from schemas.values.refusals import RecordRefused, WireRefused
from schemas.values.subjects import FORMER_ROLLOUT_PREFIX, HISTORY_PREFIX, SPACE_PREFIX
from schemas.values.wire import encode

CARRIED_MAX_BYTES = 2048
"""Of the new content that travels along with one record."""

Load = Callable[[Reference], Awaitable[bytes | None]]


class CentrePublisher:
    """The relay at the root of the tree, as its controllers see it.

    `node` gives the view of the run.
    """

    def __init__(
        self,
        bus: Bus,
        clock: Clock,
        tree: TreeId,
        node: Callable[[], NodeView],
        load: Load,
        counters: Counters,
        watch: CentreWatch,
    ) -> None:
        self.tree = tree
        self._bus = bus
        self._clock = clock
        self._node = node
        self._load = load
        self._counters, self.watch = counters, watch
        # The snapshot, and the records in OWN that the node did not believe as it started.
        self._apart: dict[str, bytes] = {}
        # Records that are kept, or erased, and of which the node was not told yet.
        self._ahead: dict[MailKey, SignedRecord | None] = {}
        self._handled = asyncio.Event()
        # Blobs that are kept, or about to be, of records that the node was not told of yet.
        self._coming: list[frozenset[ContentHash]] = []
        # What was issued since the last snapshot, and how many that were as each key was.
        self._issued: dict[MailKey, None] = {}
        self._issued_before: dict[MailKey, int] = {}
        self._histories: dict[MailKey, History] = {}
        self._former_rollouts: dict[MailKey, FormerRollout] = {}
        self._space_marks: dict[MailKey, SpaceMark] = {}
        # Erasing blobs and keeping them exclude each other.
        self._erasing = asyncio.Lock()
        self._in_order = asyncio.Lock()
        self._counts: dict[MailKey, None] = {}
        self._counted = asyncio.Event()
        self._shown: SnapshotShown | None = None
        self._shown_news = asyncio.Event()

    def restore(self, remembered: Remembered) -> None:
        """Begin with what the stream holds, and with a node that read it.

        Notes that cannot be read are as none.
        """
        data = {record.key: record.data for record in remembered.own}
        held, notes = self._node().records, Notes(remembered, [])
        signed = (key for key in data if key == SNAPSHOT_KEY or not is_note(key))
        self._apart = {key: data[key] for key in signed if key not in held}
        self._ahead.clear()
        self._tell_handled()
        self._issued.clear()
        self._issued_before = {
            MailKey(it.key): it.sequence for it in remembered.own if not is_note(it.key)
        }
        self._histories = notes.below(HISTORY_PREFIX, History)
        self._former_rollouts = notes.below(FORMER_ROLLOUT_PREFIX, FormerRollout)
        self._space_marks = notes.below(SPACE_PREFIX, SpaceMark)

    def ledger(self) -> StoredMessages:
        """All that is kept: what the stream held at the start, and what was published since.

        Of what the node holds only the envelopes are decoded. A record of a newer program, of
        which this one cannot read all, counts as damaged.
        """
        apart: dict[str, Envelope] = {}
        for key, data in self._apart.items():
            with suppress(WireRefused):
                apart[key] = decode_envelope(data)
        stored = read_stored(apart)
        records, damaged = dict(stored.records), set(stored.damaged)
        for key, accepted in self._node().records.items():
            envelope = decode_envelope(accepted.data)
            held = SignedRecord(envelope, accepted.record, accepted.body)
            try:
                records[key] = read_signed(envelope) if accepted.opaque else held
            except RecordRefused:
                damaged.add(key)
        for key, signed in self._ahead.items():
            records.pop(key, None)
            damaged.discard(key)
            if signed is not None:
                records[key] = signed
        before = self._issued_before
        return stored._replace(records=records, damaged=frozenset(damaged), issued=before)

    async def publish(
        self, blobs: Mapping[ContentHash, bytes], records: Sequence[SignedRecord]
    ) -> None:
        """Keep the blobs, then the records in the ledger, then send them to whom they concern.

        Returns when blobs and ledger are kept; sending goes on by itself, also after a restart.
        Raises BusBroken.
        """
        hops, fresh = (self._clock.now().wall_ms,), frozenset(blobs)
        kept: list[StoreOwn] = []
        issued: list[Event] = []
        for at, signed in enumerate(records, 1):
            content = signed.body.content if signed.body is not None else ()
            carried = small_content(content, blobs) if blobs else ()
            data = signed.envelope.encode()
            self._issued[signed.slot] = None
            kept.append(to_keep(accept_own(signed, data, hops), sequence=len(self._issued)))
            last = fresh if at == len(records) else frozenset[ContentHash]()
            issued.append(RecordIssued(signed, data, hops, last, carried))
        await self._keep(blobs, kept, issued)

    async def publish_snapshot(
        self,
        blobs: Mapping[ContentHash, bytes],
        record: SnapshotRecord,
        envelope: Envelope,
        dropped: Sequence[MailKey],
    ) -> None:
        """Keep the blobs, then the snapshot, erase what it lists no more, and send it.

        Returns when it is kept and what is dropped is erased. Raises BusBroken.
        """
        data, hashed = envelope.encode(), envelope.payload_hash
        kept = [StoreOwn(SNAPSHOT_KEY, data), *(StoreOwn(key, None) for key in dropped)]
        issued = SnapshotIssued(record, data, hashed, tuple(dropped), frozenset(blobs))
        await self._keep(blobs, kept, [issued])
        self._issued.clear()

    def kept_history(self) -> Mapping[MailKey, tuple[Reference, ...]]:
        """The former contents that are kept, by placement."""
        return {key: history.references for key, history in self._histories.items()}

    def rejections(self) -> Mapping[MailKey, tuple[Reference, Reference]]:
        """What was wanted, and what goes out, for placements of which something is rejected."""
        found = {}
        for key, history in self._histories.items():
            if history.rejected:
                wish, target = history.rejected
                found[key] = wish, target
        return found

    async def keep_history(
        self,
        key: MailKey,
        references: Sequence[Reference],
        blobs: Mapping[ContentHash, bytes] = MappingProxyType({}),
        rejected: Sequence[Reference] = (),
    ) -> None:
        """Keep these blobs, and these contents of a placement, manifests whole, and no others.

        What a delta in force names is kept in any case. It holds over restarts, as what is
        rejected does: two of these contents, or none. Raises BusBroken.
        """
        history = History(tuple(references), tuple(rejected))
        kept = history.references
        own = StoreOwn(f"{HISTORY_PREFIX}{key}", encode(history) if kept else None)
        await self._keep(blobs, [own], [HistoryKept(key, kept, frozenset(blobs))])
        self._histories.pop(key, None)
        if kept:
            self._histories[key] = history

    def former_rollouts(self) -> Mapping[MailKey, FormerRollout]:
        """What is known of the Rollouts that placements had; of others there is nothing to know."""
        return dict(self._former_rollouts)

    async def keep_former_rollout(self, key: MailKey, known: FormerRollout) -> None:
        """Keep what is known of the Rollout that one had, over restarts; raises BusBroken."""
        is_known = known != FormerRollout()
        own = StoreOwn(f"{FORMER_ROLLOUT_PREFIX}{key}", encode(known) if is_known else None)
        await self._keep({}, [own], [])
        self._former_rollouts.pop(key, None)
        if is_known:
            self._former_rollouts[key] = known

    def space_mark(self, space: str) -> SpaceMark | None:
        """How far a space was known; None if that was never noted, or cannot be read."""
        return self._space_marks.get(space_key(space))

    async def keep_space_mark(self, space: str, mark: SpaceMark) -> None:
        """Keep how far a space is known, over restarts; raises BusBroken."""
        key = space_key(space)
        await self._keep({}, [StoreOwn(f"{SPACE_PREFIX}{key}", encode(mark))], [])
        self._space_marks[key] = mark

    async def load(self, reference: Reference) -> bytes | None:
        """The plain bytes of a blob kept earlier, checked; None if it is not there."""
        return await self._load(reference)

    def lacks(self, addresses: Iterable[ContentHash]) -> frozenset[ContentHash]:
        """Which of these blobs are not kept here, as far as is known without reading them."""
        return self._node().lacks(addresses).difference(*self._coming)

    def count(self, key: MailKey) -> Count | None:
        """What is counted over the tree for a placement; None if it is not in force."""
        node = self._node()
        if key not in node.records:
            return None
        count = node.count(key)
        self.watch.counted(key, count)
        return count

    def running(self) -> Running:
        """Who runs what in the whole tree, as it was said last."""
        return self._node().running()

    def running_here(self) -> Running:
        """What the centre says of itself; nothing before it looked."""
        return self._node().running_here()

    def running_below(self) -> dict[str, Running]:
        """Who runs what at and below each child of the centre."""
        node = self._node()
        return {name: node.running_at(name) for name in node.children()}

    def silent_below(self) -> dict[str, int]:
        """When children of the centre were heard last that joined, and are not there now.

        In ms since 1970.
        """
        node = self._node()
        heard = {name: node.heard(name) for name in node.children()}
        return {name: it.last_ms for name, it in heard.items() if it and it.silent and it.last_ms}

    async def published_handled(self) -> None:
        """Wait until the node has dealt with all that was published before."""
        for key, signed in list(self._ahead.items()):
            while self._ahead.get(key, self) is signed:
                await self._handled.wait()

    def unreachable(self, key: MailKey) -> Sequence[tuple[str, int]]:
        """The children behind which some cannot be reached, and how many; the most first."""
        found = self._node().children_in_state(key, "unreachable")
        return sorted(found, key=lambda each: (-each[1], each[0]))

    def results(self, key: MailKey) -> Sequence[ObjectResult]:
        """The objects' returned states for a placement: exact ones and counted ones."""
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
        """Wait for a child that shows a snapshot above the centre's last, or of another term.

        Each is told once, or not at all if a newer one is.
        """
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
        """The node knows of what came with an event."""
        if not isinstance(event, RecordIssued | SnapshotIssued | HistoryKept):
            return
        match event:
            case RecordIssued(signed) if self._ahead.get(signed.slot) is signed:
                del self._ahead[signed.slot]
            case SnapshotIssued():
                for key in event.dropped:
                    if self._ahead.get(key, self) is None:
                        del self._ahead[key]
            case _:
                pass
        if event.blobs:
            self._coming.remove(event.blobs)
        self._tell_handled()

    def _tell_handled(self) -> None:
        self._handled.set()
        self._handled = asyncio.Event()

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
                self._apart.pop(record.key, None)
                if record.key == SNAPSHOT_KEY and record.data is not None:
                    self._apart[SNAPSHOT_KEY] = record.data
            for event in events:
                if isinstance(event, RecordIssued):
                    self._ahead[event.signed.slot] = event.signed
                    self.watch.issued(event)
                elif isinstance(event, SnapshotIssued):
                    self._ahead |= dict.fromkeys(event.dropped)
            for event in events:
                await self._bus.inbox.put(event)


def small_content(
    references: Iterable[Reference],
    blobs: Mapping[ContentHash, bytes],
    most: int = CARRIED_MAX_BYTES,
) -> Carried:
    """The stored values that a record names, in its order, while they fit."""
    found: dict[ContentHash, bytes] = {}
    for reference in references:
        value = blobs.get(reference.address)
        if value is not None and reference.address not in found and len(value) <= most:
            found[reference.address] = value
            most -= len(value)
    return tuple(found.items())
