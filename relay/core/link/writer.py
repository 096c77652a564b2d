"""A child's mailbox, as its parent writes it: a map that is made equal to a target.

Slots are written in any order, each once the content that it names is here. Nothing is taken away
by a slot: removals wait for a snapshot, and that is written when the mailbox holds the target of
all records up to it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator
from enum import Enum, auto
from heapq import heappop, heappush
from typing import Protocol

from relay.core.effects import ClearMail, Effect, WriteMail
from relay.core.events import MailSlot
from relay.core.link.digest import MailDigest
from relay.core.records.accepted import AcceptedRecord, Version, awaits_upgrade
from relay.core.records.judge import VerifiedSnapshot
from schemas.records.records import slot_term
from schemas.records.snapshots import SnapshotRank
from schemas.values.identity import KEYS_KEY, SNAPSHOT_KEY, ContentHash, MailKey
from schemas.values.value import Value

CHECKPOINTS_MAX = 64
CHECKPOINT_SECONDS = 60.0


class SlotForm(Enum):
    """What a slot should hold of a record."""

    NOTHING = auto()
    # A delta or Location without its body: it names no content, and says no labels.
    HEAD = auto()
    FULL = auto()


class Supply(Enum):
    """Whether the content that a record names is in the node's own store."""

    HERE = auto()
    COMING = auto()
    # It could not be had for a minute: the slot keeps what it has, and counts as the target.
    REFUSED = auto()


class Comparison(Enum):
    """A child's digest beside what its parent has for the same place."""

    EQUAL = auto()
    DIFFERENT = auto()
    # The child is at a place of which the parent kept no digest.
    UNKNOWN = auto()


class HeadListener(Protocol):
    """Hears that a child's slot holds the head of a delta, or something else, or nothing."""

    def __call__(self, child: str, key: MailKey, /, *, is_head: bool) -> None: ...


class Target(Protocol):
    """What the node that owns the mailboxes wishes them to hold."""

    def record(self, key: MailKey) -> AcceptedRecord | None:
        """The record that is held under the key."""
        ...

    def wish(self, child: str, record: AcceptedRecord, *, has: SlotForm) -> SlotForm:
        """What a child should have of it, which `has` so much of it, or asks for a head."""
        ...

    def supply(self, key: MailKey) -> Supply:
        """How far the content is that the record names; the first look has it fetched."""
        ...

    def carried(self, key: MailKey) -> tuple[tuple[ContentHash, bytes], ...]:
        """Small stored blobs that go along with the record."""
        ...


class Slot(Value, frozen=True, gc=False):
    """The last message in one slot. There is one for each child and record, so it is small."""

    # 0 while the first write is not confirmed.
    sequence: int
    version: Version


class _Checkpoint(Value, frozen=True, gc=False):
    at: float
    sequence: int
    snapshot: int
    digest: int


class MailboxWriter:
    """One child's mailbox. `mark` what may be another, `flush`, take in what was `written`."""

    def __init__(
        self, child: str, target: Target, out: list[Effect], note_head: HeadListener
    ) -> None:
        """`note_head` hears of each slot that holds a head, or does not any more."""
        self.child = child
        self.slots: dict[MailKey, Slot] = {}
        # Where the mailbox ends.
        self.last_sequence = 0
        # Whether the child speaks an older wire: what it may not read stays as the slots have it.
        self.holds_back = False
        # Heads of deltas: slots that the child may be done with.
        self.heads: dict[MailKey, None] = {}
        # Where the last message lies that is there; None: to be looked for.
        self._end: int | None = 0
        # What is to be compared with the target, and the own mail that is the cause.
        self._dirty: dict[MailKey, int] = {}
        # Writes that are not confirmed, with their generations and causes.
        self._in_flight: dict[MailKey, tuple[int, int]] = {}
        # Deltas whose content is on its way, with their generations.
        self._awaiting: dict[MailKey, int] = {}
        # Deltas whose content could not be had: the slot counts as the target until it comes.
        self._refused: dict[MailKey, None] = {}
        # Keys of which the child is to have a head at least: it asked for them.
        self._wanted: dict[MailKey, None] = {}
        self._target = target
        self._out = out
        self._note_head = note_head
        # Generations of writes that take something away, not yet covered by a snapshot's `settled`.
        self._uncovered: list[int] = []
        # The newest snapshot that the node reached, and whether it is to be written in any case.
        self._reached: VerifiedSnapshot | None = None
        self._snapshot_due = False
        # What the mailbox has lacked since its first snapshot is due: an edge without memory lets
        # go of what is not there before it.
        self._lacked: set[MailKey] | None = None
        # Of the snapshot in the mailbox; of one that a former run wrote it is not known.
        self._snapshot_reign = 0
        self._excluded: tuple[tuple[MailKey, Version], ...] = ()
        self._digest = MailDigest()
        # The digest of all that a former run left here, and where that ended.
        self._left: tuple[bytes, int] | None = None
        self._checkpoints: deque[_Checkpoint] = deque(maxlen=CHECKPOINTS_MAX)

    @property
    def awaits_content(self) -> bool:
        return bool(self._awaiting)

    def awaits(self, key: MailKey) -> bool:
        """Whether it waits for the content of this delta."""
        return key in self._awaiting

    @property
    def load(self) -> int:
        """How many writes wait or are on their way."""
        return len(self._dirty) + len(self._in_flight)

    @property
    def end(self) -> int:
        """Where the last message lies that is there; what was written after it was erased."""
        if self._end is None:
            self._end = max((slot.sequence for slot in self.slots.values()), default=0)
        return self._end

    def end_for(self, sequence: int) -> int:
        """Where it ends for who read up to here: what lay last may have been erased."""
        return max(self.end, min(sequence, self.last_sequence))

    def place(self, sequence: int) -> int:
        """How far a child has come that read up to here: it has read all, if nothing follows."""
        return self.last_sequence if sequence >= self.end else sequence

    @property
    def snapshot(self) -> int:
        """The generation of the snapshot in the mailbox, 0 for none."""
        slot = self.slots.get(SNAPSHOT_KEY)
        return max(slot.version.generation, 0) if slot is not None else 0

    def restore(self, kept: MailSlot) -> None:
        """Take in what the stream holds, at the start of the node."""
        term = slot_term(kept.key, kept.generation, kept.payload_hash)
        version = Version(kept.generation, term, kept.has_body)
        record = self._target.record(kept.key)
        if record is not None and record.version == version:
            version = record.version
        self._end = None
        self._set(kept.key, Slot(kept.sequence, version))
        self.last_sequence = max(self.last_sequence, kept.sequence)
        if kept.key == SNAPSHOT_KEY:
            self._digest.advance(kept.generation)
        self._left = self._digest.of_all, self.last_sequence
        self._dirty[kept.key] = 0

    def mark(self, key: MailKey, cause: int = 0) -> None:
        """Compare a slot with its target at the next flush; `cause` is a place in the own mail."""
        former = self._dirty.get(key)
        self._dirty[key] = cause if former is None else min(former, cause)
        self._awaiting.pop(key, None)
        self._refused.pop(key, None)

    def supplied(self, key: MailKey) -> bool:
        """The content of a delta is here, or was refused for long; whether it was waited for."""
        waited, refused = self._awaiting.pop(key, None), key in self._refused
        self._refused.pop(key, None)
        if waited is None and not refused:
            return False
        if not self._awaiting:
            # An empty table keeps the room of what was in it.
            self._awaiting.clear()
        self._dirty.setdefault(key, NO_CAUSE)
        return True

    def want(self, key: MailKey) -> None:
        """Have the child get a head of the key, at least."""
        self._wanted[key] = None
        self.mark(key, NO_CAUSE)

    def flush(self, now: float) -> None:
        """Write what differs from the target, then the snapshot if the mailbox is ready for it."""
        waiting: dict[MailKey, int] = {}
        dirty, in_flight = self._dirty, self._in_flight
        keys_wait = KEYS_KEY in dirty and KEYS_KEY in in_flight
        if KEYS_KEY in dirty:
            # What they vouch for is believed only by who has them.
            dirty = {KEYS_KEY: dirty[KEYS_KEY], **dirty}
        for key, cause in dirty.items():
            if keys_wait or key in in_flight:
                waiting[key] = cause
            elif key != SNAPSHOT_KEY and not self._is_held_back(key):
                self._make_equal(key, cause)
        self._dirty = waiting
        self._write_snapshot()
        self._checkpoint(now)

    def written(self, key: MailKey, sequence: int) -> int:
        """The stream took a message; returns the place in the own mail that was its cause."""
        self.last_sequence = max(self.last_sequence, sequence)
        slot = self.slots.get(key)
        if slot is not None:
            self.slots[key] = Slot(sequence, slot.version)
            self._end = None if self._end is None else max(self._end, sequence)
        _, cause = self._in_flight.pop(key, (0, NO_CAUSE))
        if self._lacked:
            self._lacked.discard(key)
        if not self._in_flight:
            # An empty table that was large takes long to look through.
            self._in_flight.clear()
        return cause

    def clear(self, key: MailKey, through: int) -> bool:
        """The child let go of what the slot says, with a progress `through`; whether it goes.

        A slot that was written since, or is to be written, stays.
        """
        slot = self.slots.get(key)
        if slot is None or not 0 < slot.sequence <= through:
            return False
        if key in self._in_flight or key in self._dirty:
            return False
        self._wanted.pop(key, None)
        self._erase(key, slot)
        return True

    def rewrite(self) -> None:
        """Write every slot again: what the child holds is not what it was sent."""
        for key, slot in self.slots.items():
            self.slots[key] = Slot(slot.sequence, _LOST if slot.version.full else _LOST_HEAD)
            if key != SNAPSHOT_KEY:
                self.mark(key, NO_CAUSE)
        self._snapshot_due = True
        self._digest, self._left = MailDigest(), None
        self._checkpoints.clear()

    # The snapshot.

    def offer(
        self,
        snapshot: VerifiedSnapshot,
        excluded: Iterable[tuple[MailKey, Version]],
        *,
        due: bool,
    ) -> None:
        """The node reached a snapshot; `due` has it written whatever it says of this child.

        `excluded` are records that it does not list as they are held.
        """
        self._reached = snapshot
        self._excluded = tuple(self._still_in_full(excluded))
        self._snapshot_due = self._snapshot_due or due

    def renew(self) -> None:
        """A session begins: have the newest snapshot written, and one that settles what is there.

        A run that does not know why something goes waits for the newest record that it held.
        """
        self._snapshot_due = True
        held = (self._target.record(key) for key in self.slots)
        self._take(max((record.last_loss for record in held if record is not None), default=0))

    def _write_snapshot(self) -> None:
        if self._reached is None or SNAPSHOT_KEY in self._in_flight:
            return
        snapshot = self._reached
        settled = snapshot.record.settled
        covers = bool(self._uncovered) and self._uncovered[0] <= settled
        written = SnapshotRank(self._snapshot_reign, self.snapshot)
        if snapshot.rank <= written or not (self._snapshot_due or covers):
            return
        if not self.snapshot:
            if self.holds_back:
                # To who has no memory it would say that nothing else is meant for it.
                return
            if self._lacked is None:
                self._lacked = {*self._in_flight, *self._awaiting, *self._dirty}
            if not all(map(self.is_written, self._lacked)):
                return
        if any(generation <= snapshot.generation for generation in self._pending()):
            return
        self._snapshot_due, self._lacked = False, None
        while self._uncovered and self._uncovered[0] <= settled:
            heappop(self._uncovered)
        self._put(
            WriteMail(
                child=self.child,
                key=SNAPSHOT_KEY,
                data=snapshot.data,
                generation=snapshot.generation,
                payload_hash=snapshot.payload_hash,
                has_body=True,
                trace="",
                expected=self._sequence(SNAPSHOT_KEY),
            ),
            snapshot.version,
            NO_CAUSE,
        )
        self._snapshot_reign = snapshot.record.reign
        excluded = self._still_in_full(self._excluded)
        self._digest.advance(snapshot.generation, excluded, self._counted())

    def _still_in_full(
        self, excluded: Iterable[tuple[MailKey, Version]]
    ) -> Iterator[tuple[MailKey, Version]]:
        """What the slots hold of what a snapshot leaves out: one may be a head by now."""
        for key, version in excluded:
            slot = self.slots.get(key)
            if slot is None or not slot.version.full:
                continue
            if slot.version.digest_term == version.digest_term:
                yield key, slot.version

    def _pending(self) -> Iterator[int]:
        """The generations of what the mailbox does not hold yet."""
        yield from (generation for generation, _ in self._in_flight.values())
        yield from self._awaiting.values()
        for key in self._dirty:
            record = self._target.record(key)
            yield record.generation if record is not None else 0

    # The digest.

    def _checkpoint(self, now: float) -> None:
        if self._dirty or self._in_flight:
            return
        made = _Checkpoint(now, self.last_sequence, self._digest.snapshot, self._digest.total)
        kept = self._checkpoints
        if kept and (kept[-1].sequence, kept[-1].digest) == (made.sequence, made.digest):
            return
        while len(kept) > 1 and kept[0].at < now - CHECKPOINT_SECONDS:
            kept.popleft()
        kept.append(made)

    def compare(self, sequence: int, snapshot: int, digest: bytes) -> Comparison:
        """Hold a child's digest beside those of the last minute."""
        if not digest or self._reached is None:
            return Comparison.UNKNOWN
        found, said = Comparison.UNKNOWN, int.from_bytes(digest, "big")
        for kept in reversed(self._checkpoints):
            if kept.snapshot == snapshot and sequence == kept.sequence:
                if kept.digest == said:
                    return Comparison.EQUAL
                found = Comparison.DIFFERENT
        return found

    def read_through(
        self, held: bytes, reached: SnapshotRank, wants: Collection[MailKey]
    ) -> int | None:
        """Up to where a child need not read that read in another run; None: it is not known.

        `held` is its digest of all that the mailbox showed it in full: now, or as this run began,
        which may have written since, and may do so until the child hears its welcome. No digest
        tells of heads and of snapshots: so it reads on before the first head that is newer than
        what it reached, or that it wants, be it an old one, and before a snapshot that it did not
        reach.
        """
        if not held:
            return None
        end = self.end
        if held != self._digest.of_all:
            if self._left is None or held != self._left[0]:
                return None
            end = min(end, self._left[1])
        if self._snapshot_reign > reached.reign:
            reached = SnapshotRank(reached.reign, -1)
        unread = (
            slot.sequence
            for key, slot in self.slots.items()
            if (slot.version.generation > reached.generation or key in self._wanted or key in wants)
            and not self._is_counted(key, slot.version)
            # That is still to come behind the end.
            and key not in self._in_flight
        )
        return min(end, min((sequence - 1 for sequence in unread), default=end))

    def _counted(self) -> Iterator[tuple[MailKey, Version]]:
        """What the digest is of."""
        slots = self.slots.items()
        return ((key, it.version) for key, it in slots if self._is_counted(key, it.version))

    def assert_invariants(self) -> None:
        """Assert what must always hold."""
        self._digest.assert_invariants(self._counted())
        assert self._in_flight.keys() <= self.slots.keys()
        assert all(slot.sequence <= self.last_sequence for slot in self.slots.values())
        assert self.end == max((slot.sequence for slot in self.slots.values()), default=0)
        assert self.heads.keys() == {k for k, slot in self.slots.items() if not slot.version.full}

    # What progress needs to know.

    def causes(self) -> Iterator[int]:
        """Places in the own mail of which something is still to be written here."""
        yield from self._dirty.values()
        yield from (cause for _, cause in self._in_flight.values())

    def is_written(self, key: MailKey) -> bool:
        """Whether the slot holds its target, confirmed."""
        return not (key in self._dirty or key in self._in_flight or key in self._awaiting)

    # One slot.

    def _is_held_back(self, key: MailKey) -> bool:
        record = self._target.record(key) if self.holds_back else None
        return record is not None and awaits_upgrade(record)

    def _make_equal(self, key: MailKey, cause: int) -> None:
        record, slot = self._target.record(key), self.slots.get(key)
        wish = SlotForm.NOTHING
        if record is not None:
            wish = self._target.wish(self.child, record, has=self._has(key))
        if record is None or wish is SlotForm.NOTHING:
            self._wanted.pop(key, None)
            if slot is not None:
                self._take(record.generation if record is not None else 0)
                self._erase(key, slot)
            return
        full = wish is SlotForm.FULL
        if (
            slot is not None
            and slot.version.generation == record.generation
            and slot.version.full == full
        ):
            return
        if full:
            supply = self._target.supply(key)
            if supply is Supply.COMING:
                self._awaiting[key] = record.generation
            if supply is Supply.REFUSED:
                self._refused[key] = None
            if supply is not Supply.HERE:
                return
        before = slot.version.generation if slot is not None else 0
        # The child may lose something by this, once a snapshot covers it.
        if record.last_loss > before or (wish is SlotForm.HEAD and record.kind == "delta"):
            self._take(record.last_loss or record.generation)
        # A delta holds up nobody's progress: until it is answered it counts as pending.
        self._write(key, record, wish, NO_CAUSE if full and record.kind == "delta" else cause)

    def _has(self, key: MailKey) -> SlotForm:
        """What the slot holds; a head also if the child only asks for it."""
        slot = self.slots.get(key)
        if slot is None:
            return SlotForm.HEAD if key in self._wanted else SlotForm.NOTHING
        return SlotForm.FULL if slot.version.full else SlotForm.HEAD

    def _take(self, generation: int) -> None:
        if generation not in self._uncovered[-1:]:
            heappush(self._uncovered, generation)

    def _write(self, key: MailKey, record: AcceptedRecord, wish: SlotForm, cause: int) -> None:
        full = wish is SlotForm.FULL
        self._wanted.pop(key, None)
        self._put(
            WriteMail(
                child=self.child,
                key=key,
                data=record.data if full else record.head_data(),
                generation=record.generation,
                payload_hash=record.payload_hash,
                has_body=full,
                trace=record.trace,
                expected=self._sequence(key),
                hops=record.hops,
                carried=self._target.carried(key) if full else (),
            ),
            record.version if full else record.version.head(),
            cause,
        )

    def _put(self, write: WriteMail, version: Version, cause: int) -> None:
        self._set(write.key, Slot(write.expected, version))
        self._in_flight[write.key] = write.generation, cause
        self._out.append(write)

    def _sequence(self, key: MailKey) -> int:
        """Where the slot's last message lies; 0 if there is none, or it is not confirmed."""
        slot = self.slots.get(key)
        return slot.sequence if slot is not None else 0

    def _set(self, key: MailKey, slot: Slot) -> None:
        former = self.slots.get(key)
        if former is not None:
            self._uncount(key, former.version)
        self.slots[key] = slot
        if not slot.version.full:
            self.heads[key] = None
            self._note_head(self.child, key, is_head=True)
        elif former is not None and not former.version.full:
            self.heads.pop(key, None)
            self._note_head(self.child, key, is_head=False)
        if self._is_counted(key, slot.version):
            self._digest.add(key, slot.version)

    def _uncount(self, key: MailKey, version: Version) -> None:
        if self._is_counted(key, version):
            self._digest.remove(key, version)

    @staticmethod
    def _is_counted(key: MailKey, version: Version) -> bool:
        """Whether the digest is to have it."""
        return version.full and version is not _LOST and key != SNAPSHOT_KEY

    def _erase(self, key: MailKey, slot: Slot) -> None:
        self._uncount(key, slot.version)
        del self.slots[key]
        self.heads.pop(key, None)
        if slot.sequence == self._end:
            self._end = None
        if not slot.version.full:
            self._note_head(self.child, key, is_head=False)
        if slot.sequence:
            self._out.append(ClearMail(self.child, key, slot.sequence))


_LOST, _LOST_HEAD = Version(-1, 0, full=True), Version(-1, 0, full=False)
"""In a slot that is to be written again whatever it holds; in no digest."""
NO_CAUSE = 1 << 62
"""Of what follows from no message of the own mailbox, or holds up nobody's progress."""
