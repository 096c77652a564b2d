"""What is issued is signed, has a higher generation than all before, and is in the ledger first."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from controllers.core.access.keys import (
    KeyChange,
    KeyRing,
    KeysRequest,
    changed_record,
    completed,
    renewed,
    request_of,
    signs_alone,
    unbelieved,
)
from controllers.core.blob_reading import BlobReading
from controllers.core.inventory.label_brakes import LabelBrakes
from controllers.core.ledger.ledger import Draft
from controllers.core.ledger.ledger_issuer import LedgerIssuer
from controllers.core.ledger.rivals import Rival, judge_shown, new_term
from controllers.core.ledger.start import read_stored_ledger
from controllers.core.ledger.weighing import Confirmations
from controllers.issuing.keys import CentreKeys, KeysUnusable
from controllers.spaces.space_marks import SpaceContinuity
from relay.core.records.trust import RootsRefused, Trust
from relay.ports import BusBroken, Clock, Dice
from relay.shell.publisher import CentrePublisher
from relay.waiting import some_at_once, until_due
from schemas.content.blobs import Reference
from schemas.records.records import KeysRecord, Record
from schemas.records.signed_records import SignedRecord
from schemas.records.signing import Envelope
from schemas.records.snapshots import TERM_BYTES
from schemas.values.identity import KEYS_KEY, ContentHash, KeyId, MailKey

READS_AT_ONCE = 64
REISSUED_AT_ONCE = 500

OnChange = Callable[[Sequence[Record]], None]
OnRival = Callable[[str, str, str], None]
"""Told (reason, about, detail) of a copy of this centre that runs elsewhere."""
T = TypeVar("T")


class SecondCentre(Exception):
    """Another centre of this tree, which began first, goes on: this one must not sign."""

    def __init__(self, time_ms: int) -> None:
        super().__init__(
            f"{_signed_at(time_ms)}, and began first: this one, of a copy of its data directory, "
            "ends; remove the copy, or stop the other one before you start this"
        )


class Issuer:
    """The one writer of the centre's ledger; it holds each record in force, by its key."""

    def __init__(
        self,
        relay: CentrePublisher,
        core: LedgerIssuer,
        keys: CentreKeys,
        clock: Clock,
        on_change: OnChange,
        on_rival: OnRival,
    ) -> None:
        self._relay = relay
        self._core = core
        # Those that sign now.
        self.keys = keys
        self.tree, self.ledger = relay.tree, core.ledger
        # All that is in force, and the keys.
        self.records: Mapping[MailKey, Record] = core.ledger.records
        self._clock = clock
        # They hear of records as they come into force, leave it, and are listed no more.
        self._listeners = [on_change]
        self._on_rival = on_rival
        self._lock = asyncio.Lock()
        # The next snapshot may be due earlier than was thought.
        self._changed = asyncio.Event()
        # Set when the next snapshot is in the store.
        self._signed = asyncio.Event()
        # What persons let go though nobody named it.
        self.confirmed = Confirmations()
        self.brakes = LabelBrakes(self.records, self.confirmed)
        # Up to where the ledger went at the start.
        self._known = core.ledger.highest
        # Whether the ledger held nothing at the start: it is a new tree's, or was lost.
        self.is_new = not core.ledger.records

    def continuity(self, identity: str) -> SpaceContinuity:
        """How far the ledger knows the space of this identity; "" is of none yet."""
        return SpaceContinuity(self._relay, identity)

    @property
    def lost(self) -> frozenset[MailKey]:
        """What the last snapshot lists and the ledger lost: it stays in force in the tree."""
        return frozenset(self._core.lost)

    @property
    def is_partial(self) -> bool:
        """Whether the ledger lost something at the start that nobody can name."""
        return self._core.is_partial

    def listen(self, on_change: OnChange) -> None:
        """Tell this one, too, as `on_change` is told from now on."""
        self._listeners.append(on_change)

    async def issue(self, drafts: Sequence[Draft], delete: Iterable[MailKey] = ()) -> list[Record]:
        """Stamp, sign and publish these records, in order; raises BusBroken.

        They are in the ledger when this returns, and in force only then. What is deleted with them
        goes at the same moment.
        """
        async with self._lock:
            publication = self._core.issue(drafts, self._clock.now())
            await self._relay.publish(publication.blobs, publication.signed)
            gone = self._core.published(publication, self._clock.now(), delete)
        self._told([*publication.records, *gone])
        return publication.records

    async def say_again(self, keys: Collection[MailKey]) -> None:
        """Issue what is in force under these keys anew, as it is; raises BusBroken.

        Whoever holds something newer of a term that is not known follows, and may lose by it.
        """
        async with self._lock:
            drafts = self._core.above_newer(keys)
        await self._reissue(drafts)

    async def delete(self, keys: Iterable[MailKey]) -> None:
        """Records are in force no longer; a snapshot lists them for a moment more."""
        async with self._lock:
            gone = self._core.delete(keys, self._clock.now())
        self._told(gone)

    async def dropped(self, keys: Collection[MailKey]) -> None:
        """Wait until no snapshot lists these any more, which are deleted."""
        while not self.ledger.deleted.keys().isdisjoint(keys):
            await self._signed.wait()

    async def begin(self) -> None:
        """Issue what a new tree needs, or one whose store lost what nobody can name.

        Raises KeysUnusable, if the ledger was signed with other keys, and BusBroken.
        """
        kept = self._relay.ledger().envelopes()
        await self._begin_keys(kept.get(KEYS_KEY))
        await self._sign_anew(kept)
        await self._reissue(self._core.unvouched_drafts())

    async def run(self) -> None:
        """Sign snapshots as they are due, and issue above what is shown, until cancelled.

        Raises BusBroken.
        """
        async with asyncio.TaskGroup() as group:
            group.create_task(self._sign_snapshots(), name="snapshots")
            group.create_task(self._follow_shown(), name="shown snapshots")

    def withdraw(self, term: str) -> None:
        """What this term (16 hex digits) issued and no snapshot lists goes everywhere."""
        self._core.withdraw(term, self._clock.now())
        self._changed.set()

    def forget_lost(self) -> int:
        """Let go of what the last snapshot lists and the ledger lost; how many records."""
        count = self._core.forget_lost(self._clock.now())
        self._changed.set()
        return count

    def pause(self, name: str) -> None:
        """Drop and settle nothing until `resume`, for a minute at most: an apply is under way."""
        self._core.snapshots.pause(name, now=self._clock.now().seconds)

    def resume(self, name: str) -> None:
        self._core.snapshots.resume(name)
        self._changed.set()

    def assert_invariants(self) -> None:
        """Assert that ledger and snapshots agree; not while something is being issued."""
        self._core.assert_invariants()

    # Keys.

    def signed_by(self) -> Counter[KeyId]:
        """How much of what is in force each key signed, the snapshot included."""
        return Counter(self._relay.ledger().key_ids())

    async def change_keys(self, change: KeyChange) -> KeysRequest | None:
        """Put a change of keys in force; what lacks signatures, if the roots are elsewhere.

        Raises KeysRefused, BusBroken.
        """
        async with self._lock:
            ring, made = self.keys.ring, change.made
            if change.signing is not None:
                made = (*made, change.signing)
            alone, stamp = signs_alone(ring, change), self._core.stamp(self._clock.now())
            record = changed_record(ring, change, stamp, set(self.signed_by()), alone=alone)
            request = request_of(ring, record, made)
            if not alone:
                self.keys.keep(ring.prepare(*made))
                return request
            await self._put_keys(completed(ring.prepare(*made), request, stamp.generation))
        await self._sign_anew()
        return None

    async def complete_keys(self, request: KeysRequest) -> None:
        """Put a request in force that others signed.

        Raises KeysRefused, RootsRefused while signatures are missing, BusBroken.
        """
        async with self._lock:
            ring = completed(self.keys.ring, request, self.ledger.highest)
            await self._put_keys(ring)
        await self._sign_anew()

    async def _begin_keys(self, kept: Envelope | None) -> None:
        """Have the ledger say which keys are in force; raises KeysUnusable, BusBroken."""
        keys, held = self.keys, self.records.get(KEYS_KEY)
        ours = keys.ring.record
        if held is None and self.records:
            if ours is None or self.signed_by().keys() - {it.key_id for it in ours.grants}:
                reason = "the ledger is another's"
                raise KeysUnusable(keys.path, reason, "use the ledger's own keys")
            async with self._lock:
                await self._put_keys(keys.ring)
            # The node believes nothing that it read before these.
            raise BusBroken("the ledger had lost the keys that sign it: it starts again with them")
        # What this very run issued the relay may not have looked at yet.
        if isinstance(held, KeysRecord) and kept and not self._belong(held, kept):
            reason = "the ledger was signed with other keys"
            raise KeysUnusable(keys.path, reason, "restore the keys that belong to it")
        async with self._lock:
            if ours is None:
                stamp = self._core.stamp(self._clock.now())
                record = changed_record(keys.ring, KeyChange(), stamp, (), alone=True)
                request = request_of(keys.ring, record)
                await self._put_keys(completed(keys.ring, request, stamp.generation))
            elif held is None or held.generation < ours.generation:
                await self._put_keys(keys.ring)

    def _belong(self, held: KeysRecord, kept: Envelope) -> bool:
        """Whether a ledger's keys are these, or some that came before them."""
        ring, trust = self.keys.ring, Trust(self.tree, self.keys.roots)
        ours = ring.record
        try:
            trust.recall(kept)
        except RootsRefused:
            return False
        if ours is not None:
            return held.generation <= ours.generation
        return ring.signing.key_id in {grant.key_id for grant in held.grants}

    async def _put_keys(self, ring: KeyRing) -> None:
        """Keep a ring, then publish its message: a crash between leaves the rest to a start."""
        message, record = ring.message, ring.record
        assert message is not None
        assert record is not None
        if ring is not self.keys.ring:
            self.keys.keep(ring)
        await self._relay.publish({}, [SignedRecord(message, record)])
        self._core.keys_published(record, ring.signing, self._clock.now())
        self._changed.set()

    async def _renew_keys(self) -> None:
        """Issue the keys anew; roots that are elsewhere leave them as they are."""
        async with self._lock:
            ring = renewed(self.keys.ring, self._core.stamp(self._clock.now()))
            if ring is not None:
                await self._put_keys(ring)

    async def _sign_anew(self, kept: Mapping[MailKey, Envelope] | None = None) -> None:
        """Issue anew what a key signed that may not sign it any more; `kept` is the ledger."""
        record = self.keys.ring.record
        if kept is None:
            kept = self._relay.ledger().envelopes()
        if record is not None:
            await self._reissue(self._core.again(unbelieved(record, self.records, kept)))

    async def _sign_snapshots(self) -> None:
        while True:
            await self._until_due()
            async with self._lock:
                snapshot = self._core.sign_snapshot(self._clock.now())
                await self._relay.publish_snapshot(
                    snapshot.blobs, snapshot.record, snapshot.envelope, snapshot.dropped
                )
                gone = self._core.snapshot_published(snapshot)
            self._signed.set()
            self._signed = asyncio.Event()
            self._told(gone)

    async def _until_due(self) -> None:
        while self._core.snapshots.due > self._clock.now().seconds:
            self._changed.clear()
            await until_due(self._changed, self._clock, self._core.snapshots.due)

    async def _follow_shown(self) -> None:
        """Go above a snapshot of this tree that someone has and the ledger lost."""
        while True:
            said = await self._relay.shown()
            match judge_shown(said, self._core.ledger.term, self._known):
                case Rival.GOES_ON:
                    raise SecondCentre(said.time_ms)
                case Rival.MUST_END:
                    what = "stop that one: it is a copy of this centre, and began later"
                    self._on_rival("SecondCentre", said.term, f"{_signed_at(said.time_ms)}; {what}")
                case Rival.NONE:
                    pass
            if self._core.raise_above(said.rank.generation, self._clock.now()):
                await self._renew_keys()
                await self._reissue(self._core.issued_in_this_term())

    async def _reissue(self, drafts: Sequence[Draft]) -> None:
        for at in range(0, len(drafts), REISSUED_AT_ONCE):
            part = drafts[at : at + REISSUED_AT_ONCE]
            # What was deleted or changed meanwhile is not brought back.
            held = [draft for draft in part if self.records.get(draft.slot) is draft.record]
            await self.issue(held)

    def _told(self, records: Sequence[Record]) -> None:
        self._changed.set()
        if records:
            self.brakes.changed(records)
            for listener in self._listeners:
                listener(records)


async def open_issuer(
    relay: CentrePublisher,
    keys: CentreKeys,
    clock: Clock,
    dice: Dice,
    on_change: OnChange,
    on_rival: OnRival,
) -> Issuer:
    """The issuer of a new term over what the relay's ledger holds; raises BusBroken."""
    stored = await read_all(relay, read_stored_ledger(relay.ledger()))
    term = new_term(clock.now().wall_ms, dice.entropy(TERM_BYTES))
    core = stored.begin(term, keys.signing, clock.now())
    return Issuer(relay, core, keys, clock, on_change, on_rival)


def _signed_at(time_ms: int) -> str:
    moment = dt.datetime.fromtimestamp(time_ms // 1000, dt.UTC)
    return f"another centre of this tree signed at {moment:%F %T} UTC"


async def load_all(relay: CentrePublisher, wanted: Sequence[Reference]) -> dict[ContentHash, bytes]:
    """The plain bytes of those of these blobs that are kept, by address; raises BusBroken."""
    loaded = await some_at_once(wanted, relay.load, READS_AT_ONCE)
    pairs = zip(wanted, loaded, strict=True)
    return {reference.address: plain for reference, plain in pairs if plain is not None}


async def read_all(relay: CentrePublisher, reading: BlobReading[T]) -> T:
    """Load what a reading asks for, until it is done; raises BusBroken."""
    try:
        wanted = next(reading)
        while True:
            wanted = reading.send(await load_all(relay, wanted))
    except StopIteration as end:
        result: T = end.value
        return result
