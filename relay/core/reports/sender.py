"""What a node says to its parent: reports, labels, and what it holds beyond its mailbox.

Each is said once in a session, and again when it is another.
"""

from __future__ import annotations

from relay.core.accepting import Accepting
from relay.core.effects import SendReport
from relay.core.parts import split_results
from relay.core.report_digest import content_of, report_term
from relay.core.state import State
from schemas.identity import MailKey
from schemas.records import DIGEST_MODULUS
from schemas.reports import (
    LIST_ENTRIES_MAX,
    LIST_PARTS_MAX,
    LabelReport,
    Listed,
    ListPart,
    Report,
    ReportPart,
    Summary,
    encode,
    part_key,
)
from schemas.subjects import LABELS_KEY, LIST_KEY

LIST_AGAIN_MAX = 5  # A list may be lost, but one that nobody can act on is not said for ever.


class Saying:
    """What was said in the session now; nothing is said before one has begun."""

    def __init__(self, state: State, accepting: Accepting) -> None:
        self._state = state
        self._accepting = accepting
        self._revision = self._list_again = 0
        self._sent: dict[MailKey, bytes] = {}
        self._parts: dict[MailKey, int] = {}
        self._early: dict[MailKey, None] = {}
        self._terms: dict[str, int] = {}
        self._labels: bytes = b""
        self._listed: tuple[Listed, ...] = ()

    @property
    def digest(self) -> bytes:
        """The digest of the reports that the parent should have now: 16 bytes."""
        return (sum(self._terms.values()) % DIGEST_MODULUS).to_bytes(16, "big")

    @property
    def labels_hash(self) -> bytes:
        """The digest of the labels said last; empty if none were."""
        return self._labels

    def begin(self) -> None:
        """Say everything again: the session is new, or the parent lost something."""
        self._sent.clear()
        self._terms.clear()
        self._labels = b""
        self._listed = ()
        self._state.labels_dirty = True
        self.look_at_all()

    def look_at_all(self) -> None:
        """Look again at what is to be said of every placement."""
        for held in self._state.deltas():
            self._state.touch(held.key)

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
        if inbox.waits:
            self._early[key] = None
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
            self._forget(key)
        return True

    def forget_gone(self) -> None:
        """Forget what was said of placements that are not held any more, nor to be spoken of."""
        state = self._state
        for key in self._sent.keys() - state.held.keys() - state.reporting.dirty.keys():
            self._forget(key)

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

    def gone(self, key: MailKey) -> None:
        """Answer for a placement that is not here, also if that was said before."""
        self._sent.pop(key, None)
        self._state.touch(key)

    def look_at_early(self) -> None:
        """Look again at what was said while mail was parked: nothing is any more.

        It answered only for the mail before the first that was parked.
        """
        for key in self._early:
            self._state.touch(key)
        self._early.clear()

    def beyond(self) -> list[Listed]:
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

    def list_beyond(self, beyond: list[Listed], *, asked: bool = False) -> None:
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

    def _forget(self, key: MailKey) -> None:
        self._sent.pop(key, None)
        self._parts.pop(key, None)

    def _say(self, slot: str, data: bytes, *, there: bool) -> None:
        """Send a report's part, counted in the digest unless nothing is there any more."""
        if there:
            self._terms[slot] = report_term(slot, (self._state.inbox.epoch, self._revision))
        else:
            self._terms.pop(slot, None)
        self._send(slot, data)

    def _send(self, slot: str, data: bytes) -> None:
        self._state.out.append(SendReport(slot, data))
