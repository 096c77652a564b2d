"""The centre's snapshots: the first of a run, what they list, what a start makes of the ledger."""

from collections import deque

import pytest

from controllers.core.ledger.snapshots import (
    HOLD_SECONDS,
    INTERVAL_SECONDS,
    RENEWAL_SECONDS,
    SETTLING_SECONDS,
    WAITED_FOR_SECONDS_MAX,
    LedgerStanding,
    SnapshotIssuer,
    judge_own_ledger,
    known_terms,
)
from relay.core.records.snapshot import SnapshotView
from relay.core.records.tree import SnapshotTree
from relay.core.records.verdict import HeldRecord
from schemas.content.blobs import open_value
from schemas.records.snapshots import TERMS_MAX, Term, TermEntry, mail_entry_key, read_terms
from schemas.values.identity import mail_key
from tests.snapshots import TERM, view_of

OLD, OTHER = Term(b"term-old"), Term(b"term-two")
A, B, C, D = (mail_entry_key(mail_key("api", "space", "", name)) for name in "abcd")


def issuer(**given):
    return SnapshotIssuer(TERM, now=0.0, **given)


class Centre:
    """An issuer driven in virtual time, and the blobs that were stored."""

    def __init__(self, **given):
        self.issuer = issuer(**given)
        self.generation = 1000
        self.nodes = {}
        self.snapshots = []

    def issue(self, key, now, *, takes_away=False):
        self.generation += 1
        self.issuer.issued(key, self.generation, takes_away=takes_away, now=now)
        return self.generation

    def sign(self, now):
        self.generation += 1
        issued = self.issuer.sign(self.generation, now=now, now_ms=int(now * 1000))
        self.issuer.assert_invariants()
        for blob in issued.blobs:
            value = blob.values[blob.reference.address]
            self.nodes[blob.reference.address] = open_value(blob.reference, value)
        self.snapshots.append((now, issued.record))
        return issued

    def listed(self):
        view = SnapshotView(self.snapshots[-1][1], self.nodes)
        return {entry.key: entry.generation for entry in view.entries()}

    def terms(self):
        return read_terms(self.nodes[self.snapshots[-1][1].terms_reference.address]).terms


def test_the_first_snapshot_of_a_run_is_due_at_once_and_says_what_is_stored_with_it():
    centre = Centre()
    assert centre.issuer.due == 0
    generation = centre.issue(A, 0.0)
    issued = centre.sign(0.5)
    assert centre.listed() == {A: generation}
    assert issued.record.count == 1
    assert issued.record.generation == centre.generation
    assert (issued.record.time_ms, issued.record.expires_ms) == (500, 500 + 24 * 3600 * 1000)
    assert issued.record.settled == 0
    assert issued.blobs[0].reference == issued.record.tree.reference


def test_a_later_snapshot_brings_changed_blobs_only():
    centre = Centre()
    centre.issue(A, 0.0)
    centre.sign(0.0)
    assert centre.sign(RENEWAL_SECONDS).blobs == ()
    centre.issue(B, RENEWAL_SECONDS)
    (blob,) = centre.sign(RENEWAL_SECONDS + 1).blobs
    assert blob.reference == centre.snapshots[-1][1].tree.reference


def test_what_only_adds_waits_for_the_renewal_and_what_takes_is_signed_after_two_seconds():
    centre = Centre()
    centre.sign(0.0)
    centre.issue(A, 10.0)
    assert centre.issuer.due == RENEWAL_SECONDS
    taking = centre.issue(A, 11.0, takes_away=True)
    assert centre.issuer.due == 13.0
    assert centre.sign(13.0).record.settled == taking
    assert centre.issuer.due == 13.0 + RENEWAL_SECONDS


def test_a_deleted_record_is_listed_for_two_seconds_and_then_told_as_dropped():
    centre = Centre()
    generation = centre.issue(A, 0.0)
    centre.sign(0.0)
    centre.issuer.deleted(A, now=10.0)
    assert centre.sign(11.9).dropped == ()
    assert centre.listed() == {A: generation}
    assert centre.issuer.due == 12.9
    assert centre.sign(12.9).dropped == (A,)
    assert centre.listed() == {}


def test_what_is_made_again_before_it_was_dropped_stays_listed():
    centre = Centre()
    centre.issue(A, 0.0)
    centre.issuer.deleted(A, now=1.0)
    again = centre.issue(A, 2.0)
    assert centre.sign(5.0).dropped == ()
    assert centre.listed() == {A: again}


def test_what_others_come_after_is_dropped_with_the_last_of_them_and_not_before():
    centre = Centre()
    for key in (A, B, C):
        centre.issue(key, 0.0)
    centre.sign(0.0)
    centre.issuer.deleted(A, now=10.0)
    centre.issuer.deleted(B, now=11.0, after=frozenset({A, D}))
    centre.issuer.deleted(C, now=11.5, after=frozenset({B}))
    assert centre.sign(12.0).dropped == ()
    assert centre.issuer.due == 13.0
    assert centre.sign(13.0).dropped == ()
    assert centre.issuer.due == 14.0
    assert set(centre.sign(14.0).dropped) == {A, B, C}


def test_what_comes_after_something_may_be_dropped_before_it():
    centre = Centre()
    centre.sign(0.0)
    centre.issuer.deleted(B, now=10.0, after=frozenset({A}))
    centre.issuer.deleted(A, now=11.0)
    assert centre.sign(12.0).dropped == (B,)
    assert centre.sign(13.0).dropped == (A,)


def test_of_a_circle_all_are_dropped_at_once():
    centre = Centre()
    centre.sign(0.0)
    centre.issuer.deleted(A, now=10.0, after=frozenset({B}))
    centre.issuer.deleted(B, now=11.0, after=frozenset({A}))
    assert centre.sign(12.0).dropped == ()
    assert centre.sign(13.0).dropped == (A, B)


def test_what_came_after_something_and_is_made_again_holds_nothing_up():
    centre = Centre()
    centre.sign(0.0)
    centre.issuer.deleted(A, now=10.0)
    centre.issuer.deleted(B, now=11.5, after=frozenset({A}))
    centre.issue(B, 12.5)
    assert centre.sign(centre.issuer.due).dropped == (A,)
    # Deleted anew it comes after nothing that it does not name.
    centre.issuer.deleted(A, now=20.0)
    centre.issuer.deleted(B, now=21.0)
    assert centre.sign(22.0).dropped == (A,)


def test_what_is_made_and_deleted_again_and_again_holds_others_up_for_a_minute_at_most():
    centre, now, dropped = Centre(), 10.0, ()
    centre.sign(0.0)
    centre.issuer.deleted(A, now=now)
    while A not in dropped:
        centre.issuer.deleted(B, now=now, after=frozenset({A}))
        now += 1.0
        dropped = centre.sign(now).dropped
        centre.issue(B, now)
    assert now == 10.0 + WAITED_FOR_SECONDS_MAX


def test_during_a_hold_nothing_is_settled_or_dropped():
    centre = Centre()
    first = centre.issue(A, 0.0)
    centre.issuer.pause("apply", now=10.0)
    centre.issue(B, 10.5, takes_away=True)
    centre.issuer.deleted(A, now=11.0)
    assert centre.sign(40.0).record.settled == first
    assert A in centre.listed()
    assert centre.issuer.due == 10.0 + HOLD_SECONDS
    centre.issuer.resume("apply")
    assert centre.issuer.due == 41.0
    assert centre.sign(41.0).record.settled > first
    assert A not in centre.listed()


def test_a_hold_ends_after_a_minute_even_if_others_began_since():
    centre = Centre()
    centre.sign(0.0)
    centre.issuer.pause("first", now=10.0)
    centre.issuer.deleted(A, now=11.0)
    centre.issuer.pause("second", now=20.0)
    assert centre.issuer.due == 70.0
    assert centre.sign(70.0).dropped == (A,)


def test_a_withdrawn_term_is_known_whole_in_the_next_snapshot():
    centre = Centre(terms=[TermEntry(OLD, 7)])
    centre.sign(0.0)
    assert centre.terms() == (TermEntry(OLD, 7),)
    centre.issuer.withdraw(OLD, now=5.0)
    assert centre.issuer.due == 7.0
    centre.sign(7.0)
    assert centre.terms() == (TermEntry(OLD, None),)


def test_the_own_term_is_known_whole_once_it_issued_something():
    centre = Centre()
    centre.sign(0.0)
    assert centre.terms() == ()
    centre.issue(A, 1.0)
    centre.sign(1.0)
    assert centre.terms() == (TermEntry(TERM, None),)


def test_a_new_run_goes_on_listing_what_the_last_listed_and_adds_what_is_ahead():
    tree = SnapshotTree.empty().changed({A: 1, B: 2})
    last = view_of(tree, generation=10).record
    centre = Centre(last=last, stored=tree, ahead={C: 12})
    issued = centre.sign(0.0)
    assert centre.issuer.due == RENEWAL_SECONDS
    assert SnapshotTree.empty().changed({A: 1, B: 2, C: 12}).root == issued.record.root
    assert issued.record.settled == last.settled


def test_a_new_run_settles_what_the_last_run_took_and_did_not_settle():
    tree = SnapshotTree.empty().changed({A: 1, B: 5})
    last = view_of(tree, generation=10, settled=5).record
    centre = Centre(last=last, stored=tree, ahead={C: 12}, losing=True)
    centre.sign(0.0)
    assert centre.issuer.due == SETTLING_SECONDS
    assert centre.sign(SETTLING_SECONDS).record.settled >= 12
    assert centre.issuer.due == SETTLING_SECONDS + RENEWAL_SECONDS


@pytest.mark.parametrize("generation", [1, 10])
def test_a_snapshot_lies_above_all_that_it_covers(generation):
    tree = SnapshotTree.empty().changed({A: 1})
    made = issuer(last=view_of(tree, generation=10).record, stored=tree)
    with pytest.raises(AssertionError):
        made.sign(generation, now=0.0, now_ms=0)


def test_two_snapshots_lie_a_second_apart():
    centre = Centre()
    centre.sign(0.0)
    with pytest.raises(AssertionError):
        centre.sign(INTERVAL_SECONDS / 2)


def test_in_an_hour_of_steady_change_what_is_taken_away_goes_within_ten_seconds():
    """Each of 100 changes a second is due two seconds later: none may put the one before it off."""
    steady, generation, deleted, taken, goes = issuer(), 1000, {}, deque(), []
    keys = [mail_entry_key(mail_key("api", "space", "", f"k{at}")) for at in range(10)]
    for step in range(360_000):
        now, key, generation = step / 100, keys[step % 10], generation + 1
        if step % 701 == 0 and not deleted:
            steady.deleted(key, now=now)
            deleted[key] = now
        elif key not in deleted:
            steady.issued(key, generation, takes_away=True, now=now)
            taken.append((now, generation))
        if steady.due <= now:
            generation += 1
            issued = steady.sign(generation, now=now, now_ms=step * 10)
            goes += [now - deleted.pop(key) for key in issued.dropped]
            while taken and taken[0][1] <= issued.record.settled:
                taken.popleft()
        assert not taken or now - taken[0][0] < 10
    assert len(goes) > 500
    assert max(goes) < 10


def test_a_start_judges_its_own_ledger_by_the_last_snapshot():
    last = view_of(SnapshotTree.empty(), generation=10).record
    same, ahead = HeldRecord(A, 1, OLD), HeldRecord(B, 11, OLD)
    revived, older = HeldRecord(C, 3, OTHER), HeldRecord(D, 4, OLD)
    assert judge_own_ledger([same, ahead, revived, older], last, {A: 1, D: 5}) == LedgerStanding(
        kept=(same, ahead), gone=(revived,), outdated=(older,), lacking={}
    )
    assert judge_own_ledger([], last, {A: 1}).lacking == {A: 1}


def test_a_record_listed_and_issued_anew_since_is_kept_and_not_lacking():
    last = view_of(SnapshotTree.empty(), generation=10).record
    ahead = HeldRecord(A, 11, OLD)
    standing = judge_own_ledger([ahead], last, {A: 1})
    assert (standing.kept, dict(standing.lacking)) == ((ahead,), {})


def test_a_start_knows_each_former_term_up_to_what_its_ledger_held_of_it():
    last = view_of(SnapshotTree.empty(), generation=10).record
    listed = [TermEntry(TERM, None), TermEntry(OLD, 7), TermEntry(OTHER, None)]
    held = [HeldRecord(A, 12, TERM), HeldRecord(B, 6, OLD), HeldRecord(C, 9, Term(b"restored"))]
    assert set(known_terms(last, listed, held)) == {
        TermEntry(TERM, 12),
        TermEntry(OLD, 7),
        TermEntry(OTHER, None),
        TermEntry(Term(b"restored"), 9),
    }
    assert TermEntry(TERM, 10) in known_terms(last, listed, [])


def test_a_lost_ledger_knows_no_term():
    assert known_terms(None, [], []) == ()


def test_of_too_many_terms_the_oldest_are_forgotten_and_withdrawn_ones_kept():
    listed = [TermEntry(Term(n.to_bytes(8, "big")), n) for n in range(TERMS_MAX + 5)]
    kept = known_terms(None, [*listed, TermEntry(TERM, None)], [])
    assert len(kept) == TERMS_MAX - 1
    assert TermEntry(TERM, None) in kept
    assert listed[0] not in kept
    assert listed[-1] in kept
