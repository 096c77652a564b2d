"""The lease by which one member of a node is active at a time: when to renew, to stop, to take it.

The lease is one subject of a stream. A holder counts its time from when it *sent* the last renewal
that succeeded, the others from when they first saw that the subject does not change any more; both
by their own monotonic clocks, of which the rates alone must agree.

An election of the stream's leader takes 4 to 9 s, and up to 17 where the first vote has no winner;
nothing is renewed meanwhile, and who is well must stay the holder. So the members ask each other,
too: of a holder that nobody hears of the lease is over soon, of one that is heard it goes on.

What a holder wrote just before it was lost may be seen after such an election only. So it tells the
others of each note that it writes, and one that is seen later counts from when it was told.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

RENEW_SECONDS = 1.0
VALID_SECONDS = 20.0
"""How long after it was sent a renewal is good at most."""
SILENT_SECONDS = 25.0
"""For how long the lease must be seen unchanged until any other member may take it."""
ALONE_SECONDS, GONE_SECONDS = 4.5, 6.0
"""The same where no other member has heard of the holder since."""
LOOKS_MIN = 4
"""So many answers of the stream's leader each of these times must hold."""
LOOK_SECONDS, QUIET_LOOK_SECONDS, QUIET_SECONDS = 0.5, 0.1, 2.0
"""How often it is looked, and how often once it was silent for so long, or nobody answered."""
CONFIRMED_SECONDS = 1.0
"""How old a renewal may be, from when it was sent, for what no fence holds back."""
TOLD_MAX = 16
"""So many of the notes that were told last are known."""
MARKS_MAX = 16
"""Of so many marks it is known how far the notes below them went."""
CLOCK_SECONDS_MAX = 10.0
CLOCKS_COMPARED_MIN = 3


@dataclass(frozen=True, slots=True)
class LeaseNote:
    """What the holder writes: its member, "" once it gave the lease back; its run; its count.

    Without a run it is a mark, where nothing lay: nobody's hold, from which on silence is counted.
    A stream in memory may lose what it held, and numbers what follows from 1 again. So all notes
    since a mark lie at a subject of their own, called `mark`: what was meant to follow one that is
    lost follows none.
    """

    member: str
    run: str
    beat: int
    mark: str


@dataclass(frozen=True, slots=True)
class LeaseSeen:
    """What the stream's leader answered: where the last note lies, 0 if there is none."""

    sequence: int = 0
    note: LeaseNote | None = None


@dataclass(frozen=True, slots=True)
class LeaseWrite:
    """A note to be written if `expected` is the last one at its mark; sent at `sent` seconds.

    With 0 it is a mark, to be written if the stream holds nothing.
    """

    note: LeaseNote
    expected: int
    sent: float


class MemberLease:
    """The lease as one run of one member knows it; times are seconds of its monotonic clock."""

    def __init__(self, member: str, run: str, over: Collection[str] = ()) -> None:
        """`over` are runs of this member that are surely over: it may take what they held."""
        self.member, self.run = member, run
        self._over = frozenset(over)
        self._beat = 0
        self._is_held = False
        self._confirmed_at = float("-inf")
        # When each note was sent whose answer did not come.
        self._unanswered = dict[int, float]()
        self._seen: LeaseSeen | None = None
        self._answered_at: float | None = None
        self._seen_at = 0.0
        self._looks, self._is_answered = 0, False
        # When each note was told that may be seen later.
        self._told = dict[LeaseNote, float]()
        # The last sequence that was ever seen of each mark, the newest mark last.
        self._furthest = dict[str, int]()
        # When the last note that this run held by was sent.
        self._held_at = float("-inf")
        self._heard_at = self._others_heard_at = float("-inf")

    def holds(self, now: float) -> bool:
        """Whether this run is the holder, for anything that a fence holds back."""
        return self._is_held and now < self._valid_until

    @property
    def _valid_until(self) -> float:
        alone_from = max(self._confirmed_at, self._others_heard_at)
        return min(self._confirmed_at + VALID_SECONDS, alone_from + ALONE_SECONDS)

    def is_confirmed(self, now: float) -> bool:
        """Whether it is so also for what no fence holds back."""
        return self.holds(now) and now < self._confirmed_at + CONFIRMED_SECONDS

    def seconds_left(self, now: float) -> float:
        """For how long it holds without another renewal; 0 if it does not."""
        return self._valid_until - now if self.holds(now) else 0.0

    @property
    def heard_at(self) -> float:
        """When this member heard of a holder last; minus infinity before the first time.

        A holder is heard of when its note changes, and when it answers.
        """
        return self._heard_at

    @property
    def silent_seconds(self) -> float:
        """For how long the note seen last had not changed when a leader answered last.

        Times in which nobody answered count, too: nothing was renewed in them.
        """
        return self._answered_at - self._seen_at if self._answered_at is not None else 0.0

    def heard(self, at: float) -> None:
        """A member answered at this time that it is the active one."""
        self._heard_at = max(at, self._heard_at)

    def others_heard(self, at: float) -> None:
        """Another member that stands by heard of a holder at this time.

        A holder tells it by when it asked, so that it is never later than the other one heard.
        """
        self._others_heard_at = max(at, self._others_heard_at)

    # Whoever does not hold it looks.

    def told(self, note: LeaseNote, now: float) -> None:
        """Its writer said that it writes this note: it was sent no later than now.

        A mark counts from when it is seen: where it lies late, others wrote before it.
        """
        if note.run and note.run != self.run:
            self.heard(now)
            self._told.setdefault(note, now)
        while len(self._told) > TOLD_MAX:
            del self._told[next(iter(self._told))]

    def saw(self, seen: LeaseSeen, now: float) -> None:
        """The leader of the stream answered, and this lay there."""
        if self._seen != seen:
            note = seen.note
            at = self._sent_at(seen, now)
            self._note_furthest(seen)
            # A late note of this very run is no sign of a holder.
            is_holders = note is not None and note.member and note.run not in ("", self.run)
            if self._seen is not None and is_holders:
                self.heard(at)
            self._seen, self._seen_at, self._looks = seen, at, 0
        self._answered_at, self._is_answered = now, True
        self._looks += 1

    def _sent_at(self, seen: LeaseSeen, now: float) -> float:
        """When what lies there was sent at the latest.

        Where it follows nothing that was seen, the memory may have been put back to what it was.
        """
        before, note = self._seen, seen.note
        if before is None or before.note is None or note is None or before.note.mark != note.mark:
            return now
        is_new = seen.sequence > self._furthest.get(note.mark, 0)
        return self._told.get(note, now) if is_new else now

    def _note_furthest(self, seen: LeaseSeen) -> None:
        if (note := seen.note) is not None:
            before = self._furthest.get(note.mark, 0)
            self._furthest[note.mark] = max(before, seen.sequence)
            while len(self._furthest) > MARKS_MAX:
                del self._furthest[next(iter(self._furthest))]

    @property
    def is_put_back(self) -> bool:
        """Whether what lies there is older than what was seen: others may have held after it."""
        note = self._seen.note if self._seen is not None else None
        if self._seen is None or note is None:
            return False
        is_last = note.mark == next(reversed(self._furthest))
        return not is_last or self._seen.sequence < self._furthest[note.mark]

    def saw_nothing(self) -> None:
        """No leader answered."""
        self._is_answered = False

    @property
    def is_quiet(self) -> bool:
        """Whether the lease does not change, or nobody answers: the other members are asked."""
        return not self._is_answered or self.silent_seconds >= QUIET_SECONDS

    @property
    def look_seconds(self) -> float:
        """How long after this look the next one is due."""
        return QUIET_LOOK_SECONDS if self.is_quiet else LOOK_SECONDS

    def may_take(self) -> bool:
        """Whether whoever held it has stopped, by what was seen and heard."""
        note = self._seen.note if self._seen is not None else None
        if note is None or self._answered_at is None:
            return False
        is_own = note.run == self.run and self._heard_at <= self._held_at
        if (not note.member or is_own or self.is_of_former_run) and not self.is_put_back:
            # Given back, or an earlier hold of this very run, or of one before it: it is over.
            return True
        heard_at = max(self._seen_at, self._heard_at, self._others_heard_at)
        is_gone = self._answered_at - heard_at >= GONE_SECONDS
        return self._looks >= LOOKS_MIN and (is_gone or self.silent_seconds >= SILENT_SECONDS)

    @property
    def is_of_former_run(self) -> bool:
        """Whether a run before this one held it last, which is over; the others are asked first.

        Once anybody was heard it counts no more: the memory may have been put back to that hold.
        """
        note = self._seen.note if self._seen is not None else None
        return note is not None and note.run in self._over and self._heard_at == float("-inf")

    @property
    def lacks_mark(self) -> bool:
        """Whether nothing lay there, so that a mark is to be written first."""
        return self._seen is not None and self._seen.note is None

    # Whoever holds it, or may, writes.

    def write(self, now: float) -> LeaseWrite:
        """The note to write now: a renewal, the first of a new hold, or a mark."""
        assert self._seen is not None
        self._beat += 1
        self._unanswered[self._beat] = now
        if self.lacks_mark:
            mark = LeaseNote(self.member, "", self._beat, f"{self.run}-{self._beat}")
            return LeaseWrite(mark, 0, now)
        assert self._is_held or self.may_take()
        return LeaseWrite(self._note(self.member), self._seen.sequence, now)

    def _note(self, member: str) -> LeaseNote:
        assert self._seen is not None
        assert self._seen.note is not None
        return LeaseNote(member, self.run, self._beat, self._seen.note.mark)

    def written(self, write: LeaseWrite, sequence: int, now: float) -> None:
        """The stream keeps the note at this sequence; of a hold that is over nothing follows."""
        if write.note.beat not in self._unanswered:
            return
        self._unanswered.clear()
        if not write.note.run:
            self.saw(LeaseSeen(sequence, write.note), now)
            return
        self._is_held, self._seen = True, LeaseSeen(sequence, write.note)
        self._note_furthest(self._seen)
        self._confirmed_at = max(self._confirmed_at, write.sent)
        self._held_at = self._confirmed_at

    def refused(self, seen: LeaseSeen, now: float) -> None:
        """Something else lies there: a note of this hold whose answer was lost, or it is over."""
        note = seen.note
        sent = self._unanswered.get(note.beat) if note and note.run == self.run else None
        if note is not None and sent is not None and self._is_held:
            self.written(LeaseWrite(note, 0, sent), seen.sequence, now)
            return
        self.lost()
        self.saw(seen, now)

    def lost_if_over(self, now: float) -> bool:
        """Hold it no more if its time is over; whether that is news."""
        if not self._is_held or self.holds(now):
            return False
        self.lost()
        return True

    def lost(self) -> None:
        """Hold it no more, whatever is answered later; the looking begins anew."""
        self._is_held = False
        self._confirmed_at = self._others_heard_at = float("-inf")
        self._unanswered.clear()
        self._seen, self._answered_at = None, None
        self._looks = 0

    def give_back(self) -> LeaseWrite | None:
        """The note that lets others take it at once; nothing of this run may be under way then.

        None if it is not held.
        """
        if not self._is_held or self._seen is None:
            return None
        self._beat += 1
        write = LeaseWrite(self._note(""), self._seen.sequence, 0.0)
        self.lost()
        return write


def clock_trouble(mine: float, others: Collection[float]) -> str:
    """Why a member may not be active whose wall clock is `mine` seconds ahead of any clock.

    `others` are the same of the other members; "" if it may, or if too few are known to judge.
    """
    offsets = [mine, *others]
    if len(offsets) < CLOCKS_COMPARED_MIN:
        return ""
    apart = mine - sorted(offsets)[(len(offsets) - 1) // 2]
    if abs(apart) <= CLOCK_SECONDS_MAX:
        return ""
    word = "ahead of" if apart > 0 else "behind"
    return (
        f"its clock is {abs(apart):.0f} s {word} those of the other members: set it right (NTP); "
        "until then it does not become active"
    )
