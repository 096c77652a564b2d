"""A node of the tree as a state machine: events in, effects out, the same at every tier.

This module only wires the rooms together: records, audience, link, content, reports, destination.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, assert_never

from relay.core.audience import HERE, Audience
from relay.core.config import NodeConfig
from relay.core.content.content import CONTENT_REFUSED, Content
from relay.core.content.sweeping import Sweeper
from relay.core.destination.claims import Wanted
from relay.core.destination.destination import Destination
from relay.core.effects import (
    AckMail,
    CountChanged,
    DropReport,
    Effect,
    LoadBlob,
    Noted,
    ResetMail,
    SendHello,
    SnapshotShown,
    StoreOwn,
    WantsChanged,
)
from relay.core.events import (
    BlobArrived,
    Ending,
    Event,
    HelloArrived,
    Instant,
    Issued,
    LinkChanged,
    MailArrived,
    MailWritten,
    ObjectObserved,
    Remembered,
    ReportArrived,
    SnapshotIssued,
    Tick,
    Welcomed,
)
from relay.core.link.children import Children
from relay.core.link.parent import QUIET_SECONDS, ParentLink
from relay.core.link.progress import Watermark
from relay.core.link.session import Presence
from relay.core.link.target import Targets, mail_owner
from relay.core.propagation import Propagation
from relay.core.records.acceptance import Acceptance, Known, Lack, Park, Refuse, Superseded, Take
from relay.core.records.accepted import Accepted, is_delta, to_keep
from relay.core.records.book import RecordBook
from relay.core.records.freshness import ViewAge
from relay.core.records.judge import REACH_SECONDS_MAX, SnapshotJudge, VerifiedSnapshot
from relay.core.records.reading import addresses_kept
from relay.core.records.snapshot import Interest, SnapshotView
from relay.core.records.trust import Trust, Verdict
from relay.core.reports.counting import ChildReports, Count, Facts
from relay.core.reports.intake import ReportIntake
from relay.core.reports.reduce import EMPTY, merge
from relay.core.reports.sender import ReportSender
from relay.core.reports.windows import ReportThrottle
from schemas.blobs import Reference
from schemas.codec import CodecError
from schemas.identity import KEYS_KEY, SNAPSHOT_KEY, ContentHash, MailKey
from schemas.link import Cursor, Hello, Progress
from schemas.objects import ObjectKey
from schemas.records import LocationRecord, Profile, Record
from schemas.reports import (
    PART_MAX_BYTES,
    Done,
    ExceptionSample,
    ObjectResult,
    Report,
    ReportRefused,
    Summary,
    decode,
    encode,
)
from schemas.signing import Envelope
from schemas.snapshots import SnapshotRefused, mail_entry_key
from schemas.subjects import CURSOR_KEY

STALE = "StaleView: its parent has shown it no newer snapshot for 20 minutes"
OUTDATED = "Withheld: a newer version is in force, and missing from the mailbox at the parent"
WITHHELD = "Withheld: it is in force here, and its content is missing from the mailbox"
VIEW_LOOK_SECONDS = 60.0
WAITING_FOR_MAX = 20
SNAPSHOT_OWNER = "snapshot"


class Orphan(NamedTuple):
    """A record in force that the centre does not know."""

    key: MailKey
    kind: str
    namespace: str
    name: str
    generation: int
    term: str


class Node:
    """One node. Feed it events in order, carry out the effects in order, wake it at `deadline`."""

    def __init__(
        self, config: NodeConfig, remembered: Remembered, done: Iterable[Done], now: Instant
    ) -> None:
        self.config = config
        self._now = now
        self._out: list[Effect] = []
        path, self._is_root = config.path, config.path.is_root
        cursor = self._read_cursor(remembered)
        self._has_memory = self._is_root or (cursor is not None and cursor.has_memory)
        self._trust = Trust(config.tree, config.roots)
        self._book = RecordBook(path)
        self._audience = Audience(path)
        self._content = Content(remembered.blobs, self._out)
        self._judge = SnapshotJudge(self._book.judged, self._interest)
        self._acceptance = Acceptance(path, config.tree, self._trust, self._book, self._judge)
        self._targets = Targets(
            self._book,
            self._audience,
            self._content,
            lambda: self._now.seconds,
            has_all_content=self._is_root,
        )
        self._children = Children(
            config.incarnation, self._targets, self._out, self._child_changed
        )
        self._children.may_write = self._has_memory
        self._places: dict[str, int] = {}
        self._reports = ChildReports(self._place, self._facts)
        self._intake = ReportIntake(path, self._sent_generation, self._arms_of)
        self._sender = ReportSender(config.incarnation, self._out)
        self._throttle = ReportThrottle()
        self._watermark = Watermark()
        self._through = 0
        # At the centre, placements whose count was not exact when it was said last.
        self._inexact: dict[MailKey, None] = {}
        self._destination: Destination | None = None
        if config.attached:
            self._destination = Destination(
                path, self._audience, self._content, done, config.former
            )
        self._joined = set(remembered.heard)
        self._propagation = Propagation(
            path,
            self._book,
            self._audience,
            self._trust,
            self._children,
            self._reports,
            self._content,
            self._destination,
            self._joined,
            self._out,
        )
        self._parent = None
        if not self._is_root:
            self._parent = ParentLink(config.incarnation, config.home, cursor)
        self._snapshot_sequence = cursor.snapshot_sequence if cursor is not None else 0
        self._stored_cursor = cursor
        self._quiet_at: float | None = None
        self._view = ViewAge(now.seconds)
        self._stale = False
        self._view_at = now.seconds + VIEW_LOOK_SECONDS
        # The newest signed snapshot that a child showed, with its generation.
        self._shown_below: tuple[int, bytes] = (0, b"")
        self._refused = 0
        self._sweeper = Sweeper(
            self._content, self._roots, self._knows_all, self._kept_nodes, self._out, now.seconds
        )
        self._restore(remembered)
        self._after()
        self._started = self._take_out()

    # The machine.

    def start(self) -> tuple[Effect, ...]:
        """What follows from what the node's streams held; once, before the first event."""
        started, self._started = self._started, ()
        return started

    def handle(self, event: Event, now: Instant) -> tuple[Effect, ...]:
        """What to do about an event, in this order."""
        self._now = now
        self._dispatch(event)
        self._after()
        return self._take_out()

    def deadline(self) -> float | None:
        """The monotonic second at which the node wants a Tick; None if nothing is due."""
        candidate = self._judge.candidate
        due = (
            self._throttle.ends,
            self._content.deadline(),
            self._children.deadline(),
            self._sweeper.deadline(),
            self._quiet_at,
            self._parent.session.due if self._parent is not None else None,
            self._view_at if self._parent is not None else None,
            candidate.since + REACH_SECONDS_MAX if candidate is not None else None,
        )
        return min((at for at in due if at is not None), default=None)

    def check(self) -> None:
        """Assert what must hold between events."""
        self._book.check()
        self._audience.check()
        self._children.check()
        self._reports.check()
        self._sender.check()
        if self._parent is not None:
            self._parent.reader.check()

    def _dispatch(self, event: Event) -> None:  # noqa: C901 - one arm for each event
        now = self._now.seconds
        match event:
            case MailArrived():
                self._mail(event)
            case Welcomed(message):
                self._welcomed(message)
            case LinkChanged(up):
                if self._parent is not None:
                    self._parent.linked(now, up=up)
                    self._content.link(up=up)
            case Ending():
                self._farewell()
            case BlobArrived():
                self._blob(event)
            case ReportArrived():
                self._report(event)
            case HelloArrived(child, data):
                self._hello_of(child, data)
            case Issued():
                self._issued(event)
            case SnapshotIssued():
                self._snapshot_issued(event)
            case MailWritten():
                self._children.written(event, now)
            case ObjectObserved():
                if self._destination is not None:
                    for key in self._destination.observe(event):
                        self._reports.touch(key)
                        if not self._destination.at_work(key):
                            self._throttle.hurry(now)
            case Tick():
                self._tick()
            case _:
                assert_never(event)

    def _tick(self) -> None:
        now = self._now.seconds
        self._content.retry(now)
        self._sweeper.tick(now)
        self._children.tick(now, self._now.wall_ms)
        self._judge.give_way(now)
        if self._quiet_at is not None and self._quiet_at <= now:
            self._quiet_at = None
            self._store_cursor()
            if self._parent is not None:
                self._parent.session.hurry(now)
        if self._view_at <= now:
            self._view_at = now + VIEW_LOOK_SECONDS
            self._look_at_view()

    def _after(self) -> None:
        """What every event may lead to."""
        self._read_snapshots()
        self._resolve_destination()
        self._try_to_reach()
        self._children.flush(self._now.seconds)
        self._report_in_time()
        self._say_hello_in_time()

    def _take_out(self) -> tuple[Effect, ...]:
        taken = tuple(self._out)
        self._out.clear()
        return taken

    # From above.

    def _welcomed(self, message: object) -> None:
        from schemas.link import Welcome

        assert isinstance(message, Welcome)
        parent, now = self._parent, self._now.seconds
        if parent is None:
            return
        former = parent.session.welcomed
        start = parent.welcomed(message, now)
        if not parent.session.welcomed:
            return
        if message.snapshot:
            self._offer(message.snapshot, None)
        if not former:
            self._content.retry_all()
        if parent.say_again or not former:
            parent.say_again = False
            self._sender.begin(message.incarnation)
            for accepted in self._book.deltas():
                self._reports.touch(accepted.key)
            self._through = -1
        if start is not None:
            self._out.append(ResetMail(start))
            self._at_end()

    def _mail(self, event: MailArrived) -> None:
        parent = self._parent
        if parent is None or not parent.session.welcomed:
            return
        self._quiet_at = self._now.seconds + QUIET_SECONDS
        before = len(self._out)
        if event.key == SNAPSHOT_KEY:
            self._offer(event.data, event.sequence)
        else:
            self._judge_mail(event)
        self._use_carried(event, before)
        at_end = parent.reader.arrived(event)
        if at_end or not event.pending:
            self._at_end()
        self._out.append(AckMail(parent.reader.judged))

    def _at_end(self) -> None:
        """The mailbox was read to its end: what waited for a key has waited long enough."""
        parent = self._parent
        if parent is None or not parent.reader.caught_up:
            return
        self._judge_parked()
        if parent.reader.parked.overflowed and parent.reader.parked.roomy:
            self._out.append(ResetMail(parent.reader.reread()))

    def _judge_mail(self, event: MailArrived) -> None:
        parent = self._parent
        assert parent is not None
        reader = parent.reader
        newest = self._judge.newest
        admits_new = newest is not None and (
            self._has_memory
            or self.config.accept_expired
            or self._now.wall_ms < newest.record.expires_ms
        )
        ruling = self._acceptance.judge(
            event, keys_read=reader.caught_up, admits_new=admits_new
        )
        if isinstance(ruling, Park):
            reader.parked.put(event)
            if ruling.lack is Lack.SNAPSHOT and ruling.accepted is not None:
                self._judge_needs(ruling.accepted)
            return
        reader.parked.forget(event.key)
        match ruling:
            case Refuse(reason, detail):
                self._refused += 1
                self._out.append(Noted(reason, f"mail {event.key}", detail))
            case Superseded():
                pass
            case Known(accepted):
                self._shown(accepted)
            case Take(accepted):
                self._take(accepted, event)

    def _take(self, accepted: Accepted, event: MailArrived) -> None:
        parent = self._parent
        assert parent is not None
        known = self._book.get(accepted.key)
        if known is None or known.generation < accepted.generation:
            self._judge.accepted(accepted)
        if accepted.opaque and self._destination is not None:
            self._out.append(Noted("TooNew", f"mail {event.key}", "update this edge"))
        self._out.append(to_keep(accepted, parent.reader.incarnation, event.sequence))
        self._targets.carry(accepted.key, event.carried)
        parent.reader.holds(
            accepted.key, accepted.generation, accepted.digest_term, full=accepted.full
        )
        self._propagation.put(accepted, event.sequence, self._now.seconds)
        self._let_go(accepted.key)

    def _shown(self, accepted: Accepted) -> None:
        """The mailbox shows a record that is held, in full or as a head."""
        parent = self._parent
        assert parent is not None
        parent.reader.holds(
            accepted.key, accepted.generation, accepted.digest_term, full=accepted.full
        )
        self._reports.touch(accepted.key)
        self._let_go(accepted.key)

    def _let_go(self, key: MailKey) -> None:
        """Keep only the head of a delta that the mailbox shows as one, if nobody here is meant."""
        parent, held = self._parent, self._book.get(key)
        if parent is None or not is_delta(held) or key not in parent.reader.heads:
            return
        if not held.full or held.opaque or self._is_meant(key):
            return
        head = held.head()
        self._book.hold(head)
        self._content.end(mail_owner(key))
        self._out.append(to_keep(head, parent.reader.incarnation))

    def _is_meant(self, key: MailKey) -> bool:
        """Whether a placement is meant for anyone at or below this node."""
        return bool(self._audience.concerned(key)) or self._audience.expected(key, HERE) > 0

    def _judge_parked(self) -> None:
        parent = self._parent
        if parent is None or not parent.session.welcomed:
            return
        for event in parent.reader.parked:
            parent.reader.parked.forget(event.key)
            self._judge_mail(event)
        self._out.append(AckMail(parent.reader.judged))

    def _use_carried(self, event: MailArrived, before: int) -> None:
        """Take small blobs that came along instead of loading them."""
        carried = dict(event.carried)
        at = before
        while carried and at < len(self._out):
            effect = self._out[at]
            if isinstance(effect, LoadBlob) and effect.reference.address in carried:
                del self._out[at]
                value = carried[effect.reference.address]
                self._blob(BlobArrived(effect.reference, value, local=False))
            else:
                at += 1

    # Snapshots.

    def _offer(self, data: bytes, sequence: int | None) -> None:
        verified = self._acceptance.snapshot(data)
        if isinstance(verified, Refuse):
            self._refused += 1
            self._out.append(Noted(verified.reason, "snapshot", verified.detail))
            return
        if sequence is not None:
            self._snapshot_sequence = sequence
        parent = self._parent
        if parent is not None:
            parent.shown_by_parent = max(parent.shown_by_parent, verified.generation)
        self._view.saw(verified.record.time_ms, self._now.seconds)
        if self._judge.offer(verified, sequence, self._now.seconds):
            self._out.append(StoreOwn(SNAPSHOT_KEY, data, verified.generation))
            self._judge_parked()

    def _judge_needs(self, accepted: Accepted) -> None:
        """A record that waits needs blobs of the newest snapshot that were not of interest."""
        self._judge.look_anew()

    def _read_snapshots(self) -> None:
        """Have what is missing of snapshots fetched, and take in what is here."""
        while (missing := self._judge.read_more()) and not self._content.awaits(SNAPSHOT_OWNER):
            if not self._content.begin(SNAPSHOT_OWNER, missing, read=True, expand=False):
                return
            self._take_nodes()
            if not self._judge.read_more():
                self._judge_parked()

    def _take_nodes(self) -> None:
        for address, plain in self._content.plains(SNAPSHOT_OWNER).items():
            try:
                self._judge.take(address, plain)
            except SnapshotRefused as error:
                self._out.append(Noted("BadSnapshot", address[:12], str(error)))
        self._content.end(SNAPSHOT_OWNER)

    def _try_to_reach(self) -> None:
        parent, candidate = self._parent, self._judge.candidate
        if parent is None or candidate is None or candidate.standings is None:
            return
        restored = candidate.since == 0.0
        if not restored:
            read = candidate.sequence is not None and parent.reader.judged >= candidate.sequence
            if not read or not parent.session.welcomed:
                return
            overdue = self._now.seconds - candidate.since >= REACH_SECONDS_MAX
            lacks = bool(candidate.standings.outdated) or self._awaits_content()
            if lacks and not overdue:
                return
        snapshot = candidate.snapshot
        standings = self._judge.reach()
        dropped = [
            key
            for key, generation in standings.dropped.items()
            if (held := self._book.get(key)) is not None and held.generation == generation
        ]
        for key in dropped:
            self._drop(key)
        standings.dropped.clear()
        if not restored:
            self._has_memory = self._children.may_write = True
        self._reached(snapshot)

    def _reached(self, snapshot: VerifiedSnapshot) -> None:
        """A snapshot is reached: what it and its `settled` take away may go."""
        standings = self._judge.standings
        apart = {**standings.outdated, **standings.orphaned}
        terms = [(k, a.digest_term) for k in apart if (a := self._book.get(k)) is not None]
        self._children.reached(snapshot, terms)
        if self._parent is not None:
            self._parent.reader.reached(snapshot.generation, apart)
            self._store_cursor()
        if self._destination is not None:
            self._out.append(WantsChanged())
        self._throttle.gather(self._now.seconds)

    def _drop(self, key: MailKey) -> None:
        held = self._book.get(key)
        if held is not None:
            self._out.append(Noted("Dropped", held.record.source.name, "gone from the snapshot"))
        self._judge.forget(key)
        if self._parent is not None:
            self._parent.reader.forget(key)
        self._propagation.drop(key)

    def _awaits_content(self) -> bool:
        if self._destination is not None and self._destination.awaits_content:
            return True
        return self._children.awaits_content()

    def _interest(self) -> Interest:
        """Of snapshots: the keys of what is held and of what waits, and the own subtree."""
        keys = [
            mail_entry_key(accepted.key)
            for accepted in self._book.judged()
            if is_delta(accepted) or isinstance(accepted.record, LocationRecord)
        ]
        if self._parent is not None:
            waiting = (event.key for event in self._parent.reader.parked)
            keys += [mail_entry_key(key) for key in waiting if key != KEYS_KEY]
        return Interest(keys, self.config.path)

    # From the centre's own controllers.

    def _issued(self, event: Issued) -> None:
        self._content.held |= event.blobs
        accepted = self._acceptance.read("issued here", event.data, event.hops)
        if isinstance(accepted, Refuse):
            self._out.append(Noted(accepted.reason, "issued here", accepted.detail))
            return
        self._targets.carry(accepted.key, event.carried)
        self._propagation.put(accepted, 0, self._now.seconds)

    def _snapshot_issued(self, event: SnapshotIssued) -> None:
        self._content.held |= event.blobs
        verified = self._acceptance.snapshot(event.data)
        if isinstance(verified, Refuse):
            self._out.append(Noted(verified.reason, "snapshot", verified.detail))
            return
        for key in event.dropped:
            self._drop(key)
        self._judge.reached = verified
        self._reached(verified)

    # From below.

    def _hello_of(self, child: str, data: bytes) -> None:
        if child not in self._children.by_name:
            return
        try:
            hello = decode(Hello, data, PART_MAX_BYTES)
        except ReportRefused as error:
            self._refuse(child, error.reason)
            return
        now = self._now
        if hello.run and child not in self._joined:
            self._joined.add(child)
        if self._children.hello(child, hello, now.seconds, now.wall_ms):
            self._reports.expect_all(child, hello.run)
        if hello.shown:
            self._shown_by_child(hello.shown)
        for key in hello.wants:
            self._wanted_below(child, key)

    def _shown_by_child(self, data: bytes) -> None:
        verified = self._acceptance.snapshot(data)
        newest = self._judge.newest
        if isinstance(verified, Refuse) or verified.generation <= self._shown_below[0]:
            return
        if newest is not None and verified.generation <= newest.generation:
            return
        self._shown_below = verified.generation, data
        if self._is_root:
            self._out.append(SnapshotShown(verified.generation))
        elif self._parent is not None:
            self._parent.session.hurry(self._now.seconds)

    def _wanted_below(self, child: str, key: MailKey) -> None:
        """A child asks what became of a record: it is told by what it should have of it."""
        known = self._children.by_name[child]
        if key in self._book.by_key and known.session.is_there:
            known.mailbox.want(key)

    def _report(self, event: ReportArrived) -> None:
        child, now = self._children.by_name.get(event.child), self._now.seconds
        if child is None:
            return
        kept = False
        self._throttle.heard()
        try:
            match self._intake.read(event.child, event.key, event.data):
                case Progress() as progress:
                    kept = True
                    self._progressed(event.child, progress)
                case Report() as report:
                    kept = self._reports.take(event.child, report)
                case None:
                    pass
                case part:
                    kept = self._reports.take_part(event.child, part)
        except ReportRefused as error:
            self._refuse(event.child, error.reason)
        else:
            self._children.heard(event.child, now)
        if not kept and event.sequence:
            self._out.append(DropReport(event.child, event.key, event.sequence))

    def _progressed(self, name: str, progress: Progress) -> None:
        now, child = self._now.seconds, self._children.by_name[name]
        for slot in self._reports.forget_unsaid(name, progress.run):
            self._out.append(DropReport(name, slot, 0))
        if not self._children.progressed(name, progress, self._reports.digest(name), now):
            return
        for key, slot in list(child.mailbox.slots.items()):
            if slot.full:
                continue
            if self._reports.is_gone(name, key) and child.mailbox.clear(key, child.through):
                self._reports.refresh(name, key)
        for key in [key for key in child.mailbox.slots if self._selects_no_more(key, name)]:
            child.mailbox.clear(key, child.through)
        for key in self._inexact:
            self._reports.touch(key)
        self._throttle.gather(now)

    def _selects_no_more(self, key: MailKey, child: str) -> bool:
        held = self._book.get(key)
        if held is None or not isinstance(held.record, LocationRecord):
            return False
        return not self._audience.expected(key, child)

    def _child_changed(self, name: str) -> None:
        self._propagation.child_changed(name)

    def _refuse(self, child: str, reason: str) -> None:
        self._refused += 1
        known = self._children.by_name[child]
        known.refused += 1
        if known.refused in (1, 10, 100) or known.refused % 1000 == 0:
            self._out.append(Noted("BadReport", child, reason))

    def _facts(self, child: str, key: MailKey) -> Facts:
        held, known = self._book.get(key), self._children.by_name.get(child)
        expected = self._audience.expected(key, child)
        return Facts(
            expected,
            known is not None and key in known.mailbox.slots,
            held.generation if held is not None else 0,
            self._children.presence(child),
            expected == 1 and self._book.is_edge(child),
        )

    def _sent_generation(self, child: str, key: MailKey) -> int | None:
        slot = self._children.by_name[child].mailbox.slots.get(key)
        held = self._book.get(key)
        known = [slot.generation] if slot is not None else []
        if held is not None:
            known.append(held.generation)
        if self._reports.knows(child, key):
            known.append(self._reports.generation(child, key))
        return max(known, default=None)

    def _arms_of(self, key: MailKey) -> frozenset[str] | None:
        held = self._book.get(key)
        if held is None or held.body is None:
            return None
        return frozenset(gate.arm.address for gate in held.body.gates if gate.arm is not None)

    def _place(self, child: str) -> int:
        return self._places.setdefault(child, len(self._places))

    # Content.

    def _blob(self, event: BlobArrived) -> None:
        self._sweeper.arrived(event)
        for owner in self._content.arrived(event, self._now.seconds):
            kind, _, key = owner.partition("/")
            if owner == SNAPSHOT_OWNER:
                self._take_nodes()
                if not self._judge.read_more():
                    self._judge_parked()
            elif kind == "mail":
                self._children.supplied(MailKey(key))
            elif self._destination is not None:
                self._destination.content_ready(MailKey(key))
        for owner in self._content.take_troubled():
            key = owner.partition("/")[2]
            if key:
                self._reports.touch(MailKey(key))

    def _roots(self) -> Iterator[Reference]:
        for accepted in self._book.deltas():
            if accepted.body is not None:
                yield from accepted.body.content
        if self._destination is not None:
            for wanted in self._destination.wanted.values():
                yield wanted.reference

    def _kept_nodes(self) -> Iterator[ContentHash]:
        """The blobs of snapshots that are kept: those that lead to this subtree."""
        for snapshot in (self._judge.reached, self._judge.newest):
            if snapshot is not None:
                view = SnapshotView(snapshot.record, self._judge.nodes)
                yield from addresses_kept(view, self._interest())

    def _knows_all(self) -> bool:
        """Whether every record in force is here, and understood."""
        known = self._is_root or (
            self._has_memory and self._parent is not None and self._parent.reader.caught_up
        )
        return known and not any(accepted.opaque for accepted in self._book.deltas())

    # The destination.

    def _resolve_destination(self) -> None:
        destination = self._destination
        if destination is None or not destination.changed:
            return
        for key in destination.resolve():
            self._reports.touch(key)
        if destination.wants_changed:
            self._out.append(WantsChanged())

    # Upwards.

    def _report_in_time(self) -> None:
        now = self._now.seconds
        if self._reports.is_dirty:
            self._throttle.gather(now)
        if self._parent is not None and self._parent.session.welcomed:
            through = self._advance()
            if through != self._through:
                if through == self._parent.reader.judged:
                    self._throttle.hurry(now)
                else:
                    self._throttle.gather(now)
        if self._throttle.is_over(now) and not self._throttle.put_off(now, self._load()):
            self._flush(now)

    def _load(self) -> int:
        unread = self._parent.reader.unread if self._parent is not None else 0
        return unread + self._children.load()

    def _flush(self, now: float) -> None:
        """Say what changed since the last window, and then how far that reaches."""
        dirty = self._throttle.close(now) | self._reports.take_dirty()
        parent = self._parent
        if parent is None:
            for key in dirty:
                self._out.append(CountChanged(key))
                if key in self._book.by_key and not self.count(key).exact:
                    self._inexact[key] = None
                else:
                    self._inexact.pop(key, None)
            return
        if not parent.session.welcomed:
            for key in dirty:
                self._reports.touch(key)
            self._throttle.ends = None
            return
        for key in dirty:
            self._report_on(key, now)
        self._through = self._advance()
        self._sender.progress(self._through)

    def _report_on(self, key: MailKey, now: float) -> None:
        held, gone = self._book.get(key), self._is_gone(key)
        summary = self.summary(key)
        destination = self._destination
        at_work = destination is not None and not gone and destination.at_work(key)
        if self._throttle.waits(key, now, at_work=at_work and not self._children.by_name):
            return
        own = destination.results(key) if destination is not None else ()
        self._sender.report(
            key,
            summary,
            self._reports.results(key, own).values(),
            generation=held.generation if held is not None else 0,
            gone=gone,
        )
        if gone and held is not None:
            self._forget(key)

    def _is_gone(self, key: MailKey) -> bool:
        """Whether nothing of a placement is left at or below this node, or should be."""
        held = self._book.get(key)
        if held is not None and (held.full or self._is_meant(key)):
            return False
        if any(True for _ in self._children.having(key)):
            return False
        return self._destination is None or self._destination.clean(key)

    def _forget(self, key: MailKey) -> None:
        """Hold no head of a placement of which nothing is left: the parent is told so."""
        self._judge.forget(key)
        assert self._parent is not None
        self._parent.reader.forget(key)
        self._propagation.drop(key)

    def _advance(self) -> int:
        """Up to where what is reported reflects the own mailbox."""
        assert self._parent is not None
        reader = self._parent.reader
        judged = reader.judged
        unjudged = self._judge.unjudged_sequence()
        if unjudged is not None:
            judged = min(judged, unjudged - 1)
        return self._watermark.advance(
            reader.incarnation, judged, self._children.open_causes()
        )

    def _say_hello_in_time(self) -> None:
        parent, now = self._parent, self._now.seconds
        if parent is None or parent.session.due is None or parent.session.due > now:
            return
        self._say_hello()
        parent.session.said(now)

    def _say_hello(self, *, farewell: bool = False) -> None:
        parent = self._parent
        assert parent is not None
        reached, newest = self._judge.reached, self._judge.newest
        shown = max(
            self._shown_below,
            (newest.generation, newest.data) if newest is not None else (0, b""),
        )
        hello = parent.hello(
            reached.generation if reached is not None else 0,
            shown,
            self._wants() if parent.reader.caught_up else (),
            levels=self._children.levels(),
            refused=self._refused,
            orphaned=len(self._judge.standings.orphaned),
            farewell=farewell,
        )
        self._out.append(SendHello(encode(hello)))

    def _wants(self) -> set[MailKey]:
        """What is in force and missing here, or to a child that is there."""
        wanted = set(self._judge.standings.outdated)
        candidate = self._judge.candidate
        if candidate is not None and candidate.standings is not None:
            wanted |= candidate.standings.outdated.keys()
        wanted = {
            key
            for key in wanted
            if not isinstance(self._book.by_key[key].record, Profile)
        }
        for child in self._children.by_name.values():
            if child.session.is_there:
                wanted.update(key for key in child.wants if self._lacks(key))
        return wanted

    def _lacks(self, key: MailKey) -> bool:
        held = self._book.get(key)
        generation = held.generation if held is not None else 0
        try:
            return self._judge.lists_above(mail_entry_key(key), generation)
        except (CodecError, ValueError):
            return False

    def _farewell(self) -> None:
        if self._parent is not None and self._parent.session.welcomed:
            self._say_hello(farewell=True)

    def _store_cursor(self) -> None:
        if self._parent is None:
            return
        cursor = self._parent.reader.cursor(
            self._snapshot_sequence, has_memory=self._has_memory
        )
        if cursor != self._stored_cursor:
            self._stored_cursor = cursor
            self._out.append(StoreOwn(CURSOR_KEY, encode(cursor)))

    def _look_at_view(self) -> None:
        stale = self._view.stale(self._now.seconds)
        if stale != self._stale:
            self._stale = stale
            reason = "StaleView" if stale else "FreshView"
            detail = STALE.partition(": ")[2] if stale else "a newer snapshot came"
            self._out.append(Noted(reason, "snapshot", detail))
        for accepted in self._book.deltas():
            self._reports.touch(accepted.key)

    # What the streams held.

    def _read_cursor(self, remembered: Remembered) -> Cursor | None:
        for own in remembered.own:
            if own.key == CURSOR_KEY:
                try:
                    return decode(Cursor, own.data)
                except ReportRefused as error:
                    self._out.append(Noted("Unreadable", "own cursor", error.reason))
        return None

    def _restore(self, remembered: Remembered) -> None:
        """Take in what the streams hold: keys first, then records, then the children's mail."""
        may_write, self._children.may_write = self._children.may_write, False
        accepted = self._restored_records(remembered)
        for record in accepted:
            if record.kind == "node":
                self._propagation.put(record, 0, self._now.seconds)
        for slot in remembered.mail:
            self._children.restore(slot)
        for record in accepted:
            if record.kind != "node":
                self._propagation.put(record, 0, self._now.seconds)
        self._children.may_write = may_write
        self._propagation.restored()
        self._restore_snapshot(remembered)
        self._children.greet()

    def _restored_records(self, remembered: Remembered) -> list[Accepted]:
        found: list[Accepted] = []
        for own in sorted(remembered.own, key=lambda own: own.key != KEYS_KEY):
            if own.key in (CURSOR_KEY, SNAPSHOT_KEY):
                continue
            read = self._acceptance.read(f"own {own.key}", own.data, own.hops)
            if isinstance(read, Refuse):
                self._out.append(Noted(read.reason, f"own {own.key}", read.detail))
                continue
            found.append(read)
            if self._parent is not None:
                term = read.digest_term
                self._parent.reader.holds(read.key, read.generation, term, full=read.full)
            if read.kind == "keys":
                self._propagation.put(read, 0, self._now.seconds)
        return sorted(found, key=lambda accepted: accepted.generation)

    def _restore_snapshot(self, remembered: Remembered) -> None:
        for own in remembered.own:
            if own.key != SNAPSHOT_KEY:
                continue
            verified = self._acceptance.snapshot(own.data)
            if isinstance(verified, Refuse):
                self._out.append(Noted(verified.reason, "own snapshot", verified.detail))
            elif self._is_root:
                self._judge.reached = verified
                self._children.reached(verified, ())
            else:
                self._judge.restore(verified)

    # What people and controllers ask.

    @property
    def ready(self) -> bool:
        """Whether the node is in session with its parent, and read its mailbox to the end."""
        parent = self._parent
        return parent is None or (self._has_memory and parent.reader.caught_up)

    @property
    def stopped(self) -> bool:
        """Whether another run has this node's place, so that this one does nothing."""
        return self._parent is not None and self._parent.stopped

    @property
    def records(self) -> dict[MailKey, Accepted]:
        """What the node holds, by mail key; not to be changed."""
        return self._book.by_key

    @property
    def wanted(self) -> dict[ObjectKey, Wanted]:
        """At an edge: what its space shall hold."""
        return self._destination.wanted if self._destination is not None else {}

    def may_prune(self, key: ObjectKey) -> bool:
        """Whether the removal of an object that is wanted no more is settled."""
        reached = self._judge.reached
        if self._destination is None or reached is None:
            return False
        return self._destination.may_prune(key, reached.record.settled)

    def summary(self, key: MailKey) -> Summary:
        """What became of a placement in this subtree, as far as it is known now."""
        own = EMPTY
        if self._destination is not None:
            own = self._destination.summary(key, self._now.wall_ms)
        troubles = self._troubles(key)
        if troubles is not EMPTY:
            own = merge(own, troubles)
        return self._reports.summary(key, own)

    def count(self, key: MailKey) -> Count:
        """The same, with whether it is exact: it reflects all that was sent, and sums up."""
        summary = self.summary(key)
        names = dict.fromkeys(self._audience.concerned(key))
        names |= dict.fromkeys(self._children.having(key))
        expected = sum(self._audience.expected(key, name) for name in (*names, HERE))
        counted = summary.destinations - summary.states.get("leaving", 0)

        def bears_on(accepted: Accepted) -> bool:
            record = accepted.record
            return isinstance(record, Profile | LocationRecord) and self._audience.bears_on(
                record, key
            )

        waiting = [n for n in names if not self._children.has_answered(n, key, bears_on)]
        exact = not waiting and counted == expected
        return Count(summary, exact, tuple(sorted(waiting)[:WAITING_FOR_MAX]))

    def results(self, key: MailKey) -> dict[ObjectKey, ObjectResult]:
        """The objects' returned states in this subtree."""
        own = self._destination.results(key) if self._destination is not None else ()
        return self._reports.results(key, own)

    def child_counts(self, key: MailKey) -> dict[str, Summary]:
        """What each child counts for now in a placement, by name."""
        return self._reports.by_child(key)

    def presence_of(self, child: str) -> Presence | None:
        """How it is with a child; None if there is none of this name."""
        return self._children.presence(child) if child in self._children.by_name else None

    def orphans(self) -> list[Orphan]:
        """What is in force here though the centre does not know the term that issued it."""
        found = []
        for key in sorted(self._judge.standings.orphaned):
            accepted = self._book.by_key[key]
            source, record = accepted.record.source, accepted.record
            found.append(
                Orphan(
                    key,
                    accepted.kind,
                    source.namespace,
                    source.name,
                    record.generation,
                    record.term,
                )
            )
        return found

    def judge(self, envelope: Envelope, record: Record) -> Verdict:
        """Whether the node believes a record that the envelope's payload says."""
        return self._trust.judge(envelope, record)

    def lacks(self, addresses: Iterable[ContentHash]) -> frozenset[ContentHash]:
        """Which of these blobs are not in the node's store."""
        return frozenset(addresses) - self._content.held

    def _troubles(self, key: MailKey) -> Summary:
        """What to say of a placement because of how it is here: no content, or no fresh view."""
        held = self._book.get(key)
        if held is None:
            return EMPTY
        reasons = [(1, STALE)] if self._stale else []
        if key in self._judge.standings.outdated:
            reasons.append((1, OUTDATED))
        if is_delta(held) and not held.full and self._is_meant(key):
            reasons.append((1, WITHHELD))
        if self._content.refused_since(mail_owner(key)) is not None:
            reasons.append((0, CONTENT_REFUSED))
        if not reasons:
            return EMPTY
        path = str(self.config.path)
        return Summary(exceptions=tuple(ExceptionSample(n, "", why, 1, path) for n, why in reasons))
