"""A node and its parent: the session, reading the own mail, and heartbeats."""

from __future__ import annotations

from relay.core.accepting import Accepting
from relay.core.book import Held, is_delta, to_keep
from relay.core.children import HEARTBEAT_SECONDS
from relay.core.effects import AckMail, Noted, ResetMail, SendHeartbeat, StoreOwn
from relay.core.events import Ending, LinkChanged, MailArrived, SessionArrived
from relay.core.inbox import Park, PassOver, Refuse, Take
from relay.core.parked import Believed
from relay.core.reports.sender import Saying
from relay.core.state import QUIET_SECONDS, State
from schemas.records import NodeRecord
from schemas.reports import (
    WANT_AGAIN,
    WANT_LIST,
    WANT_SAY,
    WANT_STOP,
    Heartbeat,
    SessionMessage,
    encode,
)
from schemas.subjects import CURSOR_KEY

SESSION_RETRY_SECONDS = 2.0
SESSION_RETRY_MAX_SECONDS = 30.0
TOO_MUCH = "more than can be kept waits for keys or the index: it is read again later"
_ELSEWHERE = ("SecondHome", "this node runs elsewhere")


class Uplink:
    """What goes to the parent and comes from it, at one node that is not the centre.

    `saying` is what it says besides heartbeats.
    """

    def __init__(self, state: State, accepting: Accepting) -> None:
        self.saying = Saying(state, accepting)
        self._state = state
        self._accepting = accepting
        self._asked = self._withheld = 0
        self._beat_at: float | None = None
        self._stored = state.inbox.cursor()
        self._superseded = self.second = False

    @property
    def superseded(self) -> bool:
        """Whether a newer session of this same node exists: this one must stop."""
        return self._superseded

    @property
    def withheld(self) -> int:
        """How many records are held, here or below, that the mailbox lacks."""
        return len(self.saying.beyond())

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
        self._beat_at = None
        self._state.content.link(up=up)
        if up:
            self._state.inbox.ask()
            self._begin()

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
        if not inbox.is_answered(message):
            return
        if not fresh and message.incarnation != inbox.incarnation:
            self.link(up=True)
            return
        inbox.epoch = inbox.last_epoch = message.epoch
        if fresh:
            start = inbox.begin_session(message)
            self._beat_at = self._state.now.seconds + HEARTBEAT_SECONDS
            self.saying.begin()
            self._state.out.append(ResetMail(start))
            self._settled()
        elif message.want == WANT_AGAIN:
            self._state.out.append(ResetMail(inbox.read_again(message.last_sequence)))
        elif message.want == WANT_SAY:
            self.saying.begin()
        elif message.want == WANT_LIST and inbox.settled:
            self.saying.list_beyond(self.saying.beyond(), asked=True)

    def mail(self, event: MailArrived) -> None:
        """Judge a message, act on it, and acknowledge what is dealt with."""
        state, inbox = self._state, self._state.inbox
        if not inbox.epoch:
            return
        state.quiet_at = state.now.seconds + QUIET_SECONDS
        inbox.pending = event.pending
        state.begin_batch(more=bool(event.pending or event.more))
        self._judge(event)
        settled = inbox.settled
        inbox.arrived(event)
        if inbox.settled and not settled:
            self.retry_parked()
            self.saying.look_at_all()
            if len(self.saying.beyond()) > self._withheld:
                state.quiet_at = state.now.seconds  # The parent asks for it once it knows.
        state.out.append(AckMail(inbox.answered))
        if not event.pending:
            self._settled()
            self._make_room()

    def retry_parked(self) -> None:
        """Judge again what waited for a key or for the index."""
        inbox = self._state.inbox
        for sequence in inbox.parked:
            parked = inbox.parked.take(sequence)
            if parked is not None:
                self._judge(*parked)
        if not inbox.waits:
            self.saying.look_at_early()
        self._settled()
        if inbox.epoch:
            self._state.out.append(AckMail(inbox.answered))

    def judge_again(self) -> None:
        """Keys or the index are others than before."""
        self.retry_parked()
        self._make_room()

    def _make_room(self) -> None:
        """Read again what found no room among what waits, once there is some."""
        inbox = self._state.inbox
        if inbox.epoch and (start := inbox.make_room()) is not None:
            self._state.out.append(ResetMail(start))

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

    def _heard_otherwise(self, message: SessionMessage) -> None:
        """Hear the parent speak by itself, as after its start, or to another run of this node."""
        inbox = self._state.inbox
        if message.run and 0 < inbox.last_epoch < message.epoch:
            self._superseded = True
            self._state.out.append(Noted("Superseded", "session", "a newer run of this node"))
            if inbox.epoch:
                # By its last one the parent knows that there were two at a time.
                self._send_heartbeat(inbox.epoch)
        elif not message.run and message.incarnation != inbox.incarnation:
            inbox.ask(message.incarnation)
            self._begin()

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
                state.refuse(reason, f"mail {event.key}", detail)
            case Park():
                self._park(event, ruling)
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

    def _park(self, event: MailArrived, ruling: Park) -> None:
        if not self._state.inbox.park(event, ruling.believed):
            self._state.out.append(Noted("MailWaits", "mailbox", TOO_MUCH))
        if ruling.chunk is not None:
            self._accepting.want_chunks()

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
            self.saying.gone(held.key)
        elif is_delta(known):
            if held.generation == known.generation:
                self._accepting.bare(known, unmeant=known.has_body and not held.has_body)
            # Also of an older one: the parent wrote it again, and waits for an answer.
            state.touch(known.key)

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

    def _begin(self) -> None:
        """Ask what is to be asked now, soon once more, and for the content that did not come."""
        self._asked = 0
        self._ask_session()
        self._state.content.retry_all()

    def _ask_session(self) -> None:
        delay = min(SESSION_RETRY_SECONDS * 2**self._asked, SESSION_RETRY_MAX_SECONDS)
        self._asked += 1
        self._beat_at = self._state.now.seconds + delay
        self._send_heartbeat(0)

    def _heartbeat(self) -> None:
        self._beat_at = self._state.now.seconds + HEARTBEAT_SECONDS
        self.saying.forget_gone()
        self._send_heartbeat(self._state.inbox.epoch)

    def _send_heartbeat(self, epoch: int, *, farewell: bool = False) -> None:
        state, inbox = self._state, self._state.inbox
        beyond = self.saying.beyond()
        self._withheld = len(beyond)
        if not beyond:
            self.saying.list_beyond(beyond)
        heartbeat = Heartbeat(
            epoch=epoch,
            incarnation=inbox.incarnation,
            sequence=inbox.answered,
            mail_digest=inbox.digest.to_bytes(16, "big"),
            report_digest=self.saying.digest,
            labels_hash=self.saying.labels_hash,
            index_generation=state.index.generation,
            has_memory=inbox.has_memory,
            refused=state.refused,
            withheld=self._withheld,
            last_epoch=inbox.last_epoch,
            run=state.config.incarnation,
            home=state.config.home,
            farewell=farewell,
            question=inbox.question,
        )
        state.out.append(SendHeartbeat(encode(heartbeat)))
