"""A centre's relay for tests: an honest ledger and blob store in memory, which send nothing."""

import asyncio
from types import MappingProxyType

from controllers.core.access.keyring import Keyring
from controllers.core.ledger.ledger import slot_of
from relay.adapters.clock import SystemClock
from relay.core.effects import SnapshotShown
from relay.core.records.snapshot import SnapshotView
from schemas.content.blobs import MANIFEST, open_value, parts_of
from schemas.content.manifest import read_manifest, read_root
from schemas.records.records import DeltaHead, decode_body, decode_record
from schemas.records.signed_records import read_signed, read_stored
from schemas.records.snapshots import (
    SnapshotRank,
    mail_key_of,
    read_inner,
    read_snapshot,
    read_terms,
)
from schemas.reports.reports import Count
from schemas.reports.returned_states import sealed_state
from schemas.values.identity import KEYS_KEY, SNAPSHOT_KEY
from tests.doubles.watches import centre_watch

WAIT_SECONDS = 20


class LedgerRelay:
    """Keeps what is published, and refuses old generations and records without their blobs."""

    def __init__(self, tree, keyring=None):
        """With the ring of a tree's keys it can open what is sealed."""
        self.tree = tree
        self.watch = centre_watch(SystemClock())
        self.ring = keyring or (lambda: Keyring(tree))
        self.blobs = {}
        self.records = {}
        self.former = {}
        self.rejected = {}
        self.former_known = {}
        self.space_marks = {}
        self.history = []
        self._bodies = {}
        self.snapshots = []
        self.blob_writes = []
        self.counts = {}
        self.away = {}
        self.returned = {}
        self.rows = {}
        self._news = asyncio.Condition()
        self._changed = set()
        self._shown = asyncio.Queue()

    def ledger(self):
        return read_stored(self.records)

    async def publish(self, blobs, records):
        self._keep(blobs)
        for signed in records:
            envelope, record, _ = signed
            assert signed == read_signed(envelope), "the values are what the message says"
            slot = slot_of(envelope.kind, record)
            held = self.record(slot)
            assert held is None or record.generation > held.generation
            await self._demand_content(record, envelope.body)
            self.records[slot] = envelope
            self.history.append(record)
            self._bodies[record.source.key, record.generation] = envelope.body
        await self._tell()

    async def publish_snapshot(self, blobs, snapshot, envelope, dropped):
        self._keep(blobs)
        assert snapshot == read_snapshot(envelope.payload)
        assert all(record.generation < snapshot.generation for record in self.held().values())
        for reference in snapshot.references:
            assert await self.load(reference) is not None
        self.records[SNAPSHOT_KEY] = envelope
        for slot in dropped:
            self.records.pop(slot, None)
        self.snapshots.append(snapshot)
        await self._tell()

    def kept_history(self):
        return dict(self.former)

    def rejections(self):
        return dict(self.rejected)

    async def keep_history(self, key, references, blobs=MappingProxyType({}), rejected=()):
        self._keep(blobs)
        self.former[key] = tuple(references)
        self.rejected[key] = tuple(rejected)
        if not references:
            del self.former[key]
        if not rejected:
            del self.rejected[key]

    def former_rollouts(self):
        return dict(self.former_known)

    async def keep_former_rollout(self, key, known):
        self.former_known[key] = known

    def space_mark(self, space):
        return self.space_marks.get(space)

    async def keep_space_mark(self, space, mark):
        self.space_marks[space] = mark

    async def load(self, reference):
        value = self.blobs.get(reference.address)
        if value is None:
            return None
        parts = {part.address: self.blobs[part.address] for part in parts_of(reference, value)}
        return open_value(reference, value, parts)

    def lacks(self, addresses):
        return frozenset(addresses) - self.blobs.keys()

    def count(self, key):
        return self.counts.get(key)

    async def published_handled(self):
        """At once: it has no node."""

    def unreachable(self, key):
        return self.away.get(key, ())

    def results(self, key):
        """As edges say them, which have the placement's key."""
        sealed_under, said = self.ring().keys(key).newest, self.returned.get(key, ())
        return [sealed_state(it, sealed_under) for it in said] if sealed_under else said

    def collected(self, key):
        return self.rows.get(key, ())

    async def counts_changed(self):
        async with self._news:
            await self._news.wait_for(lambda: self._changed)
            changed, self._changed = frozenset(self._changed), set()
            return changed

    async def shown(self):
        return await self._shown.get()

    def show(self, generation, term="0" * 16, time_ms=0):
        """Say that a child has a snapshot of this generation, signed by that term, and when."""
        self._shown.put_nowait(SnapshotShown(SnapshotRank(0, generation), term, time_ms))

    async def report(self, key, summary, results=(), *, exact=True):
        """Say that the tree reported this of a placement."""
        async with self._news:
            record = self.record(key)
            generation = record.generation if record is not None else 0
            self.counts[key] = Count(summary, exact, generation=generation)
            self.returned[key] = results
            self._changed.add(key)
            self._news.notify_all()

    def record(self, slot):
        envelope = self.records.get(slot)
        if envelope is None:
            return None
        return decode_record(envelope.kind, envelope.payload, envelope.body)

    def delta(self, name):
        for slot, record in self.held().items():
            if isinstance(record, DeltaHead) and record.source.name == name:
                return self.record(slot)
        return None

    def deltas(self):
        return [record for record in self.history if isinstance(record, DeltaHead)]

    def body(self, head):
        return decode_body(head, self._bodies[head.source.key, head.generation])

    async def entries(self, head):
        """The manifest of a delta, by object name."""
        return {entry.name: entry for entry in (await self.manifest(head)).entries}

    async def manifest(self, head):
        root = await self.load(self.body(head).content[0])
        chunks = {it.address: await self.load(it) for it in read_root(root).chunks}
        return read_manifest(root, chunks, self.ring().keys(head.source.key).keys)

    async def object(self, head, name):
        """The plain bytes of an object that a delta leads to."""
        manifest = await self.manifest(head)
        reference = next(entry.reference for entry in manifest.entries if entry.name == name)
        stored = await self.load(reference)
        return stored if manifest.key is None else manifest.key.unseal(reference.kind, stored)

    async def listed(self):
        """What the last snapshot lists: generations by mail key."""
        nodes, waiting = {}, [self.snapshots[-1].tree]
        while waiting:
            at = waiting.pop()
            plain = nodes[at.address] = await self.load(at.reference)
            if at.height:
                node = read_inner(plain)
                waiting += [at.child(node, which) for which in range(len(node.children))]
        entries = SnapshotView(self.snapshots[-1], nodes).entries()
        return {mail_key_of(entry.key): entry.generation for entry in entries}

    async def terms(self):
        """The terms that the last snapshot knows, by their hex digits, each with its highest."""
        known = read_terms(await self.load(self.snapshots[-1].terms_reference))
        return {entry.term.hex(): entry.highest for entry in known.terms}

    async def until(self, predicate):
        """Wait until a predicate (plain or async) of this ledger holds."""

        async def holds():
            held = predicate(self)
            return await held if asyncio.iscoroutine(held) else held

        async with asyncio.timeout(WAIT_SECONDS):
            while not await holds():
                async with self._news:
                    try:
                        await asyncio.wait_for(self._news.wait(), 0.05)
                    except TimeoutError:
                        continue

    def held(self):
        """All records but keys and snapshot, by mail key."""
        slots = self.records.keys() - {SNAPSHOT_KEY, KEYS_KEY}
        return {slot: self.record(slot) for slot in slots}

    def _keep(self, blobs):
        self.blobs.update(blobs)
        self.blob_writes.append(dict(blobs))

    async def _demand_content(self, record, body):
        has_content = isinstance(record, DeltaHead) and body is not None
        references = decode_body(record, body).content if has_content else ()
        for reference in references:
            plain = await self.load(reference)
            assert plain is not None
            for chunk in read_root(plain).chunks if reference.kind == MANIFEST else ():
                assert await self.load(chunk) is not None

    async def _tell(self):
        async with self._news:
            self._news.notify_all()
