"""A node and its children: their reports, heartbeats and sessions, and when they fall silent."""

from __future__ import annotations

from collections.abc import Iterable

from relay.core.accepting import Accepting
from relay.core.beginning import Beginning
from relay.core.children import LIST_EVERY_SECONDS, SILENT_AFTER_SECONDS, Child
from relay.core.effects import DropReport, Noted, SendSession, StoreOwn
from relay.core.events import ReportArrived
from relay.core.reading_on import read_on
from relay.core.slots import owe_listed, owe_no_more, read_slot
from relay.core.state import State
from schemas.identity import MailKey
from schemas.refusals import RecordRefused
from schemas.reports import (
    PART_MAX_BYTES,
    WANT_LIST,
    WANT_NONE,
    WANT_SAY,
    WANT_STOP,
    Heartbeat,
    LabelReport,
    ListPart,
    Report,
    ReportPart,
    SessionMessage,
    decode,
    encode,
)
from schemas.subjects import CURSOR_KEY
from schemas.wire import replace

LABELS_AGAIN_SECONDS = 2.0
LABELS_AGAIN_MAX_SECONDS = 30.0
"""How long labels are waited for while other reports come: these are read in one stream."""


class Downlink:
    """What comes from below, at one node."""

    def __init__(self, state: State, accepting: Accepting) -> None:
        self._state = state
        self._accepting = accepting
        self._beginning = Beginning(state, accepting, self.heartbeat)
        self._labels_until: float | None = None
        self._labels_latest = float("inf")
        self._silent_due: float | None = None

    def heartbeat(self, name: str, data: bytes) -> None:
        """Answer a child's heartbeat with its session, and with what it should read again."""
        state, child = self._state, self._state.children.get(name)
        if child is None:
            return
        try:
            heartbeat = decode(Heartbeat, data, PART_MAX_BYTES)
        except RecordRefused as error:
            self._refuse(name, child, error)
            return
        if self._is_of_no_session(name, child, heartbeat):
            return
        self._heard(name, child)
        foreign = heartbeat.incarnation != state.config.incarnation
        digest = state.mailboxes.digest(name, foreign=foreign)
        mail = self._mail_of(name, child)
        if not self._beginning.admits(name, data, heartbeat, mail, digest):
            return
        answer = child.answer(heartbeat, mail, digest, state.now.wall_ms)
        child.has_memory = heartbeat.has_memory
        child.index_shown = heartbeat.index_generation
        if heartbeat.incarnation == state.config.incarnation:
            read_on(state, name, child, heartbeat.sequence)
            self._beginning.has_read(name, heartbeat.sequence if heartbeat.epoch else 0)
        if child.is_rewritten(state.now.seconds):
            state.out.append(Noted("MailDiffers", name, "its mailbox is written again"))
            state.mailboxes.rewrite(name)
        if not heartbeat.epoch:
            answer = self._beginning.show(name, child, heartbeat, answer)
        answer = self._want_said(name, child, heartbeat, answer)
        self._send(name, self._want_list(name, child, heartbeat, answer))

    def report(self, event: ReportArrived) -> None:
        """Take a report slot of a child: a part, or its label digest.

        What nothing is kept of is erased: else a child could fill this node's disk.
        """
        name, state = event.child, self._state
        child = state.children.get(name)
        if child is None:
            return
        if not child.left:
            self._heard(name, child)
        self._read_of_labels()
        kept = False
        try:
            match read_slot(event.key, event.data):
                case LabelReport() as labels:
                    self._labels(name, child, labels)
                    kept = True
                case ListPart() as listed:
                    kept = listed.epoch >= child.epoch
                    if kept:
                        owe_listed(state, name, listed)
                case Report() | ReportPart() as report:
                    kept = self._report(name, child, report)
                case None:
                    pass
        except RecordRefused as error:
            self._refuse(name, child, error)
        if not kept and event.sequence:
            state.out.append(DropReport(name, event.key, event.sequence))

    def _report(self, name: str, child: Child, report: Report | ReportPart) -> bool:
        """Take a report; whether it is one to be kept."""
        reporting, gone = self._state.reporting, False
        child.said = max(child.said, report.epoch)
        if isinstance(report, Report):
            gone = self._placement(name, report)
        elif reporting.has_room(name, report):
            reporting.take_part(name, report)
        else:
            raise RecordRefused("more report parts than a child may have")
        slots = self._state.mailboxes.boxes[name].slots
        known = reporting.knows(name, report.key) or report.key in slots
        if not known and not gone and child.proven and self._state.has_ledger:
            raise RecordRefused("a report on what it was not sent from here")
        return known and not gone

    def unlinked(self, name: str) -> None:
        """Let a child come from another home: where it was, its link is gone."""
        if child := self._state.children.get(name):
            child.unlinked = True
            self._beginning.leave(name)

    def await_labels(self) -> None:
        """After a start, write nothing to a relay sent to before until its labels were read again.

        They are in STAT if it ever said them; without them everything may concern it.
        """
        state = self._state
        for name, box in state.mailboxes.boxes.items():
            branch = state.where.branch(name)
            if box.slots and branch.digests is None and not branch.is_edge:
                state.mailboxes.unheard[name] = None

    def _heard_labels(self, names: Iterable[str]) -> None:
        mailboxes = self._state.mailboxes
        for name in list(names):
            if mailboxes.unheard.pop(name, self) is None:
                mailboxes.flush(name)
        if not mailboxes.unheard:
            self._labels_until = None

    def tick(self) -> None:
        """Count children as unreachable that have been silent for three heartbeats."""
        state = self._state
        self._await_labels()
        self._beginning.let_in()
        for name, child in state.children.items():
            overdue = child.heard + SILENT_AFTER_SECONDS <= state.now.seconds
            if overdue and child.silent_since_ms is None and state.has_joined(name):
                silent_ms = int((state.now.seconds - child.heard) * 1000)
                child.silent_since_ms = state.now.wall_ms - silent_ms
                state.out.append(Noted("Unreachable", name, "no heartbeat"))
                self._refresh(name)

    def _await_labels(self) -> None:
        """Count from the first look at the clock: the start itself may have taken long."""
        mailboxes, now = self._state.mailboxes, self._state.now.seconds
        if not mailboxes.unheard:
            return
        if self._labels_until is None:
            self._labels_until = now + LABELS_AGAIN_SECONDS
            self._labels_latest = now + LABELS_AGAIN_MAX_SECONDS
        elif self._labels_until <= now:
            self._heard_labels(mailboxes.unheard)

    def _read_of_labels(self) -> None:
        """Labels may follow what was read just now."""
        if self._labels_until is not None:
            later = self._state.now.seconds + LABELS_AGAIN_SECONDS
            self._labels_until = min(later, self._labels_latest)

    def deadline(self) -> float | None:
        """When the next child may have been silent for too long."""
        now = self._state.now.seconds
        if self._silent_due is None or self._silent_due <= now:
            # Children that are heard later are due later: what was found stays early enough.
            known = self._state.children.items()
            heard = (
                c.heard for n, c in known if c.silent_since_ms is None and self._state.has_joined(n)
            )
            first = min(heard, default=now if known else None)
            self._silent_due = None if first is None else first + SILENT_AFTER_SECONDS
        due, place = self._silent_due, self._state.admission.deadline()
        if place is not None and (due is None or place < due):
            due = place
        if self._state.mailboxes.unheard:
            labels = now if self._labels_until is None else self._labels_until
            due = labels if due is None or labels < due else due
        return due

    def greet(self) -> None:
        """Tell all children that this node's run is new, so that they begin a session."""
        for name, child in self._state.children.items():
            self._send(name, self._mail_of(name, child))

    def doubt(self) -> None:
        """Take no child for proven by what it said before: what it was sent then is forgotten.

        A list said before named what was not known here, and may be needed once more.
        """
        self._silent_due = None
        for name, child in self._state.children.items():
            child.proven, child.list_asked = False, float("-inf")
            self._refresh(name)
        self._keep_unproven()

    def _keep_unproven(self) -> None:
        """At the centre, which has no other use for a cursor, say in OWN who is unproven."""
        if self._state.is_root:
            cursor = encode(self._state.cursor())
            self._state.out.append(StoreOwn(CURSOR_KEY, cursor))

    def _is_of_no_session(self, name: str, child: Child, heartbeat: Heartbeat) -> bool:
        """Deal with a heartbeat that neither begins a session nor goes on with the one in force."""
        if heartbeat.farewell:
            self._farewell(name, child, heartbeat)
            return True
        if child.left and heartbeat.run == child.run:
            return True
        if self._is_second(child, heartbeat):
            self._state.out.append(Noted("SecondHome", name, "it runs elsewhere; told to stop"))
            self._stop(name, child, heartbeat.run, 0)
            return True
        taken = heartbeat.run in child.former
        if taken or 0 < heartbeat.epoch < child.epoch:
            # Another run has the session now; or this one missed the answer that gave it.
            if heartbeat.run == child.run:
                self._heard(name, child)
            if taken:
                child.contend(heartbeat.run, self._state.now.seconds)
                note = Noted("SecondRun", name, "an older run was up; told to stop")
                self._state.out.append(note)
            if taken and not heartbeat.last_epoch:
                # It never heard that it had the session, so it cannot know that it lost it.
                self._stop(name, child, heartbeat.run, child.epoch)
            mail, asked = self._mail_of(name, child), heartbeat.question
            self._send(name, replace(mail, run=child.run, question=asked))
            return True
        return False

    def _stop(self, name: str, child: Child, run: str, epoch: int) -> None:
        """Tell a run that another one has its session: a newer one's epoch, or 0 of an older."""
        stop = replace(self._mail_of(name, child), epoch=epoch, want=WANT_STOP, run=run)
        self._send(name, stop)

    def _is_second(self, child: Child, heartbeat: Heartbeat) -> bool:
        """Whether a child that runs already, and is heard of, runs at another place as well.

        Only a heartbeat in a session with this run shows where the child runs: others may be old.
        """
        if heartbeat.run in child.former:
            return False  # It had the session once, and heeds only that a newer run has it.
        if child.home and heartbeat.home not in ("", child.home):
            if child.silent_since_ms is None and not child.unlinked:
                return True
            child.home = ""
        if heartbeat.epoch and heartbeat.incarnation == self._state.config.incarnation:
            child.home = heartbeat.home
        return False

    def _farewell(self, name: str, child: Child, heartbeat: Heartbeat) -> None:
        """Count a child as unreachable at once whose run in session ends in good order."""
        state = self._state
        other = heartbeat.epoch == child.epoch and child.run not in ("", heartbeat.run)
        if child.left or heartbeat.epoch < child.epoch or other:
            return
        child.epoch, child.run, child.home = heartbeat.epoch, heartbeat.run, ""
        child.left, child.heard = True, state.now.seconds
        child.silent_since_ms = state.now.wall_ms
        state.out.append(Noted("Left", name, "it stopped in good order"))
        self._refresh(name)
        self._beginning.leave(name)

    def _heard(self, name: str, child: Child) -> None:
        state = self._state
        child.heard, child.left, child.unlinked = state.now.seconds, False, False
        if child.silent_since_ms is not None or name not in state.joined:
            child.silent_since_ms = None
            state.joined.add(name)
            self._refresh(name)

    def _refresh(self, name: str) -> None:
        for key in self._reported(name):
            self._state.reporting.refresh(name, key)

    def _reported(self, name: str) -> list[MailKey]:
        state = self._state
        keys = dict.fromkeys(state.reporting.keys_of(name))
        keys |= dict.fromkeys(k for k in state.mailboxes.boxes[name].slots if k in state.held)
        return [key for key in keys if key in state.held and state.held[key].kind == "delta"]

    def _placement(self, name: str, report: Report) -> bool:
        """Take part 0; whether the placement is over with it, or was before."""
        state = self._state
        if not state.reporting.take(name, report, state.config.incarnation):
            return False
        slot = state.mailboxes.boxes[name].slots.get(report.key)
        current = report.incarnation == state.config.incarnation
        held = state.held.get(report.key)
        if slot is None and held is not None and not report.gone:
            # Sent before this node lost its memory: nobody else would take it back.
            state.mailboxes.owe(name, report.key)
        answers = slot is not None and 0 < slot.sequence <= report.answered
        if report.gone and current and answers and slot is not None and not slot.content:
            state.mailboxes.clear(name, report.key)
            state.touch(report.key)
        return report.gone and report.key not in state.mailboxes.boxes[name].slots

    def _labels(self, name: str, child: Child, report: LabelReport) -> None:
        state = self._state
        stamp = (report.epoch, report.revision)
        if stamp < child.labels_stamp:
            return
        child.labels_stamp = stamp
        if report.epoch == child.epoch and report.incarnation == state.config.incarnation:
            # They are said once the mailbox is read to its end.
            self._beginning.leave(name)
        child.labels_hash = report.digest
        former = state.where.branch(name).digests
        if former != report.spaces:
            state.where.set_digests(name, report.spaces)
            state.labels_dirty = True
            state.look_again(name)
        self._heard_labels([name])

    def _want_said(
        self, name: str, child: Child, heartbeat: Heartbeat, answer: SessionMessage
    ) -> SessionMessage:
        """Ask for all reports again if some were lost, also for what is gone and not said again."""
        state = self._state
        reports, now = state.reporting.digest(name), state.now.seconds
        answer = child.want_said(heartbeat, answer, reports, now)
        if answer.want == WANT_SAY:
            state.out.append(Noted("ReportsDiffer", name, "it is asked for all of them again"))
            state.mailboxes.again(name)
        return answer

    def _want_list(
        self, name: str, child: Child, heartbeat: Heartbeat, answer: SessionMessage
    ) -> SessionMessage:
        """Ask for what a child holds beyond its mailbox, once that is as it should be."""
        state, now = self._state, self._state.now.seconds
        same = heartbeat.epoch and heartbeat.incarnation == state.config.incarnation
        read = heartbeat.sequence == answer.last_sequence and answer.want == WANT_NONE
        whole = state.mailboxes.calm and not state.mailboxes.boxes[name].queue
        if not (same and read and whole):
            return answer
        if not heartbeat.withheld:
            owe_no_more(state, name)
            if not child.proven:
                child.proven = True
                self._refresh(name)
                self._keep_unproven()
            return answer
        if child.list_asked + LIST_EVERY_SECONDS > now:
            return answer
        child.list_asked = now
        return replace(answer, want=WANT_LIST)

    def _mail_of(self, name: str, child: Child) -> SessionMessage:
        state = self._state
        box = state.mailboxes.boxes[name]
        return SessionMessage(
            incarnation=state.config.incarnation,
            epoch=child.epoch,
            last_sequence=box.last_sequence,
            swept_through=state.swept_through,
            index_generation=state.index.generation,
            want=WANT_NONE,
        )

    def _send(self, name: str, message: SessionMessage) -> None:
        self._state.out.append(SendSession(name, encode(message)))

    def _refuse(self, name: str, child: Child, error: RecordRefused) -> None:
        """Count a refusal, and note it, but not each of a flood."""
        self._state.refused += 1
        if child.refuse(self._state.now.seconds):
            self._state.out.append(Noted("BadReport", name, error.reason))
