"""What is issued is signed, has a higher generation than all before, and is in the ledger first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from controllers.core.drafts import Draft
from controllers.core.ledger import Ledger
from controllers.keys import CentreKeys, KeysUnusable
from controllers.ports import CentreRelay
from relay.ports import Clock
from schemas.identity import (
    INDEX_KEY,
    KEYS_KEY,
    ContentHash,
    KeyId,
    MailKey,
    TreeId,
)
from schemas.records import (
    API_KEYS,
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
        self.told: Callable[[Sequence[Record]], None] = lambda _: None
        self.ledger = Ledger(relay.tree, relay.ledger().values())

    @property
    def tree(self) -> TreeId:
        return self._relay.tree

    @property
    def records(self) -> Mapping[MailKey, Record]:
        """All that the ledger holds, tombstones included."""
        return self.ledger.records

    @property
    def in_force(self) -> Mapping[MailKey, int]:
        """The placements that are not deleted, with their generations."""
        return self.ledger.in_force

    async def issue(self, drafts: Sequence[Draft], signer: Signer | None = None) -> list[Record]:
        """Stamp, sign and publish these records, in order; raises BusBroken.

        They are in the ledger when this returns, and in force only then.
        """
        async with self._lock:
            return await self._publish(drafts, signer or self._signer)

    async def restore(self, envelope: Envelope, blobs: Mapping[ContentHash, bytes]) -> None:
        """Put a record that was issued before into the ledger again, byte for byte."""
        async with self._lock:
            await self._relay.publish(blobs, [envelope])
            record = decode_payload(envelope.kind, envelope.payload)
            self.ledger.remember(envelope.kind, record, bare=envelope.body is None)
        self.told([record])

    def index_age_seconds(self) -> float | None:
        """How old the ledger's index is; None if there is none, or it lists something else."""
        return self.ledger.index_age_seconds(self._clock.now().wall_ms)

    async def issue_index(self) -> None:
        """Renew the index from the ledger."""
        async with self._lock:
            draft, addresses = self.ledger.index(self._clock.now().wall_ms)
            await self._publish([draft], self._signer)
            self.ledger.index_issued(addresses)

    def forget_old(self) -> None:
        """Let go of old tombstones that the relay has let go of: no mailbox holds them any more."""
        old = self.ledger.old_tombstones(self._clock.now().wall_ms)
        self.ledger.forget([slot for slot in old if self._relay.summary(slot) is None])

    async def _publish(self, drafts: Sequence[Draft], signer: Signer) -> list[Record]:
        records = self.ledger.stamp(drafts, self._clock.now().wall_ms)
        issued = [
            signer.seal(draft.kind, encode_payload(record), draft.body)
            for draft, record in zip(drafts, records, strict=True)
        ]
        blobs = {address: value for draft in drafts for address, value in draft.blobs.items()}
        await self._relay.publish(blobs, issued)
        for draft, record in zip(drafts, records, strict=True):
            self.ledger.remember(draft.kind, record)
        self.told(records)
        return records


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
        kept = relay.ledger().get(KEYS_KEY)
        # What this very run issued the relay may not have looked at yet.
        ours = kept is None or kept.verify(keys.tree, keys.root.public_key)
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
