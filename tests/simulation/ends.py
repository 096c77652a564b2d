"""The two ends of one channel: as little of a node as a writer and a reader need round them.

Who issues is the controllers' issuer of snapshots; what a child may take, its judge decides. What
is taken away is noted with the snapshot under which it went.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from controllers.core.ledger.snapshots import SnapshotIssuer
from relay.core.effects import Effect, WriteMail
from relay.core.events import MailArrived
from relay.core.link.child import RENEWAL_MS
from relay.core.link.reader import MailboxReader, Reading
from relay.core.link.session import ChildSession, Identity, ParentSession, Presence, SessionEvent
from relay.core.link.writer import Comparison, MailboxWriter, SlotForm, Supply
from relay.core.records.accepted import AcceptedRecord, Version, read_record
from relay.core.records.judge import REACH_SECONDS_MAX, SnapshotJudge, VerifiedSnapshot
from relay.core.records.snapshot import ListedAt, SnapshotInterest
from relay.core.records.verdict import RecordAcceptance
from schemas.content import blobs
from schemas.content.blobs import Reference
from schemas.records.records import DeltaBody, DeltaHead, Gate, Source, encode_payload
from schemas.records.signing import Envelope, decode_envelope
from schemas.records.snapshots import NO_SNAPSHOT, SnapshotRank, Term, encode, read_snapshot
from schemas.reports.link import Cursor, Hello, Repair, Welcome
from schemas.values.groups import API_PLACEMENT
from schemas.values.identity import SNAPSHOT_KEY, ContentHash, KeyId, MailKey, random_id
from tests.simulation.channel import Channel

START_MS = 1_750_000_000_000
CHILD = "child"
_KEY_ID = KeyId(random_id(b"a key's id      "))
_ARM = Reference(blobs.MANIFEST, ContentHash("0" * 64), 1)
_REWRITE_SECONDS = 60.0


class Issuer:
    """The truth: what is in force, what the child should have of it, and all snapshots."""

    def __init__(self) -> None:
        self.now = 0.0
        self.ledger: dict[MailKey, AcceptedRecord] = {}
        self.wishes: dict[MailKey, SlotForm] = {}
        self.stored: dict[ContentHash, bytes] = {}
        # By snapshot: what it lists, what the child was to have in full then, and its settled.
        self.listings: dict[int, dict[MailKey, int]] = {}
        self.in_full: dict[int, dict[MailKey, int]] = {}
        self.newest: VerifiedSnapshot | None = None
        self._term = Term(b"the term")
        self._issuer = SnapshotIssuer(self._term, now=0.0)
        self._highest = 0
        self._dropping: dict[bytes, MailKey] = {}

    def put(self, name: str, wish: SlotForm) -> MailKey:
        """Issue a new generation of a placement, of which the child should have so much."""
        generation, now = self._next(), self.now
        body = DeltaBody((_ARM,), (Gate(_ARM),)).encode()
        source = Source(API_PLACEMENT, "space", "", name)
        hashed = hashlib.sha256(body).digest()
        loss = generation if wish is not SlotForm.FULL else 0
        head = DeltaHead(source, generation, self._term.hex(), "", hashed, (), loss)
        envelope = Envelope("delta", _KEY_ID, encode_payload(head), bytes(64), body)
        _, accepted = read_record(envelope.encode())
        self._issuer.issued(accepted.entry_key, generation, takes_away=True, now=now)
        self.ledger[accepted.key], self.wishes[accepted.key] = accepted, wish
        self._dropping.pop(accepted.entry_key, None)
        return accepted.key

    def delete(self, key: MailKey) -> None:
        entry = self.ledger[key].entry_key
        self._issuer.deleted(entry, now=self.now)
        self._dropping[entry] = key

    def sign(self) -> bool:
        """Sign the snapshot that is due; whether there was one."""
        if self._issuer.due > self.now:
            return False
        generation = self._next()
        issued = self._issuer.sign(generation, now=self.now, now_ms=START_MS)
        for blob in issued.blobs:
            self.stored |= blob.values
        for entry in issued.dropped:
            self.ledger.pop(self._dropping.pop(entry), None)
        envelope = Envelope("snapshot", _KEY_ID, encode(issued.record), bytes(64), None)
        self.newest = verified(envelope.encode())
        self.listings[generation] = {k: a.generation for k, a in self.ledger.items()}
        self.in_full[generation] = {
            key: a.generation for key, a in self.ledger.items() if self.wishes[key] is SlotForm.FULL
        }
        return True

    def _next(self) -> int:
        self._highest = max(self._highest + 1, START_MS + int(self.now * 1000))
        return self._highest


def verified(data: bytes) -> VerifiedSnapshot:
    envelope = decode_envelope(data)
    record = read_snapshot(envelope.payload)
    version = Version(record.generation, 0, full=True)
    return VerifiedSnapshot(record, data, envelope.payload_hash, version)


@dataclass
class Parent:
    """The side that writes. What it holds may be older than the truth, after a restore."""

    truth: Issuer
    channel: Channel
    held: dict[MailKey, AcceptedRecord] = field(default_factory=dict)
    snapshot: VerifiedSnapshot | None = None
    runs: int = 0
    # How often it gave an answer that makes work: bounded once faults stop.
    repairs: int = 0

    def __post_init__(self) -> None:
        self.start()

    # What the writer asks of who owns it.

    def record(self, key: MailKey) -> AcceptedRecord | None:
        return self.held.get(key)

    def wish(self, _child: str, record: AcceptedRecord, *, has: SlotForm) -> SlotForm:
        wish = self.truth.wishes.get(record.key, SlotForm.NOTHING)
        return SlotForm.NOTHING if wish is SlotForm.HEAD and has is SlotForm.NOTHING else wish

    def supply(self, _key: MailKey) -> Supply:
        return Supply.HERE

    def carried(self, _key: MailKey) -> tuple[tuple[ContentHash, bytes], ...]:
        return ()

    # Its life.

    def start(self) -> None:
        self.runs += 1
        self.out: list[Effect] = []
        self.writer = MailboxWriter(CHILD, self, self.out, lambda *_, **__: None)
        for kept in self.channel.mailbox.headers():
            self.writer.restore(kept)
        self.session = ChildSession(self.truth.now, Presence.SILENT)
        self.asked_to_read, self.rewritten = False, -_REWRITE_SECONDS
        for key in self.held:
            self.writer.mark(key)
        self.offer(due=True)
        self.flush()

    @property
    def incarnation(self) -> str:
        return f"parent {self.runs}"

    def learn(self) -> None:
        """Take over what is true by now."""
        for key in [*self.held, *self.truth.ledger]:
            if self.held.get(key) is not self.truth.ledger.get(key):
                found = self.truth.ledger.get(key)
                self.held.pop(key, None)
                if found is not None:
                    self.held[key] = found
            self.writer.mark(key)
        if self.truth.newest is not None and self.truth.newest is not self.snapshot:
            self.snapshot = self.truth.newest
            self.offer(due=False)
        self.flush()

    def offer(self, *, due: bool) -> None:
        if self.snapshot is not None:
            age = self.snapshot.generation - self.writer.snapshot
            self.writer.offer(self.snapshot, (), due=due or age >= RENEWAL_MS)

    def flush(self) -> None:
        for _ in range(8):
            self.writer.flush(self.truth.now)
            if not self.out:
                return
            self.channel.carry_out(self.out, self._written)
        raise AssertionError("a writer never comes to rest")

    def _written(self, write: WriteMail, sequence: int) -> None:
        self.writer.written(write.key, sequence)

    def hello(self, hello: Hello) -> Welcome:
        """Answer a hello, with the ladder of repair: nothing, read again, written anew."""
        identity = self.session.identify(hello)
        assert identity is not Identity.SECOND
        if identity is Identity.SUPERSEDES:
            self.session.begin(hello, self.truth.now)
            self.writer.renew()
        for key in hello.wants:
            self.writer.want(key)
        self.flush()
        known = hello.parent_run == self.incarnation
        known = known and hello.sequence <= self.writer.last_sequence
        found, through = Comparison.EQUAL, self.writer.end_for(hello.sequence)
        if known:
            place = self.writer.place(hello.sequence)
            found = self.writer.compare(place, hello.snapshot, hello.digest)
        else:
            reached = SnapshotRank(hello.newest_reign, hello.snapshot)
            read = self.writer.read_through(hello.held, reached, hello.wants)
            found = Comparison.UNKNOWN if read is None else Comparison.EQUAL
            through = self.writer.end if read is None else read
        repair = Repair.NONE
        if found is Comparison.EQUAL:
            self.asked_to_read = False
        elif not known or (found is Comparison.DIFFERENT and not self.asked_to_read):
            repair, self.asked_to_read = Repair.REREAD, known
        elif found is Comparison.DIFFERENT and self.truth.now >= self.rewritten + _REWRITE_SECONDS:
            self.rewritten, self.asked_to_read = self.truth.now, False
            self.writer.rewrite()
            self.flush()
        self.repairs += repair is not Repair.NONE
        data = self.snapshot.data if self.snapshot is not None else b""
        return Welcome(self.incarnation, hello.run, through, data, repair)


@dataclass(frozen=True)
class Disk:
    """What a child kept."""

    records: dict[MailKey, AcceptedRecord]
    content: dict[MailKey, int]
    removals: dict[MailKey, int]
    cursor: Cursor | None
    snapshot: bytes


class Child:
    """The side that reads: what it holds, and what of it is in its cluster."""

    def __init__(self, truth: Issuer, channel: Channel, taken: Callable[..., None]) -> None:
        self.truth, self.channel = truth, channel
        # Told of each record taken, and of each thing removed, with the snapshot it went under.
        self.taken = taken
        self.runs = 0
        self.start(Disk({}, {}, {}, None, b""))

    # Its life.

    def start(self, disk: Disk) -> None:
        self.runs += 1
        self.records = dict(disk.records)
        self.content, self.removals = dict(disk.content), dict(disk.removals)
        self.reader = MailboxReader(disk.cursor)
        self.session = ParentSession()
        self.judge = SnapshotJudge(self.records, self._interest)
        # What it let go of, and told its parent to be gone.
        self.gone: dict[MailKey, None] = {}
        if disk.snapshot:
            self.judge.restore(verified(disk.snapshot))
            self._read_snapshots()
            if self.judge.candidate is not None:
                self.judge.reach()
        for key, accepted in self.records.items():
            self._holds(key, accepted)
        self._count()
        if self.channel.linked:
            self.session.happened(SessionEvent.LINKED, self.truth.now)

    def disk(self) -> Disk:
        reached = self.judge.reached
        rank = reached.rank if reached is not None else NO_SNAPSHOT
        cursor = self.reader.cursor((NO_SNAPSHOT, 0), rank, has_memory=reached is not None)
        data = reached.data if reached is not None else b""
        return Disk(dict(self.records), dict(self.content), dict(self.removals), cursor, data)

    def linked(self, *, up: bool) -> None:
        self.session.happened(SessionEvent.LINKED if up else SessionEvent.UNLINKED, self.truth.now)
        if not up:
            self.reader.link_lost()

    def hello(self) -> Hello | None:
        """What is to be said now, if anything is."""
        due = self.session.due
        if due is None or due > self.truth.now:
            return None
        self.session.hello_sent(self.truth.now)
        reader, reached = self.reader, self.judge.reached
        return Hello(
            f"run {self.runs}",
            "home",
            reader.incarnation,
            reader.judged,
            reader.digest,
            reached.generation if reached else 0,
            wants=tuple(self._outdated()) if reader.caught_up else (),
            held=b"" if self.session.welcomed else reader.held,
        )

    def welcomed(self, welcome: Welcome) -> None:
        if welcome.run != f"run {self.runs}":
            return
        self.session.happened(SessionEvent.WELCOME, self.truth.now)
        if welcome.snapshot:
            self.judge.offer(verified(welcome.snapshot), None, self.truth.now)
        at = self.reader.begin(welcome)
        if at is not None:
            self.channel.read_from(at)
        self._look()

    def arrived(self, event: MailArrived) -> None:
        if event.reading != self.channel.reading or self.reader.state is Reading.NONE:
            return
        if event.key == SNAPSHOT_KEY:
            self.judge.offer(verified(event.data), event.sequence, self.truth.now)
        else:
            self._read_snapshots()
            self._take(event)
        self.reader.arrived(event)
        self._look()
        self.channel.acknowledged = max(self.channel.acknowledged, self.reader.judged)

    def passed(self) -> None:
        """Time passed."""
        self.judge.replace_stuck_candidate(self.truth.now)
        self._look()

    # What it makes of mail and snapshots.

    def _take(self, event: MailArrived) -> None:
        _, accepted = read_record(event.data)
        key, held = accepted.key, self.records.get(accepted.key)
        if held is not None and held.generation > accepted.generation:
            return
        new = held is None or held.generation < accepted.generation
        if new:
            admission = self.judge.admit(accepted.entry_key, accepted.generation)
            if admission is RecordAcceptance.UNREAD:
                self.reader.parked.put(event)
                return
            if admission is RecordAcceptance.SUPERSEDED:
                return
            self.taken("taken", key, accepted.generation, self.judge.newest)
            self.judge.accepted(accepted)
        self.records[key] = accepted
        self._holds(key, accepted)
        if accepted.full:
            self.content[key] = accepted.generation
            self.removals.pop(key, None)
        elif key in self.content:
            self.removals[key] = accepted.generation

    def _holds(self, key: MailKey, accepted: AcceptedRecord) -> None:
        self.reader.put_version(key, accepted.version)

    def _look(self) -> None:
        """Reach the candidate if it can be, and do what is settled by then."""
        self._read_snapshots()
        for waiting in self.reader.parked:
            self.reader.parked.forget(waiting)
            self._take(waiting)
        candidate = self.judge.candidate
        if candidate is None or candidate.standings is None or candidate.sequence is None:
            return
        if self.reader.judged < candidate.sequence or not self.reader.caught_up:
            return
        waited = self.truth.now - candidate.since >= REACH_SECONDS_MAX
        if (candidate.standings.outdated or self.reader.parked) and not waited:
            return
        standings = self.judge.reach()
        reached = self.judge.reached
        assert reached is not None
        self.taken("reached", SNAPSHOT_KEY, reached.generation, reached)
        for key, generation in list(standings.dropped.items()):
            if key in self.records and self.records[key].generation == generation:
                self._remove(key, reached)
                del self.records[key]
                self.reader.forget(key)
                self.judge.forget(key)
        for key, cause in list(self.removals.items()):
            if cause <= reached.record.settled:
                self._remove(key, reached)
                del self.records[key]
                self.reader.forget(key)
                self.judge.forget(key)
                self.gone[key] = None
        self._count()

    def _remove(self, key: MailKey, reached: VerifiedSnapshot) -> None:
        self.removals.pop(key, None)
        generation = self.content.pop(key, None)
        if generation is not None:
            self.taken("removed", key, generation, reached)

    def _count(self) -> None:
        reached, standings = self.judge.reached, self.judge.standings
        if reached is not None:
            apart = {**standings.outdated, **standings.orphaned}
            held = [(k, self.records[k].version) for k in apart if k in self.records]
            self.reader.reached(reached.generation, held)

    def _read_snapshots(self) -> None:
        while missing := self.judge.read_more():
            for reference in missing:
                value = self.truth.stored[reference.address]
                self.judge.take(reference.address, blobs.open_value(reference, value))

    def _outdated(self) -> Iterable[MailKey]:
        newest = self.judge.newest
        if newest is None:
            return
        for key, accepted in self.records.items():
            listing = self.judge.listing(accepted.entry_key)
            if isinstance(listing, ListedAt) and listing.generation > accepted.generation:
                yield key

    def _interest(self) -> SnapshotInterest:
        return SnapshotInterest([accepted.entry_key for accepted in self.records.values()])

    def assert_invariants(self) -> None:
        self.reader.assert_invariants()
        self.judge.assert_invariants()
