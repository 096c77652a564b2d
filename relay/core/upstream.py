"""What a node has to do with its parent: mail that is judged and taken, snapshots, the hello."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping

from relay.core.audience import HERE
from relay.core.config import NodeConfig
from relay.core.content.owners import ContentOwner, OwnerKind
from relay.core.effects import AckMail, Noted, ResetMail, SendHello, StoreOwn, WantsChanged
from relay.core.events import MailArrived
from relay.core.link.parent import QUIET_SECONDS, ParentLink
from relay.core.link.progress import Watermark
from relay.core.link.reader import Reading
from relay.core.link.target import mail_owner
from relay.core.link.wants import Wants
from relay.core.propagation import Propagation
from relay.core.records.acceptance import (
    REFUSALS,
    UNKNOWN_KEY,
    HeldVersion,
    ListedBelow,
    MissingInput,
    NewVersion,
    RecordRefusal,
    Superseded,
    Undecided,
)
from relay.core.records.accepted import AcceptedRecord, is_delta, to_keep
from relay.core.records.judge import REACH_SECONDS_MAX, Judgement, Standings, VerifiedSnapshot
from relay.core.records.snapshot import SnapshotInterest, ViewAge
from relay.core.records.verdict import admits_new
from relay.core.rooms import Rooms, RoomsPart
from schemas.records.records import LocationHead, Profile
from schemas.records.snapshots import NO_SNAPSHOT, SnapshotRank, SnapshotRefused, mail_entry_key
from schemas.reports.link import Cursor, Welcome, copies_word
from schemas.values.identity import KEYS_KEY, SNAPSHOT_KEY, MailKey
from schemas.values.subjects import CURSOR_KEY
from schemas.values.wire import encode

STALE = "StaleView: its parent has shown it no newer snapshot for 20 minutes"
EXPIRED_VIEW, STALE_VIEW, FRESH_VIEW = "ExpiredView", "StaleView", "FreshView"
EXPIRED = (
    "this node has no memory, and the newest snapshot its parent shows has expired: nothing new is "
    "taken under it"
)
VIEW_LOOK_SECONDS = 60.0
ACKNOWLEDGE_EVERY = 64
"""So many messages are acknowledged at once, or what came when no more follows."""
SNAPSHOTS = ContentOwner(OwnerKind.SNAPSHOTS)


class Upstream(RoomsPart):
    """The parent's side of one node that is not the centre."""

    def __init__(
        self, config: NodeConfig, cursor: Cursor | None, rooms: Rooms, propagation: Propagation
    ) -> None:
        super().__init__(rooms)
        self.link = ParentLink(config.incarnation, config.home, cursor)
        self.has_memory = cursor is not None and cursor.has_memory
        # Messages refused since the start, by why.
        self._refusals: Counter[str] = Counter()
        # Whether the parent shows an old view.
        self.stale = False
        self._config = config
        self._sender.settle(lambda key: not self.link.reader.lacks(key))
        self._propagation = propagation
        self._wants = Wants(self._book, self._judge, self._children)
        self._watermark = Watermark()
        # Whether reports may reflect more of the mailbox than was said last.
        self.may_advance = False
        # Whether it was said that nothing new is taken under a snapshot that expired.
        self._told_expired = False
        # Whether this run ever read its mailbox to the end.
        self.was_read = False
        self._stored_cursor = cursor
        self._snapshots_asked_for: tuple[SnapshotRank, ...] = ()
        # Whether records wait for parts of snapshots that are not being read.
        self._interest_grew = False
        # Mail since the last acknowledgement.
        self._unacknowledged = 0
        # Whether this batch of events has the mailbox read from elsewhere: its mail is void.
        self._is_reset = False
        # When the cursor is kept, and mail acknowledged, as no more came.
        self._quiet_at: float | None = None
        now = rooms.clock().seconds
        self._view = ViewAge(now)
        self._view_at = now + VIEW_LOOK_SECONDS
        # Snapshots signed by a key that is not known yet, with their places in the mailbox.
        self._unverified: deque[tuple[bytes, int | None]] = deque(maxlen=2)
        # The newest signed snapshot that a child showed, with its rank.
        self._shown_below: tuple[SnapshotRank, bytes] = (NO_SNAPSHOT, b"")

    @property
    def refused(self) -> int:
        """How many messages were refused since the start."""
        return self._refusals.total()

    @property
    def refused_by_reason(self) -> Mapping[str, int]:
        """The same by why."""
        return {**dict.fromkeys(REFUSALS, 0), **self._refusals}

    @property
    def welcomed(self) -> bool:
        return self.link.session.welcomed

    @property
    def _rank_reached(self) -> SnapshotRank:
        return self._judge.reached.rank if self._judge.reached is not None else NO_SNAPSHOT

    @property
    def may_report(self) -> bool:
        """Whether the parent listens, and reports may reflect more of the mailbox than was said."""
        return self.welcomed and self.may_advance

    @property
    def unread(self) -> int:
        """How much mail is on its way to here."""
        return self.link.reader.unread

    @property
    def caught_up(self) -> bool:
        return self.link.reader.caught_up

    def deadline(self) -> float | None:
        """When something is due by the clock alone."""
        candidate = self._judge.candidate
        reach_at = None
        if candidate is not None and not candidate.overdue:
            reach_at = candidate.since + REACH_SECONDS_MAX
        # What is to be said waits for a welcome.
        say_at = self._releases.say_at if self.welcomed else None
        due = (self._quiet_at, self.link.session.due, self._view_at, reach_at, say_at)
        return min(at for at in due if at is not None)

    def tick(self) -> None:
        now = self._clock().seconds
        self._judge.tick(now)
        for key in self._targets.refused():
            self._children.give_up(key)
        if self._quiet_at is not None and self._quiet_at <= now:
            self._quiet_at = None
            self._acknowledge()
            self._store_cursor()
            if self.caught_up and self._wants.current():
                self.link.session.hurry(now)
        if self.welcomed and self._releases.take_due(now):
            self.link.session.hurry(now)
        if self._view_at <= now:
            self._view_at = now + VIEW_LOOK_SECONDS
            self._look_at_view(now)

    # The session.

    def linked(self, *, up: bool) -> None:
        """The way to the parent opened or was lost."""
        self.link.linked(self._clock().seconds, up=up)
        self._content.link(up=up)

    def take_welcome(self, message: Welcome) -> None:
        """Take the parent's answer to a hello."""
        former, incarnation = self.welcomed, self.link.reader.incarnation
        start = self.link.welcomed(message, self._clock().seconds)
        if not self.welcomed:
            return
        self._note_read()
        if start == 1 or message.incarnation != incarnation:
            self._judge.forget_places()
            self._unverified.clear()
        if message.snapshot:
            self._offer(message.snapshot, None)
        if not former:
            self._content.retry_all()
        if self.link.take_repeat() or not former:
            self._sender.begin(message.incarnation)
            for accepted in self._book.deltas():
                self._reports.touch(accepted.key)
            self.may_advance = True
        if start is not None:
            self._read_from(start)
            self._at_end()
            self.may_advance = True

    def say_hello_in_time(self) -> None:
        """Say hello if one is due."""
        now, due = self._clock().seconds, self.link.session.due
        if due is not None and due <= now:
            self._say_hello()
            self.link.session.hello_sent(now)

    def hurry(self) -> None:
        """Say hello now: it says something that the parent is to act on."""
        self.link.session.hurry(self._clock().seconds)

    def farewell(self) -> None:
        """Tell the parent that this run ends, so that it need not wait for it."""
        if self.welcomed:
            self._say_hello(farewell=True)

    def restore_snapshot(self, snapshot: VerifiedSnapshot) -> None:
        """Take in the newest snapshot that a former run verified."""
        cursor = self._stored_cursor
        if cursor is not None and cursor.reached_rank == snapshot.rank:
            self._judge.restore(snapshot)
        else:
            was_read = cursor is not None and cursor.snapshot_rank == snapshot.rank
            at = cursor.snapshot_sequence if cursor is not None and was_read else None
            self._judge.offer(snapshot, at, self._clock().seconds)

    def shown_by_child(self, snapshot: VerifiedSnapshot) -> None:
        """A child showed a snapshot that is newer than any here."""
        newest = self._judge.newest
        known = max(self._shown_below[0], newest.rank if newest is not None else NO_SNAPSHOT)
        if snapshot.rank > known:
            self._shown_below = snapshot.rank, snapshot.data
            self.link.session.hurry(self._clock().seconds)

    # Mail.

    def take_mail(self, event: MailArrived) -> None:
        """Judge a message of the own mailbox, act on it, and say how far all is judged."""
        if not self.welcomed or self._is_reset:
            return
        self._content.carry(event.carried)
        self._quiet_at = self._clock().seconds + QUIET_SECONDS
        if event.key == SNAPSHOT_KEY:
            self._offer(event.data, event.sequence)
        else:
            self._judge_mail(event)
        at_end = self.link.reader.arrived(event)
        if at_end or not event.pending:
            self._at_end()
            self._note_read()
        if at_end:
            self._let_go_unshown()
        self._unacknowledged += 1
        if at_end or self._unacknowledged >= ACKNOWLEDGE_EVERY:
            self._acknowledge()
        self.may_advance = True

    def _at_end(self) -> None:
        """The mailbox was read to its end: what waited for a key has waited long enough."""
        reader = self.link.reader
        if not reader.caught_up:
            return
        self.judge_parked()
        if reader.parked.is_to_be_reread:
            self._read_from(reader.reread())

    def _note_read(self) -> None:
        """Once the mailbox was read to its end, what a former run did not remove may go."""
        if not self.was_read and self.caught_up:
            self.was_read = True
            if self._destination is not None:
                self._out.append(WantsChanged())

    def _read_from(self, sequence: int) -> None:
        self._is_reset = True
        self._out.append(ResetMail(sequence))

    def _acknowledge(self) -> None:
        """Say up to where mail is kept here: what is not said in time is only brought again."""
        self._unacknowledged = 0
        self._out.append(AckMail(self.link.reader.judged))

    def judge_parked(self) -> None:
        """Judge again what waited for a key or for a snapshot."""
        if not self.welcomed:
            return
        parked = self.link.reader.parked
        for event in parked:
            parked.forget(event)
            self._judge_mail(event)
        self.may_advance = True

    def _judge_mail(self, event: MailArrived) -> None:
        reader, newest = self.link.reader, self._judge.newest
        may_take_new = newest is not None and self._may_rely_on(newest)
        if newest is not None and not may_take_new and not self._told_expired:
            self._told_expired = True
            self._out.append(Noted(EXPIRED_VIEW, "snapshot", EXPIRED))
        ruling = self._acceptance.judge(event, keys_read=reader.caught_up, admits_new=may_take_new)
        if isinstance(ruling, Undecided):
            reader.parked.put(event)
            if ruling.missing is MissingInput.SNAPSHOT and may_take_new:
                # Its place in the snapshot was not of interest so far.
                self._interest_grew = True
            return
        reader.parked.forget(event)
        match ruling:
            case RecordRefusal(reason, detail):
                self.refuse(reason, f"mail {event.key}", detail)
            case HeldVersion(accepted) | ListedBelow(accepted):
                self._show(accepted)
            case NewVersion(accepted) if not self._is_withheld(accepted):
                self._take(accepted, event)
            case Superseded():
                # The mailbox holds that, and not what the node holds.
                reader.forget(event.key)
            case NewVersion():
                pass

    def _is_withheld(self, accepted: AcceptedRecord) -> bool:
        """Whether only a Location's head came, and it selects somebody here: it stays outdated."""
        location, former = accepted.record, self._book.get(accepted.key)
        if former is None or not former.full or not isinstance(location, LocationHead):
            return False
        return self._audience.has_instances(location, self._here)

    def _may_rely_on(self, snapshot: VerifiedSnapshot) -> bool:
        """Not on one that expired, without memory: who shows it may show an old state."""
        return admits_new(
            snapshot.record,
            self._clock().wall_ms,
            with_memory=self.has_memory,
            expired_allowed=self._config.accept_expired,
        )

    def refuse(self, reason: str, subject: str, detail: str) -> None:
        """Count and note what is never acted on."""
        self._refusals[reason] += 1
        self._out.append(Noted(reason, subject, detail))

    def _take(self, accepted: AcceptedRecord, event: MailArrived) -> None:
        self._judge.accepted(accepted)
        if accepted.opaque and self._destination is not None:
            self._out.append(Noted("TooNew", f"mail {event.key}", "update this edge"))
        self._out.append(to_keep(accepted, self.link.reader.incarnation, event.sequence))
        self._targets.carry(accepted.key, event.carried)
        self._propagation.put(accepted, event.sequence)
        self._show(accepted)
        if accepted.kind == "keys":
            unverified, self._unverified = list(self._unverified), deque(maxlen=2)
            for data, sequence in unverified:
                self._offer(data, sequence)

    def _show(self, accepted: AcceptedRecord) -> None:
        """The mailbox shows a record that is held, in full or as a head, or one listed below it."""
        key = accepted.key
        self.link.reader.put_version(key, accepted.version)
        if is_delta(accepted):
            self._reports.touch(key)
            self._let_go(key)

    def _let_go(self, key: MailKey) -> None:
        """Keep only the head of a delta that the mailbox does not hold, if nobody here is meant."""
        held = self._book.get(key)
        if not is_delta(held) or self.link.reader.shows_in_full(key):
            return
        if not held.full or held.opaque or self._is_meant(key):
            return
        head = held.head()
        self._book.put(head)
        self._reports.touch(key)
        self._content.end(mail_owner(key))
        self._out.append(to_keep(head, self.link.reader.incarnation))

    def _let_go_unshown(self) -> None:
        """Look at what the mailbox shows as a head, or not at all, as after a restored disk.

        What meant it may have been dropped after its head was read.
        """
        reader = self.link.reader
        if not reader.caught_up:
            return
        for accepted in self._book.deltas():
            if accepted.full and not reader.shows_in_full(accepted.key):
                self._let_go(accepted.key)

    def _is_meant(self, key: MailKey) -> bool:
        if self._audience.concerned(key) or self._audience.expected(key, HERE):
            return True
        return self._here is not None and self._audience.bears_on(self._here, key)

    @property
    def _here(self) -> Profile | None:
        return self._destination.profile if self._destination is not None else None

    def begin_batch(self) -> None:
        """Mail that comes now follows from what was said of the mailbox before."""
        self._is_reset = False
        self._content.begin_batch()

    # Snapshots.

    def _offer(self, data: bytes, sequence: int | None) -> None:
        # Each welcome shows one, mostly that which is known.
        known = (s for s in (self._judge.newest, self._judge.reached) if s and s.data == data)
        verified = next(known, None) or self._acceptance.snapshot(data)
        if isinstance(verified, RecordRefusal) and verified == UNKNOWN_KEY and not self.caught_up:
            self._unverified.append((data, sequence))
            return
        if isinstance(verified, RecordRefusal):
            self.refuse(verified.reason, "snapshot", verified.detail)
            return
        self.link.note_shown(verified.rank)
        now = self._clock().seconds
        self._view.observe(verified.record, now)
        if self._judge.offer(verified, sequence, now):
            self._out.append(StoreOwn(SNAPSHOT_KEY, data, verified.generation))
            self.judge_parked()

    def read_snapshots(self) -> None:
        """Have what is missing of snapshots fetched, and take in what is here."""
        if self._content.knows(SNAPSHOTS):
            # What cannot be had is passed once other parts came, or another snapshot.
            others = self._snapshots_asked_for != self._judge.under_way
            news = others or self._content.plains(SNAPSHOTS)
            if self._content.refused_since(SNAPSHOTS) is None or not news:
                return
            self.take_nodes()
        if self._interest_grew:
            self._interest_grew = False
            self._judge.rejudge()
        self._snapshots_asked_for = self._judge.under_way
        while missing := self._judge.read_more():
            if not self._content.begin(SNAPSHOTS, missing, read=True, expand=False):
                return
            self.take_nodes()

    def take_nodes(self) -> None:
        """Take in what came of snapshots, and go on with them."""
        nodes = dict(self._content.plains(SNAPSHOTS))
        self._content.end(SNAPSHOTS)
        for address, plain in nodes.items():
            try:
                self._judge.take(address, plain)
            except SnapshotRefused as error:
                self.refuse("BadSnapshot", address[:12], str(error))
        if not self._judge.read_more():
            self.judge_parked()

    def try_to_reach(self) -> bool:
        """Reach the snapshot that is next, if all that it needs is here, or is long overdue.

        Whether it was reached: then another may be next.
        """
        candidate = self._judge.candidate
        if candidate is not None and not self._may_rely_on(candidate.snapshot):
            candidate = self._judge.skip_candidate()
        if candidate is None or candidate.standings is None:
            return False
        if not candidate.restored:
            if not self._has_all_for(candidate, candidate.standings):
                return False
            self.has_memory = True
            self._children.allow_writing()
        orphaned = self._judge.standings.orphaned
        standings = self._judge.reach()
        for key in sorted(orphaned.keys() ^ standings.orphaned.keys()):
            self._reports.touch(key)
        for key, generation in standings.take_dropped().items():
            held = self._book.get(key)
            if held is not None and held.generation == generation:
                self._out.append(Noted("Dropped", held.record.source.name, "not in force any more"))
                self.forget(key)
        self._reached(candidate.snapshot)
        return True

    def _has_all_for(self, candidate: Judgement, standings: Standings) -> bool:
        """Whether the mailbox was read through it, and all that it needs is here, or overdue."""
        at = candidate.sequence
        if at is None or self.link.reader.judged < at or not self.welcomed:
            return False
        if not (self.has_memory or self.caught_up):
            # What is newer than its first snapshot only the end of the mailbox tells.
            return False
        if not self._may_rely_on(candidate.snapshot):
            return False
        if not candidate.overdue and self._may_have_passed_over(standings):
            self._look_again(candidate)
        return candidate.overdue or not (standings.outdated or self._awaits_content())

    def _may_have_passed_over(self, standings: Standings) -> bool:
        """Whether something is outdated that was not so before, or a Location's head came."""
        outdated, before = standings.outdated.keys(), self._judge.standings.outdated.keys()
        return not outdated <= before or any(map(self._book.is_location, outdated))

    def _look_again(self, candidate: Judgement) -> None:
        """Read the mailbox once more: what a snapshot lists may have been read before it.

        So it is where a centre that was restored lists an older record than the one held.
        """
        if self.caught_up and candidate.take_reread():
            self._read_from(self.link.reader.reread())

    def _reached(self, snapshot: VerifiedSnapshot) -> None:
        standings = self._judge.standings
        apart = {**standings.outdated, **standings.orphaned}
        left_out = [(k, a.version) for k in apart if (a := self._book.get(k)) is not None]
        self._children.reached(snapshot, left_out)
        self.link.reader.reached(snapshot.generation, left_out)
        self._store_cursor()
        self.may_advance = True
        if self._destination is not None:
            self._out.append(WantsChanged())
        for accepted in self._book.deltas():
            if accepted.key in apart:
                self._reports.touch(accepted.key)
        self._let_go_unshown()

    def forget(self, key: MailKey) -> None:
        """Hold a record no more."""
        self._judge.forget(key)
        self.link.reader.forget(key)
        self._propagation.drop(key)

    def _awaits_content(self) -> bool:
        here = self._destination is not None and self._destination.awaits_content
        return here or self._children.awaits_content()

    def interest(self) -> SnapshotInterest:
        """What snapshots are read for: keys of what is held and of what waits, the own subtree."""
        waiting = (event.key for event in self.link.reader.parked if event.key != KEYS_KEY)
        keys = map(mail_entry_key, (*self._book.without_path(), *waiting))
        return SnapshotInterest([*keys, *self._wants.places_below()], self._config.path)

    # What is said upward.

    def child_progressed(self) -> None:
        """A child answered more of what followed from the own mailbox."""
        self.may_advance = True

    def say_progress(self) -> None:
        """Say up to where what was reported reflects the own mailbox."""
        self.may_advance = False
        reader, unjudged = self.link.reader, self._judge.unjudged_sequence()
        if reader.state is Reading.REREADING:
            # It would not speak of what was lost.
            return
        judged = reader.judged if unjudged is None else min(reader.judged, unjudged - 1)
        causes = self._children.open_causes()
        through = self._watermark.advance(reader.incarnation, judged, causes)
        mail = reader.digest if through == reader.judged else b""
        self._sender.progress(through, mail, self._rank_reached.generation)

    def _say_hello(self, *, farewell: bool = False) -> None:
        newest = self._judge.newest
        own = (newest.rank, newest.data) if newest is not None else (NO_SNAPSHOT, b"")
        hello = self.link.hello(
            self._rank_reached.generation,
            max(self._shown_below, own),
            self._wants.current() if self.caught_up else (),
            levels=self._children.levels(),
            refused=self.refused,
            orphaned=len(self._judge.standings.orphaned),
            farewell=farewell,
            copies=self._copies_word(),
            progress=self._sender.sent_progress if self.welcomed else None,
            newest=own[0],
            running=self._releases.running(),
            wire=self._releases.wire,
        )
        self._out.append(SendHello(encode(hello)))

    def _copies_word(self) -> int:
        if self._destination is None or not self._destination.upsync.in_use:
            return 0
        seen, now = self._destination.upsync.observed, self._clock().seconds
        behind = 0.0 if seen.behind_since is None else now - seen.behind_since
        return copies_word(stated=seen.stated, behind_seconds=behind)

    def look_at_wants(self) -> None:
        """A child may want what no one here had an interest in: have that part read."""
        self._interest_grew = self._interest_grew or self._wants.lack_listing()

    def _store_cursor(self) -> None:
        reader = self.link.reader
        cursor = reader.cursor(
            self._judge.place_of_newest, self._rank_reached, has_memory=self.has_memory
        )
        if cursor != self._stored_cursor:
            self._stored_cursor = cursor
            self._out.append(StoreOwn(CURSOR_KEY, encode(cursor)))

    def _look_at_view(self, now: float) -> None:
        stale = self._view.stale(now)
        if stale == self.stale:
            return
        self.stale = stale
        reason = STALE_VIEW if stale else FRESH_VIEW
        detail = STALE.partition(": ")[2] if stale else "a newer snapshot came"
        self._out.append(Noted(reason, "snapshot", detail))
        for accepted in self._book.deltas():
            self._reports.touch(accepted.key)
