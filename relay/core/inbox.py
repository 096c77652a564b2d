"""The node's own mailbox: what is accepted, how far it is read, and what its absences mean.

Whatever arrives gives one verdict: take it, pass over it, park it until a key or the index settles
it, or refuse it with a reason (wire.md, "Index and acceptance").
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from relay.core.book import Held, is_delta, read_record
from relay.core.events import MailArrived
from relay.core.index import IndexView, Unknown
from relay.core.parked import Believed, Parked
from relay.core.trust import Trust, Verdict
from schemas.blobs import Reference
from schemas.identity import INDEX_KEY, MailKey
from schemas.records import DIGEST_MODULUS
from schemas.refusals import RecordRefused
from schemas.reports import Cursor, SessionMessage


@dataclass(frozen=True, slots=True)
class Take:
    """Believed and newer than what is held, or the same with the body that was missing."""

    held: Held


@dataclass(frozen=True, slots=True)
class PassOver:
    """Believed, and nothing new. `gone` asks to answer that nothing of it is here."""

    held: Held
    gone: bool = False


@dataclass(frozen=True, slots=True)
class Park:
    """Not to be judged yet; `chunk` of the index would tell, if it is set.

    What was believed of it need not be read again.
    """

    reason: str
    chunk: Reference | None = None
    believed: Believed | None = None


@dataclass(frozen=True, slots=True)
class Refuse:
    """Never to be acted on."""

    reason: str
    detail: str


SUPERSEDED = "Superseded"
"""The reason to refuse what was in force once: honest mail that is late."""

Ruling = Take | PassOver | Park | Refuse


@dataclass(slots=True)
class Inbox:
    """How far the own mail is read, and the digest of what the mailbox holds.

    `incarnation` is the parent's, `high` the last sequence read in it. `settled` is true once the
    mailbox was read to its end in this session; `pending` more messages are on their way.
    What was read last may be `half` of what goes together.
    `index_came` is the generation of the index that came in this session, 0 for none; it is shown
    once it can be looked through. `question` counts the sessions that this run asked for; `greeted`
    is the parent's run that said last that it is new.
    `unplaced` is the first sequence that found no room among what is parked: it is read again.
    `keys_read` says that this is such a reading, so all keys in the mailbox were read before.
    """

    trust: Trust
    index: IndexView
    incarnation: str = ""
    high: int = 0
    epoch: int = 0
    last_epoch: int = 0
    question: int = 0
    greeted: str = ""
    settled: bool = False
    pending: int = 0
    half: bool = False
    read_whole: bool = False
    index_came: int = 0
    shown_index: bool = False
    remembers: bool = False
    stored_index: int = 0
    parked: Parked = field(default_factory=Parked)
    unplaced: int | None = None
    keys_read: bool = False
    terms: dict[MailKey, int] = field(default_factory=dict)
    seen: dict[MailKey, None] | None = None

    @property
    def has_memory(self) -> bool:
        """Whether deltas newer than the index may be believed (wire.md)."""
        return self.remembers and self.shown_index

    @property
    def recalls(self) -> bool:
        """Whether the mailbox was read in this session, by a node that finished a read before."""
        return bool(self.epoch) and self.settled and self.remembers and self.unplaced is None

    @property
    def calm(self) -> bool:
        """Whether nothing is pending: a moment at which something may be taken away."""
        return self.settled and not self.unread and not self.waits

    @property
    def waits(self) -> bool:
        """Whether something was read that cannot be judged yet."""
        return bool(self.parked) or self.unplaced is not None

    @property
    def unread(self) -> int:
        """How many messages are known to follow what was read."""
        return self.pending or int(self.half)

    @property
    def answered(self) -> int:
        """The highest sequence up to which all mail was taken into account."""
        waiting = [at for at in (self.parked.lowest, self.unplaced) if at is not None]
        return min(waiting) - 1 if waiting else self.high

    @property
    def digest(self) -> int:
        return sum(self.terms.values()) % DIGEST_MODULUS

    def besides(self) -> list[tuple[MailKey, bytes]] | None:
        """What is read but not held: mail that waits to be judged, and the index looked through.

        That is an older one than the one held while this is fetched, with the last that was all
        here. None before all was read, or without memory.
        """
        if not self.recalls:
            return None
        return [*((INDEX_KEY, data) for data in self.index.signed()), *self.parked.mail()]

    def cursor(self, unproven: tuple[str, ...] = ()) -> Cursor:
        """What OWN shall hold of it, with the names of the children that are unproven."""
        index, memory = self.stored_index, self.remembers
        return Cursor(self.incarnation, self.answered, index, memory, unproven)

    def restore(self, cursor: Cursor) -> None:
        """Go on from what OWN holds."""
        self.incarnation, self.high = cursor.incarnation, cursor.sequence
        self.stored_index, self.remembers = cursor.index_generation, cursor.has_memory

    def ask(self, greeting: str = "") -> None:
        """Ask for a session, the next one of this run: until it is granted there is none.

        `greeting` is the parent's run, if that said that it is new. Who says so again before it
        answered is asked the same: it may greet more often than an answer takes to come.
        """
        if self.epoch or not greeting or greeting != self.greeted:
            self.question += 1
        self.epoch = 0
        self.greeted = greeting or self.greeted

    def is_answered(self, message: SessionMessage) -> bool:
        """Whether this answers what was asked last, or something said in the session since.

        A parent that is put back to an old copy of its disk answers what it finds there, though it
        was asked by this very run: of what has become of the node since that answer knows nothing.
        Who asks anew is granted a later epoch, too; a parent of before this answers for question 0.
        """
        asked = message.question in (0, self.question)
        least = self.last_epoch if self.epoch else self.last_epoch + 1
        return asked and bool(message.epoch) and message.epoch >= least

    def begin_session(self, message: SessionMessage) -> int:
        """Start reading in a granted session; returns the sequence to read from.

        The same incarnation goes on after the cursor, unless the mailbox ends before it or was
        swept; another one is read whole, unless the digests agreed.
        """
        self.epoch = self.last_epoch = message.epoch
        self.shown_index = self.settled = False
        self.pending = self.index_came = 0
        self.high, self.half = self.answered, False
        same = message.incarnation == self.incarnation
        resumable = same and message.swept_through <= self.high <= message.last_sequence
        adopted = not same and message.want == "none"
        self._clear_parked()
        self.incarnation = message.incarnation
        if adopted:
            self.high, self.seen = message.last_sequence, None
        if message.want == "again" or not (resumable or adopted):
            return self.read_again(message.last_sequence)
        self.read_whole = True
        if self.high >= message.last_sequence:
            self._finish()
        return self.high + 1

    def read_again(self, last_sequence: int) -> int:
        """Begin a full read; returns the sequence to read from."""
        self.high, self.seen, self.settled, self.half = 0, {}, False, False
        self._clear_parked()
        if not last_sequence:
            self._finish()
        return 1

    def park(self, event: MailArrived, believed: Believed | None) -> bool:
        """Keep a message until it can be judged; False if it is the first that finds no room."""
        if not self.parked.full:
            self.parked.put(event, believed)
            return True
        if self.unplaced is None:
            self.unplaced = event.sequence
            return False
        self.unplaced = min(self.unplaced, event.sequence)
        return True

    def make_room(self) -> int | None:
        """Read again what found no room, if there is some now: the sequence to read from.

        The whole mailbox, because what is in it is sure to come to an end.
        """
        if self.unplaced is None or not self.settled or not self.parked.roomy:
            return None
        start = self.read_again(self.high)
        self.keys_read = True
        return start

    def _clear_parked(self) -> None:
        self.parked.clear()
        self.unplaced, self.keys_read = None, False

    def arrived(self, event: MailArrived) -> None:
        """Count a message that was judged, or parked."""
        if event.sequence > self.high:
            self.half = event.more
        self.half = self.half or (event.more and event.sequence == self.high)
        self.high = max(self.high, event.sequence)
        if self.seen is not None:
            self.seen[event.key] = None
        if not event.pending:
            self._finish()

    def supersede(self, event: MailArrived) -> None:
        """Let go of what is parked and was in the slot before this message, which is believed."""
        self.parked.forget_before(event.key, event.sequence)

    def count(self, held: Held) -> None:
        """Take a slot's content into the digest, or out of it."""
        if held.has_content:
            self.terms[held.key] = held.term
        else:
            self.terms.pop(held.key, None)

    def forget(self, key: MailKey) -> None:
        """Take out of the digest what an index dropped: a mailbox that has it is another than this.

        If a newer index lists it again, as of what a centre read back, it is brought once more.
        """
        self.terms.pop(key, None)

    def settle_memory(self) -> bool:
        """Note that a full read was finished against an index; whether that is news."""
        if self.shown_index:
            self.stored_index = max(self.stored_index, self.index.generation)
        if self.remembers or not (self.settled and self.read_whole and self.shown_index):
            return False
        if self.waits:
            return False
        self.remembers = True
        return True

    def judge(
        self, event: MailArrived, known: Held | None, order: int, read: Believed | None = None
    ) -> Ruling:
        """What to make of a message, given what is held under its key.

        `read` is what was believed of it before; with other keys in force it is read again.
        """
        if read is not None and read.keys == self.trust.adopted:
            held = read.held
        else:
            found = self._read(event, order)
            if not isinstance(found, Held):
                return found
            held = found
        if known is not None:
            ruling = _against(held, known)
        elif is_delta(held):
            ruling = self._unheld_delta(held)
        else:
            ruling = PassOver(held) if held.record.deleted else Take(held)
        if isinstance(ruling, Take | PassOver) and held.order != order:
            return replace(ruling, held=replace(held, order=order))
        return ruling

    def _read(self, event: MailArrived, order: int) -> Held | Park | Refuse:
        """The record that a message says, if it is believed."""
        try:
            envelope, held = read_record(event.data, order, event.hops)
        except RecordRefused as error:
            return Refuse("Unreadable", error.reason)
        if held.key != event.key:
            return Refuse("WrongKey", f"it says {held.record.source} under key {event.key}")
        verdict = self.trust.judge(envelope, held.record)
        if verdict is Verdict.UNKNOWN_KEY and not (self.settled or self.keys_read):
            return Park(f"key {envelope.key_id} is not known here")
        if verdict is not Verdict.BELIEVED:
            # Keys are written before what they sign: with the mailbox read, none is on its way.
            return Refuse(verdict.name.title().replace("_", ""), verdict.value)
        return held

    def _unheld_delta(self, held: Held) -> Ruling:
        if held.record.deleted or not held.has_body:
            return PassOver(held, gone=True)
        newer = held.generation > self.index.generation
        if newer and self.has_memory:
            return Take(held)
        listed = self.index.listed(held.key)
        if isinstance(listed, Unknown):
            return self._park(held, "a chunk of the index is on its way", listed.chunk)
        if listed is not None and listed <= held.generation:
            return Take(held)
        if newer:
            return self._park(held, "no index shown here lists it yet")
        return Refuse(SUPERSEDED, f"the index lists {listed or 'nothing'} for it")

    def _park(self, held: Held, reason: str, chunk: Reference | None = None) -> Park:
        return Park(reason, chunk, Believed(held, self.trust.adopted))

    def _finish(self) -> None:
        if self.seen is not None:
            self.terms = {key: term for key, term in self.terms.items() if key in self.seen}
            self.seen = None
            self.read_whole = True
        self.settled = True


def _against(held: Held, known: Held) -> Ruling:
    if held.kind != known.kind:
        return Refuse("WrongKind", f"a {held.kind} where a {known.kind} is held")
    if held.generation > known.generation:
        return Take(held)
    if held.generation == known.generation and held.has_body and not known.has_body:
        return Take(held)
    return PassOver(held)
