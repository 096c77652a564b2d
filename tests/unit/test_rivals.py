"""Of a copied data directory one centre goes on: both copies judge alike, by what children show."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from controllers.core.ledger.rivals import (
    CLOCKS_DIFFER_MS,
    Rival,
    judge_shown,
    new_term,
)
from controllers.core.ledger.snapshots import SnapshotIssuer
from relay.core.effects import SnapshotShown
from relay.core.events import HelloArrived, Tick
from schemas.records.snapshots import SnapshotRank, Term
from schemas.records.snapshots import encode as encode_snapshot
from schemas.values.wire import encode
from tests.unit.meeting import SIGNER, Meeting, hellos

NOW_MS = 1_800_000_000_000
FIRST = SnapshotRank(0, 1)
MOMENTS = st.integers(0, 10**9).map(lambda more: NOW_MS + more)
TWO_BYTES = st.binary(min_size=8, max_size=8)


@given(MOMENTS, TWO_BYTES, MOMENTS, TWO_BYTES)
def test_of_two_that_see_each_other_exactly_one_goes_on(first_ms, one, second_ms, other):
    mine, theirs = new_term(first_ms, one), new_term(second_ms, other)
    late = max(first_ms, second_ms) + CLOCKS_DIFFER_MS + 1
    seen = {
        judge_shown(SnapshotShown(FIRST, theirs, late), mine, 0),
        judge_shown(SnapshotShown(FIRST, mine, late), theirs, 0),
    }
    assert seen == ({Rival.GOES_ON, Rival.MUST_END} if mine != theirs else {Rival.NONE})


def test_the_one_that_began_first_goes_on():
    first, second = new_term(NOW_MS, b"\xff" * 8), new_term(NOW_MS + 1, b"\0" * 8)
    late = NOW_MS + 10**6
    assert judge_shown(SnapshotShown(FIRST, first, late), second, 0) is Rival.GOES_ON
    assert judge_shown(SnapshotShown(FIRST, second, late), first, 0) is Rival.MUST_END


@given(st.integers(-(10**9), CLOCKS_DIFFER_MS), TWO_BYTES)
def test_what_was_signed_before_is_of_a_run_that_ended(after_ms, entropy):
    mine = new_term(NOW_MS, entropy)
    for theirs in (new_term(NOW_MS - 10**6, entropy), new_term(NOW_MS + 10**6, entropy)):
        shown = SnapshotShown(FIRST, theirs, NOW_MS + after_ms)
        assert judge_shown(shown, mine, 0) is Rival.NONE


@given(st.sampled_from([-(10**6), 10**6]), st.integers(0, 10))
def test_what_the_ledger_knew_as_it_began_is_of_a_run_that_ended_whatever_the_clock_said(
    apart_ms, generation
):
    """The clock was set back meanwhile."""
    mine, theirs = new_term(NOW_MS, b"\0" * 8), new_term(NOW_MS + apart_ms, b"\0" * 8)
    shown = SnapshotShown(SnapshotRank(0, generation), theirs, NOW_MS + 10**7)
    assert (judge_shown(shown, mine, 5) is Rival.NONE) == (generation <= 5)


def test_an_older_snapshot_of_another_term_is_shown_too_for_who_signed_it_may_still_sign():
    meeting = Meeting()
    child = meeting.join("one", "here")
    meeting.now += 30
    (hello,) = hellos(meeting.tell(child, Tick()))
    other = SnapshotIssuer(Term(b"the copy"), now=0.0)
    record = other.sign(meeting.generation - 1, now=3.0, now_ms=NOW_MS).record
    own = meeting.snapshot

    def told(signed):
        said = HelloArrived("emea", encode(replace(hello, shown=signed)))
        effects = meeting.centre_hears(said)
        return [effect for effect in effects if isinstance(effect, SnapshotShown)]

    (shown,) = told(SIGNER.seal("snapshot", encode_snapshot(record)).encode())
    assert (shown.term, shown.time_ms) == (b"the copy".hex(), NOW_MS)
    assert shown.rank.generation < meeting.generation
    assert told(own) == [], "it is the centre's own"
