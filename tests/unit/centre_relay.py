"""A centre's relay for tests: an honest ledger and blob store in memory, which send nothing."""

import asyncio

from controllers.core.drafts import slot_of
from schemas.blobs import INDEX_LIST, MANIFEST, open_value, parts_of
from schemas.chunks import read_index_chunk, read_manifest_chunk, read_root
from schemas.identity import INDEX_KEY
from schemas.records import DeltaHead, decode_payload

ROOTS = (MANIFEST, INDEX_LIST)
WAIT_SECONDS = 60


class LedgerRelay:
    """Keeps what is published, and refuses old generations and records without their blobs."""

    def __init__(self, tree):
        self.tree = tree
        self.blobs = {}
        self.records = {}
        self.history = []
        self.blob_writes = []
        self.summaries = {}
        self.returned = {}
        self._news = asyncio.Condition()
        self._changed = set()

    def ledger(self):
        return dict(self.records)

    async def publish(self, blobs, envelopes):
        self.blobs.update(blobs)
        self.blob_writes.append(dict(blobs))
        for envelope in envelopes:
            record = decode_payload(envelope.kind, envelope.payload)
            slot = slot_of(envelope.kind, record)
            held = self.record(slot)
            assert held is None or record.generation > held.generation
            for reference in record.references:
                plain = await self.load(reference)
                assert plain is not None
                for chunk in read_root(plain).chunks if reference.kind in ROOTS else ():
                    assert await self.load(chunk) is not None
            self.records[slot] = envelope
            self.history.append(record)
        async with self._news:
            self._news.notify_all()

    async def load(self, reference):
        value = self.blobs.get(reference.address)
        if value is None:
            return None
        parts = {part.address: self.blobs[part.address] for part in parts_of(reference, value)}
        return open_value(reference, value, parts)

    def lacks(self, addresses):
        return frozenset(addresses) - self.blobs.keys()

    def summary(self, key):
        return self.summaries.get(key)

    def results(self, key):
        return self.returned.get(key, ())

    async def summaries_changed(self):
        async with self._news:
            await self._news.wait_for(lambda: self._changed)
            changed, self._changed = frozenset(self._changed), set()
            return changed

    async def report(self, key, summary, results=()):
        """Say that the tree reported this of a placement."""
        async with self._news:
            self.summaries[key], self.returned[key] = summary, results
            self._changed.add(key)
            self._news.notify_all()

    def record(self, slot):
        envelope = self.records.get(slot)
        return None if envelope is None else decode_payload(envelope.kind, envelope.payload)

    def delta(self, name):
        for slot in self.records:
            record = self.record(slot)
            if isinstance(record, DeltaHead) and record.source.name == name:
                return record
        return None

    def deltas(self):
        return [record for record in self.history if isinstance(record, DeltaHead)]

    async def entries(self, head):
        """The manifest of a delta, by object name."""
        root = read_root(await self.load(head.references[0]))
        chunks = [read_manifest_chunk(await self.load(chunk)) for chunk in root.chunks]
        return {entry.name: entry for chunk in chunks for entry in chunk}

    async def index(self):
        """The placements in force, as the last index lists them."""
        root = read_root(await self.load(self.record(INDEX_KEY).root))
        listed = {}
        for chunk in root.chunks:
            listed |= read_index_chunk(await self.load(chunk))
        return listed

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
