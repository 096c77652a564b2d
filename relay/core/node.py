"""A node of the tree as a state machine: events in, effects out, the same at every tier."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, assert_never

from relay.core import regrouping
from relay.core.accepting import INDEX_CHUNKS, INDEX_ROOT, Accepting
from relay.core.asking import Heard
from relay.core.book import Held, is_delta, read_record
from relay.core.children import INDEX_TO_EDGE_SECONDS, Standing
from relay.core.claims import Wanted
from relay.core.downlink import Downlink
from relay.core.edge import Edge
from relay.core.effects import Effect, Noted, SummaryChanged, WantsChanged
from relay.core.events import (
    BlobArrived,
    ChildUnlinked,
    Ending,
    Event,
    HeartbeatArrived,
    Instant,
    Issued,
    LedgerLost,
    LinkChanged,
    MailArrived,
    MailWritten,
    ObjectObserved,
    Remembered,
    ReportArrived,
    SessionArrived,
    Tick,
)
from relay.core.reduce import EMPTY, merge
from relay.core.state import NodeConfig, State, owner_key, placement_of
from relay.core.tombstones import SWEPT_KEY, restored
from relay.core.trust import Verdict
from relay.core.upkeep import Upkeep
from relay.core.uplink import Uplink
from relay.core.windows import Windows
from schemas.identity import KEYS_KEY, ContentHash, DestinationId, MailKey
from schemas.objects import ObjectKey
from schemas.records import Record
from schemas.refusals import RecordRefused
from schemas.reports import Done, ObjectResult, Summary
from schemas.signing import Envelope
from schemas.subjects import CURSOR_KEY


class Node:
    """One node. Feed it events in order, carry out the effects in order, wake it at `deadline`."""

    def __init__(
        self, config: NodeConfig, remembered: Remembered, done: Iterable[Done], now: Instant
    ) -> None:
        self._state = State(config, remembered, done, now)
        self._accepting = Accepting(self._state)
        self._downlink = Downlink(self._state, self._accepting)
        self._uplink = None if config.path.is_root else Uplink(self._state, self._accepting)
        self._upkeep = Upkeep(self._state)
        self._windows = Windows()
        self._parked_stamp = (0, 0, 0)
        self._told_may_prune = False
        self._restore(remembered)
        self._after()
        self._started = self._take_out()

    def start(self) -> tuple[Effect, ...]:
        """What follows from what the node's streams held; once, before the first event."""
        started, self._started = self._started, ()
        return started

    def handle(self, event: Event, now: Instant) -> tuple[Effect, ...]:
        """What to do about an event, in this order."""
        self._state.now = now
        self._dispatch(event)
        self._after()
        return self._take_out()

    def deadline(self) -> float | None:
        """The monotonic second at which the node wants a Tick; None if nothing is due."""
        first = self._upkeep.deadline()
        for at in (
            self._windows.ends,
            self._state.content.deadline(),
            self._downlink.deadline(),
            self._uplink.deadline() if self._uplink is not None else None,
        ):
            if at is not None and at < first:
                first = at
        return first

    @property
    def ready(self) -> bool:
        """Whether the node is in session with its parent and may act on all that it is sent."""
        return self._state.is_root or (self._state.inbox.recalls and not self._state.inbox.waits)

    def besides(self) -> list[tuple[MailKey, bytes]] | None:
        """What is read but not among the records; None before all was read, or without memory."""
        return self._state.inbox.besides()

    @property
    def superseded(self) -> bool:
        """Whether a newer session of this same node exists, so that this run must end."""
        return self._uplink is not None and self._uplink.superseded

    @property
    def second(self) -> bool:
        """Whether this run must end because an older one, elsewhere, has the session."""
        return self._uplink is not None and self._uplink.second

    @property
    def records(self) -> dict[MailKey, Held]:
        """What the node holds, by mail key; not to be changed."""
        return self._state.held

    @property
    def wanted(self) -> dict[ObjectKey, Wanted]:
        """At an edge: what its space shall hold."""
        return self._state.edge.wanted if self._state.edge else {}

    @property
    def may_prune(self) -> bool:
        """Whether nothing is pending: the mailbox is read to its end and all content is here."""
        state = self._state
        if state.edge is None or not state.inbox.calm:
            return False
        return state.inbox.remembers and not state.edge.awaits_content

    def summary(self, key: MailKey) -> Summary:
        """What became of a placement in this subtree, as far as it is known now."""
        state = self._state
        own = state.edge.summary(key, state.now.wall_ms) if state.edge else EMPTY
        troubles = state.troubles(key)
        if own is not EMPTY or troubles is not EMPTY:
            own = merge(own, troubles)
        return state.reporting.summary(key, own)

    def results(self, key: MailKey) -> dict[ObjectKey, ObjectResult]:
        """The objects' returned states in this subtree."""
        state = self._state
        return state.reporting.results(key, state.edge.results(key) if state.edge else ())

    def children(self) -> dict[str, int | None]:
        """The children by name, and since when (ms since 1970) each cannot be reached."""
        return {name: child.silent_since_ms for name, child in self._state.children.items()}

    def left(self) -> frozenset[str]:
        """The children whose last run ended in good order, and that are not back."""
        return frozenset(name for name, child in self._state.children.items() if child.left)

    def standing_of(self, child: str) -> Standing | None:
        """How it is with a child; None if there is none of this name."""
        return self._state.standing_of(child)

    def sessions(self) -> frozenset[str]:
        """The children that have been in session with this run of the node."""
        return frozenset(name for name, child in self._state.children.items() if child.epoch)

    def shown_indexes(self) -> dict[str, int]:
        """Of each child in session with this run, the generation of the index it says it has."""
        return {name: c.index_shown for name, c in self._state.children.items() if c.epoch}

    @property
    def read_through(self) -> int:
        """The sequence of the parent's mail up to which all is read."""
        return self._state.inbox.high

    def lag(self, child: str, read_through: int | None = None) -> int:
        """How many messages in the child's mailbox it has not read.

        `read_through` is the child's own word, if one can ask it; else its last heartbeat counts.
        """
        box, known = self._state.mailboxes.boxes.get(child), self._state.children.get(child)
        if box is None or known is None:
            return 0
        cursor = known.cursor if read_through is None else read_through
        return sum(1 for slot in box.slots.values() if slot.sequence > cursor)

    def child_summaries(self, key: MailKey) -> dict[str, Summary]:
        """What each child counts for now in a placement, by name."""
        return self._state.reporting.by_child(key)

    def judge(self, envelope: Envelope, record: Record) -> Verdict:
        """Whether the node believes a record that the envelope's payload says."""
        return self._state.inbox.trust.judge(envelope, record)

    def heard(self, child: str) -> Heard | None:
        """When a child was last heard of; None if there is none of this name."""
        return self._state.heard_of(child)

    def nkey_of(self, child: str) -> str:
        """The public key by which a child is let in; "" if there is none of this name."""
        known = self._state.children.get(child)
        return known.nkey if known else ""

    def destination_of(self, child: str) -> DestinationId | None:
        """The destination that a child is, if it is an edge and this node holds its profile."""
        return self._state.where.destination_of(child)

    def lacks(self, addresses: Iterable[ContentHash]) -> frozenset[ContentHash]:
        """Which of these blobs are not in the node's store."""
        return frozenset(addresses) - self._state.content.held

    def own_state(self) -> dict[str, Any]:
        """The node's session and cursor, and how much it holds and refused, for people."""
        withheld = self._uplink.withheld if self._uplink is not None else 0
        return {**self._state.standing(), "withheld": withheld}

    def _dispatch(self, event: Event) -> None:  # noqa: C901, PLR0912 - one arm for each event
        state, uplink = self._state, self._uplink
        match event:
            case MailArrived() | SessionArrived() | LinkChanged() | Ending():
                if uplink is not None:
                    uplink.handle(event)
            case BlobArrived():
                self._upkeep.arrived(event)
                for owner in state.content.arrived(event, state.now.seconds):
                    self._content_here(owner)
                for owner in state.content.troubled:
                    if (key := placement_of(owner)) is not None:
                        state.touch(key)
                state.content.troubled.clear()
            case ReportArrived():
                self._windows.heard()
                self._downlink.report(event)
            case HeartbeatArrived():
                self._downlink.heartbeat(event.child, event.data)
            case ChildUnlinked():
                self._downlink.unlinked(event.child)
            case Issued():
                self._issued(event)
            case LedgerLost():
                self._downlink.doubt()
            case MailWritten():
                regrouping.written(state, event)
            case ObjectObserved():
                if state.edge is not None:
                    self._observed(state.edge, state.edge.observe(event))
            case Tick():
                self._tick()
            case _:
                assert_never(event)

    def _tick(self) -> None:
        state = self._state
        state.content.retry(state.now.seconds)
        self._upkeep.tick()
        self._downlink.tick()
        if self._uplink is not None:
            self._uplink.tick()
        late = state.now.seconds - INDEX_TO_EDGE_SECONDS
        if any(child.index_sent <= late for child in state.children.values()):
            self._accepting.pass_index_on()

    def _after(self) -> None:
        """What every event may lead to: reports to say again, wants, things to forget."""
        state = self._state
        if self._uplink is not None and self._news_of_index_or_keys():
            self._uplink.judge_again()
        if state.end_batch():
            state.mailboxes.flush_all()
        touched = state.mailboxes.touched
        if touched:
            state.mailboxes.touched = {}
        for child, key in touched:
            held = state.held.get(key)
            if is_delta(held):
                state.reporting.refresh(child, key)
                if not held.has_content or key in state.unmeant:
                    state.touch(key)
        if state.edge is not None:
            may_prune = self.may_prune
            otherwise = may_prune != self._told_may_prune
            if state.edge.changed:
                state.reporting.dirty.update(state.edge.resolve())
                otherwise = otherwise or state.edge.wants_changed
                may_prune = self.may_prune
            if otherwise:
                state.out.append(WantsChanged())
            self._told_may_prune = may_prune
        self._report_in_time()

    def _report_in_time(self) -> None:
        reporting, now = self._state.reporting, self._state.now.seconds
        if reporting.settled:
            reporting.settled.clear()
            self._windows.hurry(now)
        if reporting.dirty or self._state.labels_dirty:
            self._windows.gather(now)
        if self._windows.is_over(now) and not self._windows.put_off(now, self._state.on_its_way):
            self._flush(now)

    def _observed(self, edge: Edge, touched: Iterable[MailKey]) -> None:
        """Report soon what nothing is pending of any more."""
        state = self._state
        state.reporting.dirty.update(dict.fromkeys(touched))
        if any("pending" not in edge.summary(key, state.now.wall_ms).states for key in touched):
            self._windows.hurry(state.now.seconds)

    def _news_of_index_or_keys(self) -> bool:
        """Whether keys or index are newer than before, so that parked mail is judged again."""
        index, keys = self._state.index, self._state.held.get(KEYS_KEY)
        stamp = (index.generation, len(index.unread()), keys.generation if keys else 0)
        changed = stamp != self._parked_stamp
        self._parked_stamp = stamp
        return changed

    def _flush(self, now: float) -> None:
        """Report what changed since the last window."""
        state = self._state
        dirty = self._windows.close(now) | state.reporting.dirty
        state.reporting.dirty = {}
        for key in dirty:
            if self._uplink is None:
                state.out.append(SummaryChanged(key))
                continue
            summary = self.summary(key)
            at_work = not state.children and "pending" in summary.states
            waits = self._windows.waits(key, now, at_work=at_work)
            if not waits and self._uplink.saying.report(key, summary):
                self._accepting.forget_if_done(key)
        if self._uplink is None:
            state.labels_dirty = False
        elif state.labels_dirty:
            self._uplink.saying.labels()

    def _content_here(self, owner: str) -> None:
        state = self._state
        if owner in (INDEX_ROOT, INDEX_CHUNKS):
            self._accepting.index_arrived(owner)
        elif (key := owner_key(owner)) is not None:
            state.mailboxes.supplied(key)
        elif state.edge is not None:
            state.edge.content_ready(MailKey(owner[5:]))

    def _issued(self, event: Issued) -> None:
        self._state.content.held |= event.blobs
        self._state.begin_batch(more=event.more)
        if (held := self._read_own("issued here", event.data, event.hops)) is not None:
            self._accepting.put(held)

    def _read_own(self, what: str, data: bytes, hops: tuple[int, ...]) -> Held | None:
        """Read a record of the node's own stream; what does not verify is not believed."""
        state = self._state
        try:
            envelope, held = read_record(data, state.next_order(), hops)
        except RecordRefused as error:
            state.out.append(Noted("Unreadable", what, error.reason))
            return None
        verdict = state.inbox.trust.judge(envelope, held.record)
        if verdict is not Verdict.BELIEVED:
            state.out.append(Noted("Unbelieved", what, verdict.value))
            return None
        return held

    def _restore(self, remembered: Remembered) -> None:
        """Take in what the streams hold: keys first, then the children and what they were sent."""
        state = self._state
        state.mailboxes.paused = True
        records = self._restored_records(remembered)
        for held in records:
            if held.kind == "node":
                self._accepting.put(held)
        for slot in remembered.mail:
            if slot.child in state.mailboxes.boxes:
                state.mailboxes.restore(slot.child, slot)
        state.finish_removals(records, remembered)
        state.mailboxes.restored()
        for held in records:
            if held.kind not in ("node", "keys"):
                self._accepting.put(held)
        state.mailboxes.paused = False
        regrouping.restored(state)
        self._downlink.await_labels()
        self._accepting.refresh_all()
        self._downlink.greet()

    def _restored_records(self, remembered: Remembered) -> list[Held]:
        """The records of OWN that are believed, by generation; keys are put in force at once."""
        state, records = self._state, []
        for own in sorted(remembered.own, key=lambda own: own.key != KEYS_KEY):
            if own.key == CURSOR_KEY:
                state.restore(own.data)
            elif own.key == SWEPT_KEY:
                restored(state, own.data)
            elif (held := self._read_own(f"own {own.key}", own.data, own.hops)) is not None:
                records.append(held)
                state.inbox.count(held)
                if held.kind == "keys":
                    self._accepting.put(held)
        return sorted(records, key=lambda held: held.generation)

    def _take_out(self) -> tuple[Effect, ...]:
        taken = tuple(self._state.out)
        self._state.out.clear()
        return taken
