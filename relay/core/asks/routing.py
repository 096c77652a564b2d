"""Asks at one node: what is believed is passed to the child on the way, or answered here.

An ask is a question that the centre signed for one verb and one path, with an expiry. Each node on
the way checks it, says at once that it has come (the receipt), and passes it on; the answer goes
back the same way, part by part. A hop without receipt ends the ask: unreachable, and since when.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from relay.core.effects import Noted
from relay.core.instant import Instant
from schemas.records.asks import (
    ANSWER_MAX_BYTES,
    PART_MAX_BYTES,
    PARTS_MAX,
    RECEIPT,
    AnswerPart,
    AskFault,
    answer_parts,
    failure,
    receipt,
)
from schemas.records.records import AskRecord, Record, decode_payload
from schemas.records.signing import Envelope, decode_envelope
from schemas.values.identity import NodePath, check_id
from schemas.values.refusals import RecordRefused, WireRefused
from schemas.values.wire import decode, encode

ASKS_MAX = 64
"""Under way at one node."""
REMEMBERED_MAX = 4096
"""Asks that were for this node, each until nobody takes it any more: it is answered once."""
RECEIPT_SECONDS = 3.0
ANSWER_SECONDS = 10.0
HOP_SECONDS = 1.0
"""How much longer a node waits for each hop below it, so that the lowest one says what is wrong."""
CLOCK_TOLERANCE_MS = 60_000
NOTE_EVERY_SECONDS = 1.0
"""So often is noted that a child answers with junk."""


@dataclass(frozen=True, slots=True)
class AskArrived:
    """The parent (at the centre: someone there) asks, under this verb."""

    verb: str
    data: bytes


@dataclass(frozen=True, slots=True)
class AnswerArrived:
    """A part of an answer, over the account of this child."""

    child: str
    data: bytes


@dataclass(frozen=True, slots=True)
class PassAsk:
    """Put an ask before a child, byte for byte; not kept."""

    child: str
    verb: str
    data: bytes


@dataclass(frozen=True, slots=True)
class SendAnswer:
    """Put a part of an answer before the parent (at the centre: before whoever asked); not kept."""

    ask: str
    data: bytes


@dataclass(frozen=True, slots=True)
class AnswerHere:
    """The ask is for this node: find the answer, and give it to `AskRouter.finish`."""

    ask: AskRecord


AskEffect = PassAsk | SendAnswer | AnswerHere | Noted


@dataclass(frozen=True, slots=True)
class LastHeard:
    """When (ms since 1970) a child was last heard of, and whether that is too long ago."""

    # 0 of one that has never joined.
    last_ms: int
    silent: bool


@dataclass(slots=True)
class _Underway:
    """An ask that has no answer yet; `child` is "" if it is to be answered here."""

    child: str
    path: NodePath
    due: float
    taken: bool = False
    next_part: int = 1


class _Refused(Exception):
    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


class AskRouter:
    """All asks under way at one node; `refused` counts those that were not believed."""

    def __init__(
        self,
        path: NodePath,
        disbelief: Callable[[Envelope, Record], str],
        heard: Callable[[str], LastHeard | None],
        count_junk: Callable[[str], None] = lambda _child: None,
        remembered: dict[str, int] | None = None,
    ) -> None:
        """`count_junk` hears of each child that says what is no answer."""
        self.refused = 0
        self._count_junk = count_junk
        self._path = path
        self._disbelief = disbelief
        self._heard = heard
        # When junk was last noted, by child: a flood of it would push out all other news.
        self._noted: dict[str, float] = {}
        self._underway: dict[str, _Underway] = {}
        # Asks that were answered here, and until when (ms since 1970) someone could say them again.
        # Whoever gives it here keeps it for the runs that follow.
        self._remembered = {} if remembered is None else remembered

    def ask(self, event: AskArrived, now: Instant) -> tuple[AskEffect, ...]:
        """Check an ask, and pass it on, have it answered, or say why not."""
        try:
            envelope, record = _read(event.data)
        except WireRefused as error:
            self.refused += 1
            return (Noted("BadAsk", event.verb, str(error)),)
        ask = record.source.name
        if ask in self._underway:
            return ()
        try:
            self._check(event.verb, envelope, record, now)
        except _Refused as refusal:
            self.refused += 1
            noted = Noted(refusal.reason, f"ask {event.verb} {record.path}", refusal.message)
            return (noted, self._fault(ask, refusal.reason, refusal.message))
        if ask in self._remembered:
            said = "the same question came again: someone kept it, and is given no answer"
            return self._junk("AskedAgain", f"ask {event.verb} {record.path}", said, now)
        return self._begin(ask, event, record, now)

    def answer(self, event: AnswerArrived, now: Instant) -> tuple[AskEffect, ...]:
        """Pass a part of an answer up, if it comes from the child that was asked."""
        try:
            part = decode(AnswerPart, event.data, PART_MAX_BYTES)
        except RecordRefused as error:
            self._count_junk(event.child)
            return self._junk("BadAnswer", event.child, error.reason, now)
        under = self._underway.get(part.ask)
        if under is None:
            return ()
        if under.child != event.child:
            said = f"{under.child or 'nobody'} was asked"
            self._count_junk(event.child)
            return self._junk("StrayAnswer", event.child, said, now)
        if part.number == RECEIPT:
            # The first one counts: who says no more than that it has come would never be given up.
            if not under.taken:
                under.taken = True
                under.due = now.seconds + self._patience(under.path)
            return ()
        if part.number < under.next_part:
            return ()
        if part.number > under.next_part:
            lost = "a part of the answer was lost; ask again"
            return (self._give_up(part.ask, "Incomplete", lost),)
        if part.number > PARTS_MAX:
            return (self._give_up(part.ask, "TooLarge", "the answer is too large; ask for less"),)
        under.next_part += 1
        under.due = now.seconds + self._patience(under.path)
        if part.last:
            del self._underway[part.ask]
        return (SendAnswer(part.ask, event.data),)

    def finish(self, ask: str, answer: bytes | AskFault) -> tuple[AskEffect, ...]:
        """Send up what was found here; nothing if it is too late."""
        if self._underway.pop(ask, None) is None:
            return ()
        if isinstance(answer, AskFault):
            return (_failed(ask, answer),)
        if len(answer) > ANSWER_MAX_BYTES:
            message = f"the answer has {len(answer)} bytes, at most {ANSWER_MAX_BYTES} are sent"
            return (self._fault(ask, "TooLarge", f"{message}; ask for less"),)
        return tuple(SendAnswer(ask, encode(part)) for part in answer_parts(ask, answer))

    def tick(self, now: Instant) -> tuple[AskEffect, ...]:
        """End the asks whose time is over."""
        over = [ask for ask, under in self._underway.items() if under.due <= now.seconds]
        return tuple(self._timed_out(ask) for ask in over)

    def deadline(self) -> float | None:
        """The monotonic second of the next end; None if nothing is under way."""
        return min((under.due for under in self._underway.values()), default=None)

    def assert_invariants(self) -> None:
        """Assert that there is a bound, and an end, to what is under way."""
        assert len(self._underway) <= ASKS_MAX
        assert len(self._remembered) <= REMEMBERED_MAX
        assert all(1 <= under.next_part <= PARTS_MAX + 1 for under in self._underway.values())

    def _junk(self, reason: str, child: str, said: str, now: Instant) -> tuple[AskEffect, ...]:
        """Count what a child says that is no answer, and note it now and then."""
        self.refused += 1
        if now.seconds - self._noted.get(child, float("-inf")) < NOTE_EVERY_SECONDS:
            return ()
        self._noted[child] = now.seconds
        return (Noted(reason, child, said),)

    def _check(self, verb: str, envelope: Envelope, record: AskRecord, now: Instant) -> None:
        if disbelief := self._disbelief(envelope, record):
            raise _Refused("Unbelieved", f"the ask is not believed: {disbelief}")
        if record.verb != verb:
            raise _Refused("WrongVerb", f"the ask is signed for {record.verb!r}, not for {verb!r}")
        if not self._path.holds(record.path):
            raise _Refused("WrongPath", f"{record.path} does not lie at or below {self._path}")
        late = now.wall_ms - record.expires_ms
        if late > CLOCK_TOLERANCE_MS:
            said = f"by the clock of {self._path} the question expired {late // 1000} s ago"
            raise _Refused("Expired", f"{said}; set that clock right, or the centre's")

    def _begin(
        self, ask: str, event: AskArrived, record: AskRecord, now: Instant
    ) -> tuple[AskEffect, ...]:
        step = self._path.step_towards(record.path)
        # Nothing is given up for an ask that takes no place.
        fault = self._no_way(ask, step) if step is not None else self._no_memory(ask, now)
        if fault is not None:
            return (fault,)
        room = self._make_room(step or "")
        if len(self._underway) >= ASKS_MAX:
            return (self._fault(ask, "Busy", self._busy()),)
        return (*room, *self._taken(ask, event, record, step, now))

    def _make_room(self, child: str) -> tuple[AskEffect, ...]:
        """Give up an ask that waits for another child if that has more than its share."""
        if len(self._underway) < ASKS_MAX:
            return ()
        waiting = Counter(under.child for under in self._underway.values())
        busiest, most = waiting.most_common(1)[0]
        if most <= waiting[child] + 1:
            return ()
        oldest = next(ask for ask, under in self._underway.items() if under.child == busiest)
        return (self._give_up(oldest, "Busy", self._busy()),)

    def _busy(self) -> str:
        return f"{ASKS_MAX} questions are under way at {self._path}; ask again later"

    def _taken(
        self, ask: str, event: AskArrived, record: AskRecord, step: str | None, now: Instant
    ) -> tuple[AskEffect, ...]:
        taken = SendAnswer(ask, encode(receipt(ask)))
        if step is None:
            self._remembered[ask] = record.expires_ms + CLOCK_TOLERANCE_MS
            due = now.seconds + ANSWER_SECONDS
            self._underway[ask] = _Underway("", record.path, due, taken=True)
            return (taken, AnswerHere(record))
        self._underway[ask] = _Underway(step, record.path, now.seconds + RECEIPT_SECONDS)
        return (taken, PassAsk(step, event.verb, event.data))

    def _no_way(self, ask: str, step: str) -> SendAnswer | None:
        """Why an ask cannot be passed to a child."""
        heard, child = self._heard(step), self._path.child(step)
        if heard is None:
            return _failed(ask, AskFault("NoSuchNode", f"there is no node {child}", str(child)))
        return self._unreachable(ask, child, heard) if heard.silent else None

    def _no_memory(self, ask: str, now: Instant) -> SendAnswer | None:
        """Why an ask cannot be kept in mind until it is expired for certain."""
        if len(self._remembered) >= REMEMBERED_MAX:
            for id_, until in list(self._remembered.items()):
                if until <= now.wall_ms:
                    del self._remembered[id_]
        if len(self._remembered) < REMEMBERED_MAX:
            return None
        message = f"{REMEMBERED_MAX} questions to {self._path} are not old enough to forget"
        return self._fault(ask, "Busy", f"{message}; ask again in a minute")

    def _timed_out(self, ask: str) -> SendAnswer:
        under = self._underway[ask]
        heard = self._heard(under.child) if under.child else None
        if under.taken or heard is None:
            where = self._path.child(under.child) if under.child else self._path
            return self._give_up(ask, "NoAnswer", f"no answer came from {where} in time")
        del self._underway[ask]
        return self._unreachable(ask, self._path.child(under.child), heard)

    def _patience(self, path: NodePath) -> float:
        hops = len(path.names) - len(self._path.names)
        return ANSWER_SECONDS + HOP_SECONDS * hops

    def _unreachable(self, ask: str, child: NodePath, heard: LastHeard) -> SendAnswer:
        what = "cannot be reached" if heard.last_ms else "was added, and has never joined"
        return _failed(ask, AskFault("Unreachable", f"{child} {what}", str(child), heard.last_ms))

    def _give_up(self, ask: str, reason: str, message: str) -> SendAnswer:
        under = self._underway.pop(ask)
        return self._fault(ask, reason, message, under.next_part)

    def _fault(self, ask: str, reason: str, message: str, number: int = 1) -> SendAnswer:
        return _failed(ask, AskFault(reason, message, str(self._path)), number)


def _failed(ask: str, fault: AskFault, number: int = 1) -> SendAnswer:
    return SendAnswer(ask, encode(failure(ask, number, fault)))


def _read(data: bytes) -> tuple[Envelope, AskRecord]:
    """Raises WireRefused."""
    envelope = decode_envelope(data)
    record = decode_payload(envelope.kind, envelope.payload)
    if not isinstance(record, AskRecord):
        raise RecordRefused(f"a {envelope.kind} is no ask")
    check_id(record.source.name, "ask id")
    return envelope, record
