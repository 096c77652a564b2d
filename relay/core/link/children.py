"""A node's children: their sessions, their mailboxes, and how far their reports reach.

What a child says is bounded by what it was written; what it claims about others counts for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, zip_longest

from relay.core.effects import Effect, Noted, OpenCopies, SendWelcome, StoreOwn
from relay.core.events import MailSlot, MailWritten
from relay.core.instant import Instant
from relay.core.link.child import ChildFigures, ChildLink
from relay.core.link.session import (
    HELLO_SECONDS,
    SILENT_AFTER_SECONDS,
    ChildSession,
    Identity,
    Presence,
    PresenceEvent,
)
from relay.core.link.writer import Comparison, MailboxWriter, Slot, Target
from relay.core.records.accepted import AcceptedRecord, Version
from relay.core.records.judge import VerifiedSnapshot
from schemas.records.records import Away
from schemas.reports.link import Hello, Progress, Repair, Welcome, greeting
from schemas.values.identity import MailKey
from schemas.values.subjects import AWAY_PREFIX
from schemas.values.wire import encode

REWRITE_EVERY_SECONDS = 60.0
SAY_AFTER_SECONDS, SAY_EVERY_SECONDS = 10.0, 60.0


class Children:
    """The children of one node by name; `changed` hears of who counts otherwise than before."""

    def __init__(
        self,
        incarnation: str,
        target: Target,
        out: list[Effect],
        changed: Callable[[str], None],
        away: Mapping[str, Away],
        addresses: tuple[str, ...] = (),
    ) -> None:
        """`away` is who was silent or had left when the run before ended, as noted."""
        self.by_name: dict[str, ChildLink] = {}
        self._incarnation = incarnation
        self._target = target
        self._out = out
        self._changed = changed
        self._noted_away = dict(away)
        # Where this node's server listens, as children are told.
        self.addresses = addresses
        # Whether the node has memory of its own: without it, it writes and erases nothing.
        self._may_write = False
        self._to_flush: dict[str, None] = {}
        # What the stream holds for children that no record names, as after a lost ledger.
        self._unclaimed: dict[str, list[MailSlot]] = {}
        # Who has something from the own mail still to get, or to answer.
        self._open: dict[str, None] = {}
        # Who waits for content before something can be written.
        self._awaiting: dict[str, None] = {}
        # In whose mailboxes a delta's head lies, by its key.
        self._heads: dict[MailKey, dict[str, None]] = {}
        # Who asks what became of a record, by its key.
        self._wanting: dict[MailKey, dict[str, None]] = {}
        # Who asks for any: mostly nobody, and each hello looks at all of them.
        self._asking: dict[str, None] = {}
        # When to look at who is silent or behind; never too late.
        self._look_at: float | None = None
        self._reached: VerifiedSnapshot | None = None

    # Who is there.

    @property
    def count(self) -> int:
        return len(self.by_name)

    def names(self) -> list[str]:
        return list(self.by_name)

    def has(self, name: str) -> bool:
        return name in self.by_name

    def is_there(self, name: str) -> bool:
        """Whether a child is heard of now."""
        child = self.by_name.get(name)
        return child is not None and child.session.is_there

    def figures(self, name: str, now: Instant) -> ChildFigures | None:
        """What is known of a child; None if there is none of this name."""
        child = self.by_name.get(name)
        return child.figures(now) if child is not None else None

    def note_refused(self, name: str) -> int:
        """Count what a child said and was refused; how often that was."""
        child = self.by_name[name]
        child.refused += 1
        return child.refused

    def open_copies(self, name: str) -> None:
        """Make room for what a child brings up, once in a run of the node."""
        child = self.by_name[name]
        if not child.has_copies:
            child.has_copies = True
            self._out.append(OpenCopies(name))

    def add(self, name: str, nkey: str, now: float, *, joined: bool) -> None:
        """A node record names a child; one that `joined` before is given time to come back.

        Who was away before this run is so until it says hello.
        """
        presence = Presence.CATCHING_UP if joined else Presence.NEVER_JOINED
        session = ChildSession(now, presence)
        if (away := self._noted_away.get(name)) is not None:
            session.presence = Presence.LEFT if away.left else Presence.SILENT
            session.since_ms = away.since_ms
        mailbox = MailboxWriter(name, self._target, self._out, self._note_head)
        self.by_name[name] = ChildLink(nkey, session, mailbox)
        if self._reached is not None:
            mailbox.offer(self._reached, (), due=True)
        for slot in self._unclaimed.pop(name, ()):
            self.restore(slot)
        self._to_flush[name] = None
        self._look_by(now + SILENT_AFTER_SECONDS)

    def remove(self, name: str) -> None:
        child = self.by_name.pop(name, None)
        if child is not None:
            self._note_wants(name, child, ())
        self._note_away(name, None)
        for names in (self._to_flush, self._open, self._awaiting):
            names.pop(name, None)
        for key in child.mailbox.slots if child is not None else ():
            self._note_head(name, key, is_head=False)

    def rekey(self, name: str, nkey: str, now_ms: int) -> None:
        """Let a child in by other keys; a session that began by none of them ends at once."""
        child = self.by_name[name]
        ends = set(child.nkey.split()).isdisjoint(nkey.split())
        child.nkey = nkey
        if ends and child.session.is_there:
            self._silence(name, child, now_ms, f"its key was {'replaced' if nkey else 'revoked'}")
        if ends:
            child.session.end()

    def presence(self, name: str) -> Presence:
        """How it is with a child; who has no node record never joined."""
        child = self.by_name.get(name)
        return child.session.presence if child is not None else Presence.NEVER_JOINED

    def greet(self, *names: str) -> None:
        """Tell these children, or all, that this run of the node is new."""
        for name in names or self.by_name:
            self._out.append(SendWelcome(name, encode(greeting(self._incarnation))))

    def hello(
        self, name: str, hello: Hello, now: float, now_ms: int, former_ms: int | None = None
    ) -> bool:
        """Take a child's hello and answer it; whether all reports are void until it says them.

        One that was said to a former run of the node, at `former_ms`, brings back nobody.
        The reports are void if its run is a new one, if it is told to say everything again, and if
        it was not welcomed by this run of the node: then it says everything again by itself.
        """
        child = self.by_name[name]
        if not child.nkey or child.session.ended(hello):
            return False
        identity = child.session.identify(hello)
        if identity is Identity.SECOND:
            child.contests += 1
            if child.contests == 1:
                self._out.append(Noted("SecondHome", name, "it runs elsewhere; told to stop"))
            self._answer(name, hello, Repair.STOP, child.mailbox.end)
            return False
        if hello.farewell:
            mine = identity is Identity.SAME or not child.session.run
            if mine and child.session.is_there:
                self._leave(name, child, former_ms or now_ms)
            return False
        if former_ms is not None and child.session.since_ms is not None:
            return False
        if identity is Identity.SUPERSEDES:
            counted = child.session.presence is not Presence.CATCHING_UP
            child.session.begin(hello, now, former_ms)
            self._note_away(name, None)
            child.mailbox.renew()
            self._look_by(now + SILENT_AFTER_SECONDS)
            self._fall_behind(name, child, changes=counted)
            child.repeat_at = None
        elif child.session.presence is Presence.LEFT:
            return False
        else:
            child.session.former_ms = former_ms
            self.heard(name, now)
        child.levels, child.wire = hello.levels, hello.wire
        self._note_wants(name, child, hello.wants)
        repair = Repair.NONE
        if former_ms is None:
            # To who spoke before this run its greeting goes: they have come further since.
            repair = self._take(name, child, hello, now)
        self._to_flush[name] = None
        is_back = child.session.presence is Presence.CATCHING_UP
        begins = is_back and hello.parent_run != self._incarnation
        return begins or identity is Identity.SUPERSEDES or repair is Repair.REPORT_ALL

    def heard(self, name: str, now: float) -> None:
        """Something of the child's present run came."""
        child = self.by_name[name]
        if child.session.presence is Presence.NEVER_JOINED or not child.nkey:
            return
        if child.session.since_ms is not None and not child.session.run:
            # It was away before this run: what lies here still of its reports is no word of it.
            return
        child.session.heard = now
        if child.session.happened(PresenceEvent.HEARD):
            child.session.since_ms = None
            self._note_away(name, None)
            self._look_by(now + SILENT_AFTER_SECONDS)
            self._fall_behind(name, child)

    def tick(self, now: float, now_ms: int) -> None:
        """Find out who fell silent, and who does not reach what was written to it."""
        if self._look_at is None or self._look_at > now:
            return
        self._look_at = None
        for name, child in self.by_name.items():
            if not child.session.is_there:
                continue
            if child.session.heard + SILENT_AFTER_SECONDS <= now:
                since_ms = now_ms - int((now - child.session.heard) * 1000)
                since_ms = child.session.former_ms or since_ms
                self._silence(name, child, since_ms, "nothing was heard of it")
            elif child.overdue is not None and child.overdue_at <= now:
                child.through = child.mailbox.place(child.through)
                if child.is_behind(now):
                    self._out.append(Noted("Behind", name, "it does not read what it is sent"))
                    self._fall_behind(name, child)
            elif (
                child.repeat_at is not None and child.repeat_at <= now and child.session.is_in_step
            ):
                self._out.append(Noted("ReportsDiffer", name, "it is to say all of them again"))
                self._fall_behind(name, child)
            self._look_by(child.next_look())

    def deadline(self) -> float | None:
        """When the next child may have been silent, or behind, for too long; or earlier."""
        return self._look_at

    # Mail.

    def allow_writing(self) -> None:
        """The node has memory: what mailboxes hold follows from what it holds."""
        self._may_write = True

    def restore(self, slot: MailSlot) -> None:
        """Take in what the stream holds for a child, at the start."""
        child = self.by_name.get(slot.child)
        if child is None:
            self._unclaimed.setdefault(slot.child, []).append(slot)
        else:
            child.mailbox.restore(slot)
            child.catch_up_to = child.mailbox.last_sequence

    def mark(self, name: str, key: MailKey, cause: int) -> None:
        """A child may be to have something else of a record than it has."""
        child = self.by_name.get(name)
        if child is not None:
            child.mailbox.mark(key, cause)
            self._to_flush[name] = None
            self._open[name] = None

    def answer_wants(self, key: MailKey) -> None:
        """Have whoever asks what became of a record get what its target is, or a head of it."""
        for name in self._wanting.get(key, ()):
            child = self.by_name[name]
            if child.session.is_there:
                child.mailbox.want(key)
                self._to_flush[name] = None

    def wants(self) -> Iterator[MailKey]:
        """What children in session ask for, each once, by turns: none pushes another's aside."""
        asking = map(self.by_name.__getitem__, self._asking)
        asked = [child.wants for child in asking if child.session.is_there]
        seen = set[MailKey | None]()
        for turn in zip_longest(*asked):
            yield from (key for key in dict.fromkeys(turn) if key and key not in seen)
            seen.update(turn)

    def with_slot(self, key: MailKey) -> Iterator[str]:
        """The children in whose mailboxes something lies under a key."""
        return (name for name, child in self.by_name.items() if key in child.mailbox.slots)

    def any_in_full(self, key: MailKey) -> bool:
        """Whether a child's mailbox holds a record in full."""
        slots = (child.mailbox.slots.get(key) for child in self.by_name.values())
        return any(slot is not None and slot.version.full for slot in slots)

    def with_head(self, key: MailKey) -> tuple[str, ...]:
        """The children in whose mailboxes the head of a delta lies, without its body."""
        return tuple(self._heads.get(key, ()))

    def supplied(self, key: MailKey) -> None:
        """The content of a delta is here, or was refused for long."""
        for name in self._awaiting:
            if self.by_name[name].mailbox.supplied(key):
                self._to_flush[name] = None

    def give_up(self, key: MailKey) -> None:
        """Have nobody wait any longer for the content of a delta."""
        if any(self.by_name[name].mailbox.awaits(key) for name in self._awaiting):
            self.supplied(key)

    def inventory_changes(
        self, name: str, key: MailKey, records: tuple[AcceptedRecord, ...]
    ) -> None:
        """Inventory of a child changes: the versions before and after it."""
        child = self.by_name.get(name)
        if child is not None:
            reached = self._reached.generation if self._reached is not None else 0
            child.send_inventory(key, records, reached)

    def flush(self, now: float) -> None:
        """Write what is to be written."""
        if not self._may_write:
            return
        names, self._to_flush = self._to_flush, {}
        for name in names:
            child = self.by_name.get(name)
            if child is None:
                continue
            child.mailbox.flush(now)
            if child.mailbox.awaits_content:
                self._awaiting[name] = None
            else:
                self._awaiting.pop(name, None)
            self._look_whether_open(name, child)

    def written(self, event: MailWritten, now: float) -> None:
        """The stream took a message."""
        child = self.by_name.get(event.child)
        if child is None:
            return
        cause = child.mailbox.written(event.key, event.sequence)
        child.answers.expect(event.sequence, cause)
        self._open[event.child] = None
        if child.overdue is None:
            child.overdue = event.sequence, now
            self._look_by(child.overdue_at)
        child.wrote(event)
        self._to_flush[event.child] = None

    def reached(
        self, snapshot: VerifiedSnapshot, excluded: Sequence[tuple[MailKey, Version]]
    ) -> None:
        """The node reached a snapshot: children get it as it concerns them."""
        former, self._reached = self._reached, snapshot
        # What a term that was withdrawn had issued nobody here may know of; a child may.
        terms = former is not None and former.record.authors != snapshot.record.authors
        for name, child in self.by_name.items():
            child.offer(snapshot, excluded, due=terms)
            self._to_flush[name] = None

    def slot(self, name: str, key: MailKey) -> Slot | None:
        """What lies in a child's mailbox under a key."""
        child = self.by_name.get(name)
        return child.mailbox.slots.get(key) if child else None

    def clear_heads(self, name: str, is_over: Callable[[MailKey], bool]) -> list[MailKey]:
        """Take those heads out of a child's mailbox that have said their last; which ones."""
        child = self.by_name[name]
        over = [key for key in child.mailbox.heads if key in child.mailbox.slots and is_over(key)]
        for key in over:
            child.mailbox.clear(key, child.through)
        return over

    def lag(self, name: str, read_through: int | None) -> int:
        """How many messages a child has not read; by its progress, if it did not say how far."""
        child = self.by_name.get(name)
        return child.lag(read_through) if child else 0

    # Progress.

    def places(self, name: str) -> tuple[int, int]:
        """Up to where a child's reports reflect its mailbox, and where the last of them lies."""
        child = self.by_name[name]
        return child.through, child.said_at

    def note_report(self, name: str, sequence: int) -> None:
        """A report of a child lies there."""
        self.by_name[name].note_report(sequence)

    def has_answered(self, name: str, key: MailKey, version: Version) -> bool:
        """Whether a child's progress speaks of this version of a record."""
        child = self.by_name.get(name)
        return child is not None and child.has_answered(key, version)

    def progressed(
        self, name: str, progress: Progress, digest: bytes, now: float, *, in_hello: bool = False
    ) -> bool:
        """Take a child's progress, if all that it says agrees; `digest` is of its reports here."""
        child = self.by_name[name]
        mine = progress.run == child.session.run and progress.parent_run == self._incarnation
        if not mine or not child.session.is_there:
            return False
        if not 0 <= progress.through <= child.mailbox.last_sequence:
            self.note_refused(name)
            self._out.append(Noted("BadReport", name, "a progress beyond what was written to it"))
            return False
        if progress.digest != digest:
            # A report that was replaced meanwhile is not lost: the next progress will agree.
            if child.repeat_at is None:
                # What a hello speaks of may still be under way: the next one will agree.
                child.repeat_at = now + SAY_AFTER_SECONDS + (HELLO_SECONDS if in_hello else 0.0)
                self._look_by(child.repeat_at)
            return False
        child.repeat_at = None
        place = child.mailbox.place(progress.through)
        found = child.mailbox.compare(place, progress.snapshot, progress.mail)
        if child.is_to_read_again(found):
            told = progress.run, child.mailbox.end_for(progress.through), Repair.REREAD
            self._welcome(name, *told)
        if found is Comparison.DIFFERENT:
            return False
        child.through = max(child.through, place)
        child.answers.answered(child.through)
        child.is_behind(now)
        self._look_whether_open(name, child)
        child.landed()
        if child.session.presence is Presence.CATCHING_UP and child.through >= child.catch_up_to:
            child.session.happened(PresenceEvent.CAUGHT_UP)
            self._changed(name)
        return True

    @property
    def is_in_sync(self) -> bool:
        """Whether children in step have all that follows from the own mail, and answered it."""
        behind = chain(self._open, self._awaiting)
        return not any(self.by_name[name].session.is_in_step for name in behind)

    def open_causes(self) -> Iterator[int]:
        """Places in the own mail of which children in step have not answered all."""
        for name in self._open:
            child = self.by_name[name]
            if child.session.is_in_step:
                yield from child.causes()

    def is_in_sync_with(
        self, name: str, key: MailKey, bears_on: Callable[[AcceptedRecord], bool]
    ) -> bool:
        """Whether a child's reports reflect all that bears on a placement.

        Also of one that cannot be reached: what counts for it needs no answer.
        """
        child = self.by_name.get(name)
        return child is None or child.is_in_sync_with(key, bears_on)

    def levels(self) -> int:
        """Levels of nodes below this one."""
        return max((child.levels + 1 for child in self.by_name.values()), default=0)

    def awaits_content(self) -> bool:
        """Whether something waits for content before it can be written."""
        return bool(self._awaiting)

    def load(self) -> int:
        """How many messages wait to be written, or are on their way."""
        return sum(self.by_name[name].mailbox.load for name in self._open)

    def assert_invariants(self) -> None:
        """Assert what must always hold."""
        for name, child in self.by_name.items():
            child.mailbox.assert_invariants()
            assert child.through <= child.mailbox.last_sequence
            assert name in self._open or not any(True for _ in child.causes())
            assert (
                name in self._awaiting
            ) == child.mailbox.awaits_content or name in self._to_flush
        heads: dict[MailKey, set[str]] = {}
        for name, child in self.by_name.items():
            for key, slot in child.mailbox.slots.items():
                if not slot.version.full:
                    heads.setdefault(key, set()).add(name)
        assert heads == {key: set(names) for key, names in self._heads.items()}
        wanted = {(key, name) for name, child in self.by_name.items() for key in child.wants}
        assert wanted == {(key, name) for key, names in self._wanting.items() for name in names}
        assert self._asking.keys() == {name for _, name in wanted}

    def _look_whether_open(self, name: str, child: ChildLink) -> None:
        if any(True for _ in child.causes()):
            self._open[name] = None
        else:
            self._open.pop(name, None)

    def _note_head(self, name: str, key: MailKey, *, is_head: bool) -> None:
        if is_head:
            self._heads.setdefault(key, {})[name] = None
            return
        names = self._heads.get(key)
        if names is not None and names.pop(name, self) is None and not names:
            del self._heads[key]

    def _note_wants(self, name: str, child: ChildLink, wants: tuple[MailKey, ...]) -> None:
        for key in child.wants:
            self._wanting[key].pop(name, None)
            if not self._wanting[key]:
                del self._wanting[key]
        child.wants = tuple(dict.fromkeys(wants))
        for key in child.wants:
            self._wanting.setdefault(key, {})[name] = None
        self._asking.pop(name, None)
        if child.wants:
            self._asking[name] = None

    def _look_by(self, at: float | None) -> None:
        if at is not None and (self._look_at is None or at < self._look_at):
            self._look_at = at

    def _take(self, name: str, child: ChildLink, hello: Hello, now: float) -> Repair:
        """Answer a hello, and say what it is told to repair."""
        if hello.parent_run == self._incarnation:
            repair = self._repair(name, child, hello, now)
            end = child.mailbox.end_for(hello.sequence)
        elif hello.reports:
            # Who was welcomed by a former run did not hear of this one yet, and says no `held`.
            self.greet(name)
            return Repair.NONE
        else:
            repair, end = child.take_over(hello)
        self._answer(name, hello, repair, end)
        return repair

    def _repair(self, name: str, child: ChildLink, hello: Hello, now: float) -> Repair:
        place = child.mailbox.place(hello.sequence)
        found = child.mailbox.compare(place, hello.snapshot, hello.digest)
        if child.is_to_read_again(found):
            return Repair.REREAD
        may_rewrite = now >= child.rewritten + REWRITE_EVERY_SECONDS and self._may_write
        if found is Comparison.DIFFERENT and may_rewrite:
            self._out.append(Noted("MailDiffers", name, "its mailbox is written again"))
            child.rewritten, child.read_requested = now, False
            child.mailbox.rewrite()
            return Repair.NONE
        if child.repeat_at is not None and child.repeat_at <= now:
            # Its answer may be lost, too.
            child.repeat_at = now + SAY_EVERY_SECONDS
            return Repair.REPORT_ALL
        return Repair.NONE

    def _answer(self, name: str, hello: Hello, repair: Repair, end: int) -> None:
        reached = self._reached
        known = reached is not None and (hello.newest_reign, hello.newest) >= reached.rank
        shows = bool(hello.shown) and (reached is None or hello.shown != reached.data)
        same = hello.parent_run == self._incarnation
        with_snapshot = not (same and known) or shows
        if hello.reports and repair is Repair.NONE and not with_snapshot:
            # It was welcomed, and learns nothing.
            return
        self._welcome(name, hello.run, end, repair, with_snapshot=with_snapshot)

    def _welcome(
        self, name: str, run: str, end: int, repair: Repair, *, with_snapshot: bool = False
    ) -> None:
        snapshot = self._reached.data if self._reached is not None and with_snapshot else b""
        said = Welcome(self._incarnation, run, end, snapshot, repair.value, self.addresses)
        self._out.append(SendWelcome(name, encode(said)))

    def _silence(self, name: str, child: ChildLink, since_ms: int, why: str) -> None:
        child.session.happened(PresenceEvent.SILENCE)
        child.session.since_ms = since_ms
        self._note_away(name, Away(since_ms, left=False))
        self._out.append(Noted("Unreachable", name, why))
        self._changed(name)

    def _leave(self, name: str, child: ChildLink, now_ms: int) -> None:
        child.session.happened(PresenceEvent.FAREWELL)
        child.session.since_ms = now_ms
        self._note_away(name, Away(now_ms, left=True))
        self._out.append(Noted("Left", name, "it stopped in good order"))
        self._changed(name)

    def _note_away(self, name: str, away: Away | None) -> None:
        """Note for the next run that a child is away, or that it is not any more."""
        if self._noted_away.get(name) == away:
            return
        key = f"{AWAY_PREFIX}{name}"
        if away is None:
            del self._noted_away[name]
        else:
            self._noted_away[name] = away
        self._out.append(StoreOwn(key, encode(away) if away is not None else None))

    def _fall_behind(self, name: str, child: ChildLink, *, changes: bool = True) -> None:
        """Count nothing that the child says until it has answered where its mailbox ends now."""
        child.fall_behind()
        if changes:
            self._changed(name)
