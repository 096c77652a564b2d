"""A node of the tree as a state machine: events in, effects out, the same at every tier.

This module only wires the rooms together: records, audience, link, content, reports, destination.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import assert_never

from relay.core.audience import HERE, Audience
from relay.core.collectors.collected_results import CollectedResults
from relay.core.collectors.ports import CollectorContext, CopyView, Evaluator
from relay.core.config import NodeConfig
from relay.core.content.content import Content
from relay.core.content.destination_keys import DestinationKeys
from relay.core.content.sweeper import Sweeper
from relay.core.content_router import ContentRouter
from relay.core.destination.destination import LocalDestination
from relay.core.destination.inputs import FormerRun, SignedInventory
from relay.core.destination.traces import noted
from relay.core.downstream import Downstream
from relay.core.effects import CountChanged, Effect, Noted, SnapshotShown, StoreOwn, WantsChanged
from relay.core.events import (
    BlobArrived,
    CopyObserved,
    Ending,
    Event,
    HelloArrived,
    HistoryKept,
    LinkChanged,
    MailArrived,
    MailWritten,
    ObjectObserved,
    RecordIssued,
    Remembered,
    ReportArrived,
    RunningStated,
    SnapshotIssued,
    Tick,
    UpsyncObserved,
    Welcomed,
)
from relay.core.instant import Instant
from relay.core.link.children import Children
from relay.core.link.target import Targets
from relay.core.notes import Notes, is_note
from relay.core.propagation import Propagation
from relay.core.records.acceptance import Acceptance, RecordRefusal, verified_snapshot
from relay.core.records.accepted import AcceptedRecord, accept_own, read_record
from relay.core.records.book import RecordBook
from relay.core.records.judge import SnapshotJudge, VerifiedSnapshot
from relay.core.records.snapshot import SnapshotInterest
from relay.core.records.trust import Trust
from relay.core.releases import Releases
from relay.core.reporting import Reporting
from relay.core.reports.child_reports import ChildReports, ExpectedCounts
from relay.core.reports.sender import ReportSender
from relay.core.rooms import Rooms, RoomsPart
from relay.core.upstream import Upstream
from relay.core.view import NodeView
from schemas.content.blobs import Reference
from schemas.objects.objects import ObjectKey
from schemas.records.records import LocationRecord, Profile
from schemas.reports.reports import Done
from schemas.values.identity import KEYS_KEY, SNAPSHOT_KEY, MailKey
from schemas.values.refusals import RecordRefused
from schemas.values.subjects import TAKEN_KEY


class Node(RoomsPart):
    """One node. Feed it events in order, carry out the effects in order, wake it at `deadline`."""

    def __init__(
        self,
        config: NodeConfig,
        remembered: Remembered,
        done: Iterable[Done],
        now: Instant,
        evaluator: Evaluator | None = None,
    ) -> None:
        """Without an evaluator nothing is collected here."""
        self._now = now
        self._out: list[Effect] = []
        notes = Notes(remembered, self._out)
        # At the centre, former contents of placements.
        self._history = notes.history
        self._places: dict[str, int] = {}
        self._path = path = config.path
        rooms = self._make_rooms(config, remembered, tuple(done), notes, evaluator)
        super().__init__(rooms)
        self._propagation = propagation = Propagation(path, rooms)
        self._downstream = downstream = Downstream(path, rooms)
        upstream = None if path.is_root else Upstream(config, notes.cursor, rooms, propagation)
        self._upstream, self.view = upstream, NodeView(path, rooms, upstream, downstream)
        self._reporting = Reporting(rooms, self.view, upstream)
        self._content_router = ContentRouter(
            rooms, upstream.take_nodes if upstream is not None else _reads_no_snapshots
        )
        self._sweeper = Sweeper(rooms.content, self._roots, self._knows_all, self._out, now.seconds)
        rooms.collected.settle(self._surroundings())
        rooms.collected.begin_turn(now.seconds)
        self._restore(remembered)
        self._follow_up()
        self._say_in_time()
        self._started = self._take_out()

    def _make_rooms(
        self,
        config: NodeConfig,
        remembered: Remembered,
        done: Sequence[Done],
        notes: Notes,
        evaluator: Evaluator | None,
    ) -> Rooms:
        path, out = config.path, self._out
        trust, book, audience = Trust(config.tree, config.roots), RecordBook(path), Audience(path)
        content = Content(remembered.blobs, out)
        judge = SnapshotJudge(book.by_key, self._interest, path)
        targets = Targets(
            book, audience, content, lambda: self._now.seconds, has_all_content=path.is_root
        )
        keys = DestinationKeys(config.tree, config.private_keys)
        collected = CollectedResults(content, evaluator, keys)
        destination = None
        if config.attached:
            former = FormerRun(done, _last_loss(remembered), config.former, notes.taken)
            inventory = SignedInventory(audience.bears_on, self._locations)
            destination = LocalDestination(path, inventory, content, former, config.customize, keys)
        return Rooms(
            lambda: self._now,
            out,
            trust,
            book,
            judge,
            Acceptance(path, config.tree, trust, book, judge),
            audience,
            content,
            targets,
            Children(
                config.incarnation,
                targets,
                out,
                self._child_changed,
                notes.away,
                config.told_addresses,
            ),
            ChildReports(self._place, self._facts, collected, book.levels_below),
            collected,
            ReportSender(config.incarnation, out),
            Releases(content, passes_on=not (config.attached or path.is_root), wire=config.wire),
            destination,
            set(remembered.heard),
            notes.first_sessions,
        )

    def count_junk(self, child: str) -> None:
        """A child said something that is no answer to what it was asked."""
        self._downstream.count_junk(child)

    # The machine.

    def start(self) -> tuple[Effect, ...]:
        """What follows from what the node's streams held; once, before the first event."""
        started, self._started = self._started, ()
        return started

    def handle(self, events: Iterable[Event], now: Instant) -> tuple[Effect, ...]:
        """What to do about a batch of events, in this order."""
        self._now = now
        if self._upstream is not None:
            self._upstream.begin_batch()
        self._collected.begin_turn(now.seconds)
        for event in events:
            self._dispatch(event)
        self._follow_up()
        self._collected.go_on()
        self._say_in_time()
        return self._take_out()

    def deadline(self) -> float | None:
        """The monotonic second at which the node wants a Tick; None if nothing is due."""
        due = (
            self._reporting.deadline(),
            self._content.deadline(),
            self._children.deadline(),
            self._sweeper.deadline(),
            self._releases.deadline(),
            self._collected.deadline(),
            self._destination.deadline() if self._destination is not None else None,
            self._upstream.deadline() if self._upstream is not None else None,
        )
        return min((at for at in due if at is not None), default=None)

    def assert_invariants(self) -> None:
        """Assert what must hold between events."""
        self._trust.assert_invariants()
        self._book.assert_invariants()
        self._audience.assert_invariants()
        self._children.assert_invariants()
        self._reports.assert_invariants()
        self._collected.assert_invariants()
        self._reporting.assert_invariants()
        if self._upstream is not None:
            self._upstream.link.reader.assert_invariants()
            self._judge.assert_invariants()

    def _dispatch(self, event: Event) -> None:  # noqa: C901, PLR0912, PLR0915 - one arm for each event
        now, upstream = self._now.seconds, self._upstream
        match event:
            case MailArrived() if upstream is not None:
                upstream.take_mail(event)
            case Welcomed(message) if upstream is not None:
                upstream.take_welcome(message)
            case LinkChanged(up) if upstream is not None:
                upstream.linked(up=up)
            case Ending() if upstream is not None:
                upstream.farewell()
            case MailArrived() | Welcomed() | LinkChanged() | Ending():
                pass
            case BlobArrived():
                self._sweeper.arrived(event)
                self._content_router.arrived(event)
            case ReportArrived():
                self._reporting.heard(event.child, event.key)
                if self._downstream.report(event):
                    self._reporting.progressed()
            case HelloArrived():
                self._hello(event)
            case RecordIssued():
                self._issued(event)
            case SnapshotIssued():
                self._snapshot_issued(event)
            case HistoryKept(key, references, blobs):
                self._content.keep(blobs)
                self._history[key] = references
            case MailWritten():
                self._children.written(event, now)
            case ObjectObserved():
                self._observed(event)
            case UpsyncObserved():
                self._upsync_observed(event)
            case CopyObserved():
                self._collected.upsynced(event.key, event.copy)
            case RunningStated(running):
                if self._releases.stated(running, now):
                    self._running_changed()
            case Tick():
                self._tick(now)
            case _:
                assert_never(event)

    def _tick(self, now: float) -> None:
        self._destination_tick(now)
        self._content.retry(now)
        self._sweeper.tick(now)
        self._children.tick(now, self._now.wall_ms)
        if self._releases.tick(now):
            self._running_changed()
        if self._upstream is not None:
            self._upstream.tick()

    def _follow_up(self) -> None:
        """What every event may lead to here and below."""
        upstream, destination = self._upstream, self._destination
        if upstream is not None:
            upstream.read_snapshots()
        note = destination.admissions.take_note() if destination is not None else None
        if note is not None:
            # Before what is taken is made so.
            self._out.append(StoreOwn(TAKEN_KEY, note))
        if destination is not None and destination.look(self._now):
            if destination.upsync.is_news and upstream is not None:
                upstream.hurry()
            touched, wants_changed = destination.resolve()
            for key in touched:
                self._collected.mark_dirty(key, HERE)
                self._reports.touch(key)
            if wants_changed:
                self._out.append(WantsChanged())
        self._write_mail()
        # By now it is known of all that was taken what content it lacks.
        while upstream is not None and upstream.try_to_reach():
            self._write_mail()

    def _say_in_time(self) -> None:
        self._reporting.say_in_time()
        if self._upstream is not None:
            self._upstream.say_hello_in_time()

    def _write_mail(self) -> None:
        self._propagation.spread()
        self._children.flush(self._now.seconds)

    def _take_out(self) -> tuple[Effect, ...]:
        taken = tuple(self._out)
        self._out.clear()
        return taken

    # Events.

    def _hello(self, event: HelloArrived) -> None:
        shown, progressed, is_news = self._downstream.hello(event)
        if is_news:
            self._running_changed()
        if progressed:
            self._reporting.progressed()
        if self._upstream is not None:
            self._upstream.look_at_wants()
        if shown is None:
            return
        if self._upstream is not None:
            self._upstream.shown_by_child(shown)
        elif self._is_news(shown):
            said = shown.record
            self._out.append(SnapshotShown(shown.rank, said.term.hex(), said.time_ms))

    def _running_changed(self) -> None:
        """At the centre: who steers releases looks again."""
        if self._upstream is None:
            self._out += map(CountChanged, self._releases.keys())

    def _is_news(self, shown: VerifiedSnapshot) -> bool:
        """Whether it is newer than the centre's last, or of another term.

        Of that even an older one tells something: another centre may have signed it just now.
        """
        newest = self._judge.newest
        return newest is None or shown.rank > newest.rank or shown.record.term != newest.record.term

    def _issued(self, event: RecordIssued) -> None:
        self._content.keep(event.blobs)
        accepted = accept_own(event.signed, event.data, event.hops)
        self._targets.carry(accepted.key, event.carried)
        self._propagation.put(accepted, 0)

    def _snapshot_issued(self, event: SnapshotIssued) -> None:
        self._content.keep(event.blobs)
        snapshot = verified_snapshot(event.record, event.data, event.payload_hash)
        for key in event.dropped:
            self._propagation.drop(key)
        self._judge.issued(snapshot)
        self._children.reached(snapshot, ())
        if self._destination is not None:
            self._out.append(WantsChanged())

    def _observed(self, event: ObjectObserved) -> None:
        if self._destination is None:
            return
        former = self._destination.traces.of(event.key)
        claimers = self._destination.observe(event)
        self._out += noted(event, former, claimers)
        self._collected.observed(event.key, claimers)
        self._reporting.observed(claimers)

    def _destination_tick(self, now: float) -> None:
        if self._destination is None:
            return
        for key in self._destination.tick(now):
            self._reports.touch(key)
        for key in self._destination.admissions.due(now):
            self._propagation.look_again(key)

    def _upsync_observed(self, event: UpsyncObserved) -> None:
        if self._destination is None:
            return
        stated = self._destination.upsync.observed.stated
        for key in self._destination.upsync.observe(event):
            self._reports.touch(key)
        if event.stated != stated and self._upstream is not None:
            self._upstream.hurry()

    # What rooms ask of each other.

    def _interest(self) -> SnapshotInterest:
        if self._upstream is None:
            return SnapshotInterest((), self._path)
        return self._upstream.interest()

    def _surroundings(self) -> CollectorContext:
        """What collecting asks of the other rooms; nothing of it before they are there."""
        downstream = self._downstream
        return CollectorContext(
            downstream.standing,
            downstream.concerned,
            downstream.members,
            self._own,
            lambda key, obj: self._destination is not None and self._destination.books(key, obj),
            lambda _source: (),
            self._reports.touch,
            lambda: self._now.wall_ms,
        )

    def _own(self, key: MailKey, obj: ObjectKey) -> CopyView | None:
        """What the destination here returned of an object; None if it has nothing to say of it."""
        destination = self._destination
        said = destination.returned(key, obj) if destination else None
        if said is None or destination is None or destination.profile is None:
            return None
        name = destination.profile.source.name
        return CopyView(name, said.status or None, content=said.content, generation=said.generation)

    def _child_changed(self, name: str) -> None:
        if self._children.is_there(name):
            self._releases.heard(name)
        else:
            self._releases.silent(name, self._now.seconds)
        self._propagation.child_changed(name)

    def _facts(self, child: str, key: MailKey) -> ExpectedCounts:
        return self._downstream.facts(child, key)

    def _place(self, child: str) -> int:
        return self._places.setdefault(child, len(self._places))

    def _locations(self, profile: Profile) -> Iterator[LocationRecord]:
        """The Locations that a destination belongs to."""
        for accepted in self._book.by_key.values():
            location = accepted.record
            if isinstance(location, LocationRecord) and location.instance_selector is not None:
                same = location.source.space == profile.source.space
                if same and location.instance_selector.matches(profile.labels):
                    yield location

    def _roots(self) -> Iterator[Reference]:
        for accepted in self._book.deltas():
            if accepted.body is not None:
                yield from accepted.body.content
        if self._destination is not None:
            for wanted in self._destination.wanted.values():
                yield wanted.reference
                if wanted.form is not None and wanted.form.customizer is not None:
                    yield wanted.form.customizer
        yield from self._releases.references()
        for snapshot in (self._judge.reached, self._judge.newest):
            if snapshot is not None:
                yield from snapshot.record.references
        for kept in self._history.values():
            yield from kept

    def _knows_all(self) -> bool:
        """Whether every record in force is here, and understood."""
        return self.view.ready and not any(accepted.opaque for accepted in self._book.deltas())

    # What the streams held.

    def _restore(self, remembered: Remembered) -> None:
        """Take in what the streams hold: keys first, then records, then the children's mail."""
        for accepted in self._restored_records(remembered):
            self._propagation.put(accepted, 0)
        for slot in remembered.mail:
            self._children.restore(slot)
        self._propagation.restored()
        # Mail and content are kept side by side: a crash may have left mail without its content.
        for accepted in self._book.deltas():
            if self._children.any_in_full(accepted.key):
                self._targets.supply(accepted.key)
        upstream = self._upstream
        if upstream is None or upstream.has_memory:
            self._children.allow_writing()
        for own in remembered.own:
            if own.key == SNAPSHOT_KEY:
                self._restore_snapshot(own.data)
        self._children.greet()

    def _restored_records(self, remembered: Remembered) -> list[AcceptedRecord]:
        found: list[AcceptedRecord] = []
        for own in sorted(remembered.own, key=lambda own: own.key != KEYS_KEY):
            if is_note(own.key):
                continue
            read = self._acceptance.recall(own.data, own.hops)
            if isinstance(read, RecordRefusal):
                self._out.append(Noted(read.reason, f"own {own.key}", read.detail))
                continue
            if read.kind == "keys":
                self._propagation.put(read, 0)
            else:
                found.append(read)
            if self._upstream is not None:
                self._upstream.link.reader.put_version(read.key, read.version)
        return sorted(found, key=lambda accepted: (accepted.kind != "node", accepted.generation))

    def _restore_snapshot(self, data: bytes) -> None:
        verified = self._acceptance.snapshot(data, kept=True)
        if isinstance(verified, RecordRefusal):
            self._out.append(Noted(verified.reason, "own snapshot", verified.detail))
        elif self._upstream is None:
            self._judge.issued(verified)
            self._children.reached(verified, ())
        else:
            self._upstream.restore_snapshot(verified)


def _reads_no_snapshots() -> None:
    """The centre signs them."""


def _last_loss(remembered: Remembered) -> int:
    """The newest generation by which something may have become unwanted before this run.

    For just these a parent has a snapshot that settles them written.
    """
    newest = 0
    for own in remembered.own:
        if is_note(own.key):
            continue
        with suppress(RecordRefused):
            newest = max(newest, read_record(own.data)[1].last_loss)
    return newest
