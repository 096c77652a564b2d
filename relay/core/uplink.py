"""A node and its parent: the session, reading the own mail, heartbeats and reports."""

from __future__ import annotations

from relay.core.accepting import Accepting
from relay.core.book import Held, is_delta, to_keep
from relay.core.children import HEARTBEAT_SECONDS
from relay.core.effects import AckMail, Noted, ResetMail, SendHeartbeat, SendReport, StoreOwn
from relay.core.events import Ending, LinkChanged, MailArrived, SessionArrived
from relay.core.inbox import Park, PassOver, Refuse, Take
from relay.core.parked import Believed
from relay.core.parts import split_results
from relay.core.report_digest import content_of, report_term
from relay.core.state import QUIET_SECONDS, State
from schemas.identity import MailKey
from schemas.records import DIGEST_MODULUS, NodeRecord
from schemas.reports import (
    LIST_ENTRIES_MAX,
    LIST_PARTS_MAX,
    WANT_AGAIN,
    WANT_LIST,
    WANT_SAY,
    WANT_STOP,
    Heartbeat,
    LabelReport,
    Listed,
    ListPart,
    Report,
    ReportPart,
    SessionMessage,
    Summary,
    encode,
    part_key,
)
from schemas.subjects import CURSOR_KEY, LABELS_KEY, LIST_KEY

SESSION_RETRY_SECONDS = 2.0
SESSION_RETRY_MAX_SECONDS = 30.0
LIST_AGAIN_MAX = 5  # A list may be lost, but one that nobody can act on is not said for ever.
_ELSEWHERE = ("SecondHome", "this node runs elsewhere")


class Uplink:
    """What goes to the parent and comes from it, at one node that is not the centre."""

    def __init__(self, state: State, accepting: Accepting) -> None:
        self._state = state
        self._accepting = accepting
        self._up = False
        self._asked = self._revision = self._withheld = self._list_again = 0
        self._beat_at: float | None = None
        self._sent: dict[MailKey, bytes] = {}
        self._parts: dict[MailKey, int] = {}
        self._said_early: dict[MailKey, None] = {}
        self._stat_terms: dict[str, int] = {}
        self._labels: bytes = b""
        self._listed: tuple[Listed, ...] = ()
        self._stored = state.inbox.cursor()
        self._superseded = self.second = False

    @property
    def superseded(self) -> bool:
        """Whether a newer session of this same node exists: this one must stop."""
        return self._superseded

    @property
    def withheld(self) -> int:
        """How many records are held, here or below, that the mailbox lacks."""
        return len(self._beyond())

    def handle(self, event: MailArrived | SessionArrived | LinkChanged | Ending) -> None:
        """Take what comes from the parent, and the end of the run."""
        match event:
            case MailArrived():
                self.mail(event)
            case SessionArrived(message):
                self.session(message)
            case LinkChanged(up):
                self.link(up=up)
            case Ending():
                self.farewell()

    def link(self, *, up: bool) -> None:
        """Begin a session when the way to the parent is open."""
        self._up = up
        self._beat_at = None
        if up:
            self._state.inbox.epoch = 0
            self._asked = 0
            self._ask_session()
            self._state.content.retry_all()

    def session(self, message: SessionMessage) -> None:
        """Take the parent's answer to a heartbeat."""
        inbox = self._state.inbox
        fresh = inbox.epoch == 0
        if message.run != self._state.config.incarnation:
            self._heard_otherwise(message)
            return
        if message.want == WANT_STOP and not inbox.last_epoch:
            # Who was in session once goes on enforcing what it holds, whatever its parent says.
            self._superseded, self.second = True, not message.epoch
            other = ("Superseded", "a newer run of this node") if message.epoch else _ELSEWHERE
            self._state.out.append(Noted(other[0], "session", other[1]))
            return
        if not message.epoch or message.epoch < inbox.last_epoch + fresh:
            # Who asks anew is granted a later one: this answers what the session before had said.
            return
        if not fresh and message.incarnation != inbox.incarnation:
            self.link(up=True)
            return
        inbox.epoch = inbox.last_epoch = message.epoch
        if fresh:
            start = inbox.begin_session(message)
            self._beat_at = self._state.now.seconds + HEARTBEAT_SECONDS
            self._begin_reports()
            self._state.out.append(ResetMail(start))
            self._settled()
        elif message.want == WANT_AGAIN:
            self._state.out.append(ResetMail(inbox.read_again(message.last_sequence)))
        elif message.want == WANT_SAY:
            self._begin_reports()
        elif message.want == WANT_LIST and inbox.settled:
            self._list(self._beyond(), asked=True)

    def mail(self, event: MailArrived) -> None:
        """Judge a message, act on it, and acknowledge what is dealt with."""
        state, inbox = self._state, self._state.inbox
        if not inbox.epoch:
            return
        state.quiet_at = state.now.seconds + QUIET_SECONDS
        inbox.pending = event.pending
        self._judge(event)
        settled = inbox.settled
        inbox.arrived(event)
        if inbox.settled and not settled:
            self.retry_parked()
            self._say_all()
            if len(self._beyond()) > self._withheld:
                state.quiet_at = state.now.seconds  # The parent asks for it once it knows.
        state.out.append(AckMail(inbox.answered))
        if not event.pending:
            self._settled()

    def retry_parked(self) -> None:
        """Judge again what waited for a key or for the index."""
        inbox = self._state.inbox
        for sequence in inbox.parked:
            parked = inbox.parked.take(sequence)
            if parked is not None:
                self._judge(*parked)
        if not inbox.parked:
            # What was said meanwhile answered only for the mail before the first that was parked.
            for key in self._said_early:
                self._state.touch(key)
            self._said_early.clear()
        self._settled()
        if inbox.epoch:
            self._state.out.append(AckMail(inbox.answered))

    def tick(self) -> None:
        """Send what is due: the session's beginning again, a heartbeat, the cursor."""
        state, now = self._state, self._state.now.seconds
        if self._beat_at is not None and self._beat_at <= now:
            if state.inbox.epoch:
                self._heartbeat()
            else:
                self._ask_session()
        if state.quiet_at is not None and state.quiet_at <= now:
            state.quiet_at = None
            self._store_cursor()
            if state.inbox.epoch:
                self._heartbeat()

    def farewell(self) -> None:
        """Tell the parent that this run ends, so that it need not wait for three heartbeats."""
        if self._state.inbox.epoch and not self._superseded:
            self._send_heartbeat(self._state.inbox.epoch, farewell=True)

    def deadline(self) -> float | None:
        beat, quiet = self._beat_at, self._state.quiet_at
        return quiet if beat is None or (quiet is not None and quiet < beat) else beat

    def report(self, key: MailKey, summary: Summary) -> bool:
        """Send a placement's report if it says something else than the last one sent.

        False if there is no session to send it in: a new one says everything again.
        """
        state, inbox = self._state, self._state.inbox
        if not inbox.epoch:
            return False
        held, own = state.held.get(key), state.edge.results(key) if state.edge else ()
        parts, results = split_results(state.reporting.results(key, own).values())
        generation = held.generation if held else 0
        self._revision += 1
        report = Report(
            key=key,
            part=0,
            epoch=inbox.epoch,
            revision=self._revision,
            generation=generation,
            incarnation=inbox.incarnation,
            answered=inbox.answered,
            gone=held is None or self._accepting.is_gone(held),
            parts=parts,
            summary=summary,
        )
        if inbox.parked:
            self._said_early[key] = None
        former, self._sent[key] = self._sent.get(key), content_of(report, results)
        if self._sent[key] == former:
            return True
        for part in range(1, max(parts, self._parts.get(key, 0)) + 1):
            listed = results.get(part, ())
            later = ReportPart(key, part, inbox.epoch, self._revision, generation, listed)
            there = part <= parts and not report.gone
            self._say(part_key(key, part), encode(later) if there else b"", there=there)
        self._parts[key] = parts
        self._say(key, encode(report), there=not report.gone)
        if held is None:
            self._sent.pop(key, None)
            self._parts.pop(key, None)
        return True

    def labels(self) -> None:
        """Send the label digest of the subtree, if it is another than the last one sent."""
        state, inbox = self._state, self._state.inbox
        if not inbox.epoch or not inbox.settled:
            return
        state.labels_dirty = False
        spaces = state.where.digest()
        self._revision += 1
        report = LabelReport(inbox.epoch, self._revision, inbox.incarnation, inbox.answered, spaces)
        if (digest := report.digest) != self._labels:
            self._labels = digest
            self._send(LABELS_KEY, encode(report))

    def _heard_otherwise(self, message: SessionMessage) -> None:
        """Hear the parent speak by itself, as after its start, or to another run of this node."""
        inbox = self._state.inbox
        if message.run and 0 < inbox.last_epoch < message.epoch:
            self._superseded = True
            self._state.out.append(Noted("Superseded", "session", "a newer run of this node"))
        elif not message.run and message.incarnation != inbox.incarnation:
            self.link(up=True)

    def _judge(self, event: MailArrived, read: Believed | None = None) -> None:
        state, inbox = self._state, self._state.inbox
        known = state.held.get(event.key)
        ruling = inbox.judge(event, known, state.next_order(), read)
        if isinstance(ruling, Take | PassOver):
            inbox.supersede(event)
            if not self._concerns_below(ruling.held):
                ruling = Refuse("NotMine", "a node that is not below this one")
        match ruling:
            case Refuse(reason, detail):
                state.refused += 1
                state.out.append(Noted(reason, f"mail {event.key}", detail))
            case Park():
                inbox.parked.put(event, ruling.believed)
                if ruling.chunk is not None:
                    self._accepting.want_chunks()
            case PassOver(held, gone) if known or not state.mailboxes.having(held.key):
                self._pass_over(held, known, gone=gone)
            case PassOver(held) | Take(held):
                inbox.count(held)
                if held.kind == "index":
                    inbox.index_came = held.generation
                state.out.append(to_keep(held, inbox.incarnation, event.sequence))
                if held.opaque and state.edge is not None:
                    state.refused += 1
                    state.out.append(Noted("TooNew", f"mail {event.key}", "update this edge"))
                self._accepting.put(held)

    def _concerns_below(self, held: Held) -> bool:
        """Whether a node record, if it is one, is of a node below this one: no other is kept."""
        record, path = held.record, self._state.config.path
        if not isinstance(record, NodeRecord):
            return True
        return path != record.path and path.holds(record.path)

    def _pass_over(self, held: Held, known: Held | None, *, gone: bool) -> None:
        state, inbox = self._state, self._state.inbox
        inbox.count(held)
        if held.kind == "index" and inbox.stored_index <= held.generation:
            # The one that is held already: shown again in this session.
            inbox.index_came = held.generation
            inbox.shown_index = held.generation <= state.index.generation
        if gone:
            self._answer_gone(held.key)
        elif is_delta(known):
            if held.generation == known.generation:
                self._accepting.bare(known, unmeant=known.has_body and not held.has_body)
            # Also of an older one: the parent wrote it again, and waits for an answer.
            state.touch(known.key)

    def _answer_gone(self, key: MailKey) -> None:
        self._sent.pop(key, None)
        self._state.touch(key)

    def _settled(self) -> None:
        """Note the end of a read, and what a node may believe from then on."""
        inbox = self._state.inbox
        if inbox.settle_memory() or inbox.stored_index != self._stored.index_generation:
            self._store_cursor()
            self._state.quiet_at = self._state.now.seconds

    def _store_cursor(self) -> None:
        cursor = self._state.cursor()
        if cursor != self._stored:
            self._stored = cursor
            self._state.out.append(StoreOwn(CURSOR_KEY, encode(cursor)))

    def _ask_session(self) -> None:
        delay = min(SESSION_RETRY_SECONDS * 2**self._asked, SESSION_RETRY_MAX_SECONDS)
        self._asked += 1
        self._beat_at = self._state.now.seconds + delay
        self._send_heartbeat(0)

    def _heartbeat(self) -> None:
        self._beat_at = self._state.now.seconds + HEARTBEAT_SECONDS
        self._send_heartbeat(self._state.inbox.epoch)

    def _send_heartbeat(self, epoch: int, *, farewell: bool = False) -> None:
        state, inbox = self._state, self._state.inbox
        beyond = self._beyond()
        self._withheld = len(beyond)
        if not beyond:
            self._list(beyond)
        heartbeat = Heartbeat(
            epoch=epoch,
            incarnation=inbox.incarnation,
            sequence=inbox.answered,
            mail_digest=inbox.digest.to_bytes(16, "big"),
            report_digest=(sum(self._stat_terms.values()) % DIGEST_MODULUS).to_bytes(16, "big"),
            labels_hash=self._labels,
            index_generation=state.index.generation,
            has_memory=inbox.has_memory,
            refused=state.refused,
            withheld=self._withheld,
            last_epoch=inbox.last_epoch,
            run=state.config.incarnation,
            home=state.config.home,
            farewell=farewell,
        )
        state.out.append(SendHeartbeat(encode(heartbeat)))

    def _beyond(self) -> list[Listed]:
        """What is held, here or below, but missing from the mailbox once that was read."""
        state = self._state
        if not state.inbox.settled:
            return []
        kept = [
            Listed(held.key, held.generation)
            for held in state.held.values()
            if held.has_content and held.key not in state.inbox.terms
            if held.kind != "keys" and held.key not in state.unmeant
        ]
        return [*kept, *(Listed(key, 0) for key in state.mailboxes.owed())]

    def _list(self, beyond: list[Listed], *, asked: bool = False) -> None:
        """Say what is held beyond the mailbox, if that is news or was lost."""
        entries = tuple(sorted(beyond, key=lambda entry: entry.key))
        if entries == self._listed and not (asked and self._list_again):
            return
        self._list_again = LIST_AGAIN_MAX if entries != self._listed else self._list_again - 1
        parts = [
            entries[at : at + LIST_ENTRIES_MAX] for at in range(0, len(entries), LIST_ENTRIES_MAX)
        ]
        former = -(-len(self._listed) // LIST_ENTRIES_MAX)
        self._listed = entries
        self._revision += 1
        for at in range(min(max(len(parts), former), LIST_PARTS_MAX)):
            listed = parts[at] if at < len(parts) else ()
            part = ListPart(self._state.inbox.epoch, self._revision, at, listed)
            self._send(f"{LIST_KEY}{at}", encode(part) if listed else b"")

    def _begin_reports(self) -> None:
        """Say everything again: the session is new."""
        self._sent.clear()
        self._stat_terms.clear()
        self._labels = b""
        self._listed = ()
        self._state.labels_dirty = True
        self._say_all()

    def _say_all(self) -> None:
        for held in self._state.deltas():
            self._state.touch(held.key)

    def _say(self, slot: str, data: bytes, *, there: bool) -> None:
        """Send a report's part, counted in the digest unless nothing is there any more."""
        if there:
            self._stat_terms[slot] = report_term(slot, (self._state.inbox.epoch, self._revision))
        else:
            self._stat_terms.pop(slot, None)
        self._send(slot, data)

    def _send(self, slot: str, data: bytes) -> None:
        self._state.out.append(SendReport(slot, data))
