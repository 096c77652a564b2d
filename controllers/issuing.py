"""What is issued is signed, has a higher generation than all before, and is in the ledger first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from controllers.core.drafts import Draft, slot_of
from controllers.core.index import index_draft
from controllers.keys import CentreKeys, KeysUnusable
from controllers.ports import CentreRelay
from relay.ports import Clock
from schemas.identity import (
    INDEX_KEY,
    KEYS_KEY,
    ContentHash,
    Generation,
    KeyId,
    MailKey,
    TreeId,
    next_generation,
)
from schemas.records import (
    API_KEYS,
    DeltaHead,
    IndexRecord,
    KeyGrant,
    KeysRecord,
    Record,
    Source,
    decode_payload,
    encode_payload,
)
from schemas.signing import Envelope, Signer

SIGNING_KINDS = ("delta", "profile", "location", "node", "index", "ask")


class Issuer:
    """The one writer of the centre's ledger; it holds each record in force, by its slot.

    `told` hears of records as they come into force.
    """

    def __init__(self, relay: CentreRelay, signer: Signer, clock: Clock) -> None:
        self._relay = relay
        self._signer = signer
        self._clock = clock
        self._lock = asyncio.Lock()
        self._records: dict[MailKey, Record] = {}
        self._in_force: dict[MailKey, int] = {}
        self._index_kept: frozenset[ContentHash] = frozenset()
        self._highest = Generation(0)
        self.told: Callable[[Sequence[Record]], None] = lambda _: None
        for envelope in relay.ledger().values():
            self._remember(envelope.kind, decode_payload(envelope.kind, envelope.payload))

    @property
    def tree(self) -> TreeId:
        return self._relay.tree

    @property
    def records(self) -> Mapping[MailKey, Record]:
        """All that the ledger holds, tombstones included."""
        return self._records

    @property
    def in_force(self) -> Mapping[MailKey, int]:
        """The placements that are not deleted, with their generations."""
        return self._in_force

    async def issue(self, drafts: Sequence[Draft], signer: Signer | None = None) -> list[Record]:
        """Stamp, sign and publish these records, in order; raises BusBroken.

        They are in the ledger when this returns, and in force only then.
        """
        async with self._lock:
            return await self._publish(drafts, signer or self._signer)

    def raise_to(self, generation: int) -> None:
        """Issue nothing at or below this generation from now on."""
        self._highest = max(self._highest, Generation(generation))

    async def restore(self, envelope: Envelope, blobs: Mapping[ContentHash, bytes]) -> None:
        """Put a record that was issued before into the ledger again, byte for byte."""
        async with self._lock:
            await self._relay.publish(blobs, [envelope])
            record = decode_payload(envelope.kind, envelope.payload)
            self._remember(envelope.kind, record)
        self.told([record])

    def index_age_seconds(self) -> float | None:
        """How old the ledger's index is; None if there is none, or it lists something else."""
        held = self._records.get(INDEX_KEY)
        now_ms = self._clock.now().wall_ms
        if not isinstance(held, IndexRecord) or held.issued_ms > now_ms:
            return None
        draft, addresses = index_draft(self._relay.tree, self._in_force, now_ms)
        if draft.record.references != held.references:
            return None
        self._index_kept = addresses
        return (now_ms - held.issued_ms) / 1000

    async def issue_index(self) -> None:
        """Renew the index from the ledger."""
        async with self._lock:
            now_ms = self._clock.now().wall_ms
            draft, addresses = index_draft(
                self._relay.tree, self._in_force, now_ms, self._index_kept
            )
            await self._publish([draft], self._signer)
            self._index_kept = addresses

    async def _publish(self, drafts: Sequence[Draft], signer: Signer) -> list[Record]:
        issued = []
        for draft in drafts:
            self._highest = next_generation(self._highest, self._clock.now().wall_ms)
            record = draft.stamped(self._highest)
            issued.append((signer.seal(draft.kind, encode_payload(record), draft.body), record))
        blobs = {address: value for draft in drafts for address, value in draft.blobs.items()}
        await self._relay.publish(blobs, [envelope for envelope, _ in issued])
        for envelope, record in issued:
            self._remember(envelope.kind, record)
        records = [record for _, record in issued]
        self.told(records)
        return records

    def _remember(self, kind: str, record: Record) -> None:
        slot = slot_of(kind, record)
        self._records[slot] = record
        self._highest = max(self._highest, Generation(record.generation))
        if isinstance(record, DeltaHead):
            self._in_force.pop(slot, None)
            if not record.deleted:
                self._in_force[slot] = record.generation


async def first_start(
    issuer: Issuer, relay: CentreRelay, keys: CentreKeys, *, lost: bool = False
) -> None:
    """Issue the `keys` record and an empty index if the ledger has none; raises KeysUnusable.

    A second start finds both, and changes nothing. A ledger that is `lost` gets no index: an empty
    one would say that nothing is in force.
    """
    held = issuer.records.get(KEYS_KEY)
    if held is None and issuer.records:
        raise KeysUnusable(keys.path, "the ledger is another's", "use the ledger's own keys")
    if isinstance(held, KeysRecord):
        granted = {grant.key_id for grant in held.grants}
        ours = relay.ledger()[KEYS_KEY].verify(keys.tree, keys.root.public_key)
        if keys.signing.key_id not in granted or not ours:
            reason = "the ledger was signed with other keys"
            raise KeysUnusable(keys.path, reason, "restore the keys that belong to it")
    else:
        await issuer.issue([keys_draft(keys)], keys.root)
    if INDEX_KEY not in issuer.records and not lost:
        await issuer.issue_index()


def keys_draft(keys: CentreKeys) -> Draft:
    """The record of the keys in force: the signing key may sign all but `keys`."""
    grant = KeyGrant(KeyId(keys.signing.key_id), keys.signing.public_key, SIGNING_KINDS)
    record = KeysRecord(
        source=Source(API_KEYS, keys.tree, "", "keys"),
        generation=0,
        deleted=False,
        trace="",
        references=(),
        grants=(grant,),
    )
    return Draft("keys", record)
