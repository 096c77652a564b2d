"""Faults planted in the relay on purpose, each one thing that a hurried change might do.

Each gives what it changes: an owner, an attribute, and what stands there instead.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

from relay.core import (
    accepting,
    book,
    children,
    content,
    downlink,
    edge,
    inbox,
    mailboxes,
    node,
    reporting,
    state,
    trust,
    uplink,
    where,
)
from relay.core.effects import AckMail, StoreOwn
from relay.core.reduce import merge
from schemas import blobs, records, wire
from schemas.refusals import BlobRefused
from tests.simulation import stages
from tests.simulation.centre import OTHER_TREE

Patch = tuple[object, str, Any]

# Whom a node believes.


def trust_unsigned() -> Patch:
    """Believe every signature."""
    return trust.Trust, "judge", lambda *_: trust.Verdict.BELIEVED


def trust_another_tree() -> Patch:
    """Believe what a known key signed for another tree."""
    honest = trust.Trust.judge

    def judge(self: Any, envelope: Any, record: Any) -> Any:
        verdict = honest(self, envelope, record)
        other = replace(self, tree=OTHER_TREE)
        return honest(other, envelope, record) if verdict is trust.Verdict.FORGED else verdict

    return trust.Trust, "judge", judge


def ignore_scope() -> Patch:
    """Let every key sign everything."""
    return records.KeyGrant, "covers", lambda *_: True


def believe_any_body() -> Patch:
    """Take a body without looking whether the signed head names it."""
    honest = records.decode_body

    def decode(head: Any, body: bytes) -> Any:
        return honest(wire.replace(head, body_hash=hashlib.sha256(body).digest()), body)

    return book, "decode_body", decode


def keep_any_blob() -> Patch:
    """Keep a value without looking whether its hash is its name."""
    honest = blobs.open_value

    def opened(reference: Any, value: bytes, parts: Any = None) -> bytes:
        try:
            return honest(reference, value, parts)
        except BlobRefused:
            if reference.kind != blobs.OBJECT:
                raise
            return value[1:]

    return content.blobs, "open_value", opened


def ignore_the_key() -> Patch:
    """Compare a record with what is held under the key that it came under, not its own."""
    honest = inbox.Inbox.judge

    def judge(self: Any, event: Any, known: Any, *rest: Any) -> Any:
        ruling = honest(self, event, known, *rest)
        if not isinstance(ruling, inbox.Refuse) or ruling.reason != "WrongKey":
            return ruling
        _, held = book.read_record(event.data, 0)
        return honest(self, replace(event, key=held.key), known, *rest)

    return inbox.Inbox, "judge", judge


def believe_any_profile() -> Patch:
    """Take any profile for the own one, whatever its path."""

    def own_profile(self: Any) -> None:
        known = self._where.profiles.values()
        self.profile = max(known, key=lambda profile: profile.generation, default=None)

    return edge.Edge, "own_profile", own_profile


# What is newer, and what is gone.


def ignore_generation() -> Patch:
    """Take whatever comes, also what is older than what is held."""
    return inbox, "_against", lambda held, _known: inbox.Take(held)


def forget_tombstone() -> Patch:
    """Let go of a deleted placement before a newer index stands in its place."""

    def forget(self: Any, key: Any) -> None:
        own = self._state
        held = own.held.get(key)
        if held is None or own.is_root or not self.is_gone(held):
            return
        own.held.pop(key)
        own.unmeant.pop(key, None)
        own.where.set_delta(key, None)
        own.forget_supply(key)
        own.reporting.forget(key)
        own.out.append(StoreOwn(key, None))

    return accepting.Accepting, "forget_if_done", forget


def remember_at_once() -> Patch:
    """Believe what is newer than the index without any memory of what was before."""
    return inbox.Inbox, "has_memory", property(lambda _self: True)


def drop_the_epoch_check() -> Patch:
    """Order a child's reports by their revision alone, whichever session they are of."""
    honest = reporting.Reporting.take

    def take(self: Any, child: str, report: Any, incarnation: str) -> bool:
        return honest(self, child, wire.replace(report, epoch=0), incarnation)

    return reporting.Reporting, "take", take


# What absence means.


def prune_before_read() -> Patch:
    """Let the syncer remove what is not wanted now, though the mailbox was not read to its end."""
    return node.Node, "may_prune", property(lambda _self: True)


def absence_is_deletion() -> Patch:
    """Drop what the mailbox does not hold, once it was read to its end."""
    honest = uplink.Uplink._settled

    def settled(self: Any) -> None:
        honest(self)
        own = self._state
        if own.inbox.settled and not own.inbox.pending:
            for held in own.deltas():
                if held.key not in own.inbox.terms and not held.record.deleted:
                    self._accepting._vanish(held)

    return uplink.Uplink, "_settled", settled


def any_index_drops() -> Patch:
    """Drop what an index does not list, though it is older than the delta."""

    def drop(self: Any) -> None:
        for held in self._state.deltas() if not self._state.is_root else ():
            if not held.record.deleted and self._state.index.listed(held.key) is None:
                self._vanish(held)

    return accepting.Accepting, "drop_unlisted", drop


def clear_on_a_late_gone() -> Patch:
    """Clear a slot by any "gone", also by one that answers older mail."""
    honest = downlink.Downlink._placement

    def placement(self: Any, name: str, report: Any) -> None:
        honest(self, name, report)
        if report.gone:
            self._state.mailboxes.clear(name, report.key)

    return downlink.Downlink, "_placement", placement


def never_clear() -> Patch:
    """Leave every slot where it is, whoever has answered."""
    return mailboxes.Mailboxes, "clear", lambda *_: None


def ask_no_index() -> Patch:
    """Take a delta that is not held without asking the index whether it is in force."""
    return inbox.Inbox, "_unheld_delta", lambda _self, held: inbox.Take(held)


# In which order.


def acknowledge_before_stored() -> Patch:
    """Acknowledge mail first, and store what it said after that."""
    return stages, "STAGES", {**stages.STAGES, AckMail: -1}


def acknowledge_what_is_parked() -> Patch:
    """Count mail as dealt with that waits for a key or for the index."""
    return inbox.Inbox, "answered", property(lambda self: self.high)


def delta_before_blobs() -> Patch:
    """Send a delta on before its content is here."""
    return state.State, "supply", lambda *_: mailboxes.Supply.HERE


def shrink_before_gain() -> Patch:
    """Send what takes without waiting for what gives."""
    return mailboxes, "takes", lambda *_: False


def profile_before_its_locations() -> Patch:
    """Send a profile without the locations that its destination has come to belong to."""
    return accepting.Accepting, "_mark_locations", lambda *_: None


# What is counted.


def count_twice() -> Patch:
    """Count a node's own destination with its children's, and once more."""
    honest = reporting.Reporting.summary

    def summary(self: Any, key: Any, own: Any) -> Any:
        return merge(honest(self, key, own), own)

    return reporting.Reporting, "summary", summary


def count_twice_after_a_move() -> Patch:
    """Stay the destination that one was, when it hangs elsewhere."""
    honest = edge.Edge.own_profile

    def own_profile(self: Any) -> None:
        former = self.profile
        honest(self)
        self.profile = self.profile or former

    return edge.Edge, "own_profile", own_profile


def complete_too_early() -> Patch:
    """Hold a summary complete though a child has not answered for what it was sent."""
    honest = state.State.facts

    def facts(self: Any, child: str, key: Any) -> Any:
        return honest(self, child, key)._replace(bearing=0)

    return state.State, "facts", facts


# Starting again.


def never_read_again() -> Patch:
    """Find every mailbox as it should be, whatever the digests say."""
    honest = children.Child.answer

    def answer(self: Any, *given: Any) -> Any:
        said = honest(self, *given)
        self.mismatches = 0
        return wire.replace(said, want="none")

    return children.Child, "answer", answer


def ignore_the_report_digest() -> Patch:
    """Find every report as the child sent it, whatever the digests say."""
    return children.Child, "want_said", lambda _self, _heartbeat, answer, *_: answer


def forget_what_was_sent() -> Patch:
    """Start without looking at what the children were sent."""
    return mailboxes.Mailboxes, "restore", lambda *_: None


def never_judge_again() -> Patch:
    """Leave what is parked where it is."""
    return uplink.Uplink, "retry_parked", lambda _self: None


def keep_the_label_counts() -> Patch:
    """Leave a profile's labels counted when it goes or changes."""
    return where.Where, "_drop", lambda *_: None
