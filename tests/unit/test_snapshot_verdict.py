"""The table of verdicts, row by row: what a node makes of a record under a snapshot."""

import pytest

from relay.core.records.tree import SnapshotTree
from relay.core.records.verdict import (
    HeldRecord,
    RecordAcceptance,
    RecordStanding,
    admit,
    admits_new,
    standing,
)
from schemas.records.snapshots import Term, TermEntry, mail_entry_key
from schemas.values.identity import mail_key
from tests.snapshots import TERM, view_of

OLD, WITHDRAWN, FOREIGN = Term(b"term-old"), Term(b"withdraw"), Term(b"unknown!")
TERMS = sorted(
    [TermEntry(TERM, None), TermEntry(OLD, 50), TermEntry(WITHDRAWN, None)], key=lambda e: e.term
)
LISTED = mail_entry_key(mail_key("api", "space", "", "listed"))
ABSENT = mail_entry_key(mail_key("api", "space", "", "absent"))
TREE = SnapshotTree.empty().changed({LISTED: 40})


def judge(record, view):
    return standing(record, view.generation_of(record.key), view)


def view(hidden=()):
    return view_of(TREE, hidden, generation=100, terms=TERMS)


@pytest.mark.parametrize(
    ("key", "generation", "term", "expected"),
    [
        (LISTED, 40, TERM, RecordStanding.IN_FORCE),
        (LISTED, 40, FOREIGN, RecordStanding.IN_FORCE),
        (LISTED, 101, TERM, RecordStanding.IN_FORCE),
        (ABSENT, 101, FOREIGN, RecordStanding.IN_FORCE),
        (LISTED, 39, TERM, RecordStanding.OUTDATED),
        (LISTED, 39, FOREIGN, RecordStanding.OUTDATED),
        (LISTED, 41, TERM, RecordStanding.OUTDATED),
        (LISTED, 50, OLD, RecordStanding.OUTDATED),
        (LISTED, 51, OLD, RecordStanding.ORPHANED),
        (LISTED, 99, WITHDRAWN, RecordStanding.OUTDATED),
        (LISTED, 41, FOREIGN, RecordStanding.ORPHANED),
        (ABSENT, 100, TERM, RecordStanding.DROPPED),
        (ABSENT, 50, OLD, RecordStanding.DROPPED),
        (ABSENT, 99, WITHDRAWN, RecordStanding.DROPPED),
        (ABSENT, 51, OLD, RecordStanding.ORPHANED),
        (ABSENT, 1, FOREIGN, RecordStanding.ORPHANED),
    ],
)
def test_a_held_record_stands_as_the_table_says(key, generation, term, expected):
    assert judge(HeldRecord(key, generation, term), view()) is expected


def test_what_cannot_be_read_is_as_before_and_what_is_newer_needs_no_reading():
    record = view().record
    tree, terms = record.tree.address, record.terms_reference.address
    old, ahead = HeldRecord(LISTED, 40, TERM), HeldRecord(ABSENT, 101, FOREIGN)
    assert judge(old, view({tree})) is RecordStanding.UNREAD
    assert judge(old, view({terms})) is RecordStanding.IN_FORCE
    assert judge(HeldRecord(ABSENT, 40, TERM), view({terms})) is RecordStanding.UNREAD
    assert judge(HeldRecord(LISTED, 39, TERM), view({terms})) is RecordStanding.OUTDATED
    assert judge(HeldRecord(LISTED, 41, TERM), view({terms})) is RecordStanding.UNREAD
    assert judge(ahead, view({tree, terms})) is RecordStanding.IN_FORCE


@pytest.mark.parametrize(
    ("key", "generation", "admission"),
    [
        (LISTED, 40, RecordAcceptance.TAKEN),
        (ABSENT, 101, RecordAcceptance.TAKEN),
        (LISTED, 101, RecordAcceptance.TAKEN),
        (LISTED, 39, RecordAcceptance.SUPERSEDED),
        (LISTED, 41, RecordAcceptance.SUPERSEDED),
        (ABSENT, 100, RecordAcceptance.SUPERSEDED),
    ],
)
def test_a_record_that_is_not_held_is_taken_if_newer_or_listed(key, generation, admission):
    assert admit(key, generation, view()) is admission


@pytest.mark.parametrize(
    ("generation", "term", "admission"),
    [
        (39, FOREIGN, RecordAcceptance.TAKEN),
        (41, TERM, RecordAcceptance.TAKEN),
        (50, OLD, RecordAcceptance.TAKEN),
        (51, OLD, RecordAcceptance.LISTED_BELOW),
        (99, WITHDRAWN, RecordAcceptance.TAKEN),
        (41, FOREIGN, RecordAcceptance.LISTED_BELOW),
    ],
)
def test_what_is_listed_does_not_take_the_place_of_an_orphan(generation, term, admission):
    held = HeldRecord(LISTED, generation, term)
    assert admit(LISTED, 40, view(), held) is admission
    assert admit(LISTED, 101, view(), held) is RecordAcceptance.TAKEN
    assert admit(LISTED, 38, view(), held) is RecordAcceptance.SUPERSEDED


def test_what_would_take_the_place_of_an_orphan_waits_for_the_terms():
    hidden = view({view().record.terms_reference.address})
    held = HeldRecord(LISTED, 41, FOREIGN)
    assert admit(LISTED, 40, hidden, held) is RecordAcceptance.UNREAD
    assert admit(LISTED, 40, hidden) is RecordAcceptance.TAKEN


def test_what_is_not_held_waits_for_what_would_tell():
    hidden = view({view().record.tree.address})
    assert admit(LISTED, 40, hidden) is RecordAcceptance.UNREAD
    assert admit(LISTED, 101, hidden) is RecordAcceptance.TAKEN


def test_without_memory_nothing_is_taken_under_an_expired_snapshot_unless_configured_to():
    record = view().record
    before, after = record.expires_ms - 1, record.expires_ms
    assert admits_new(record, before, with_memory=False)
    assert not admits_new(record, after, with_memory=False)
    assert admits_new(record, after, with_memory=False, expired_allowed=True)
    assert admits_new(record, after, with_memory=True)
