"""Laws of choosing one writer per object."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from relay.core.destination.claims import Claim, ObjectOwnership, choose
from schemas.content.manifest import CLEANED, CREATE_ONLY, WANT_SINGLETON, ManifestEntry

addresses = st.sampled_from(["a" * 64, "b" * 64])


def entry(space="s", revision=1, address="a" * 64, flags=0, name="x"):
    return ManifestEntry(
        "", "configmaps", "shop", name, address, 1, space, revision, flags=flags, order=12
    )


entries = st.builds(
    entry,
    space=st.sampled_from(["s", "t"]),
    revision=st.integers(1, 3),
    address=addresses,
    flags=st.integers(0, 7),
    name=st.sampled_from(["x", "y"]),
)
claims = st.builds(Claim, st.sampled_from(["p1", "p2", "p3"]), entries)
# A placement lists an object once.
some_claims = st.lists(claims, max_size=8, unique_by=lambda one: (one.placement, one.entry.name))


steps = st.lists(
    st.tuples(
        st.sampled_from(["p1", "p2", "p3"]),
        st.lists(entries, max_size=2, unique_by=lambda one: one.name),
        st.booleans(),
    ),
    max_size=8,
)


def put_all(some):
    """All claims at one destination, chosen of at once."""
    claims = ObjectOwnership()
    for placement in dict.fromkeys(claim.placement for claim in some):
        mine = [claim for claim in some if claim.placement == placement]
        gated = mine[0].gated
        claims.put(placement, [claim.entry for claim in mine], gated=gated)
    claims.resolve()
    return claims


def said(claims, placements=("p1", "p2", "p3")):
    """All that follows from what was chosen."""
    names = [entry(name=name).key for name in ("x", "y")]
    losers = {(p, key): claims.winner_over(p, key) for p in placements for key in names}
    return unnumbered(claims), losers, claims.booked


def unnumbered(claims):
    """What is wanted, whatever was wanted before."""
    return {key: replace(want, wish=0) for key, want in claims.wanted.items()}


@given(some_claims, st.randoms())
def test_who_writes_an_object_does_not_depend_on_the_order_of_claims(some, chance):
    shuffled = list(some)
    chance.shuffle(shuffled)
    assert said(put_all(some)) == said(put_all(shuffled))


@given(some_claims)
def test_every_claim_wins_or_is_told_to_whom_it_lost(some):
    chosen = put_all(some)
    for claim in some:
        wins = claim.placement in chosen.wanted[claim.entry.key].placements
        assert wins == (chosen.winner_over(claim.placement, claim.entry.key) is None)


@given(some_claims)
def test_the_newest_of_the_first_source_is_kept_and_others_are_told(some):
    chosen = put_all(some)
    assert chosen.wanted.keys() == {claim.entry.key for claim in some}
    for key, wanted in chosen.wanted.items():
        asking = [claim for claim in some if claim.entry.key == key]
        first = min(asking, key=lambda claim: claim.placement)
        same = [c for c in asking if c.entry.space == first.entry.space]
        others = [c for c in asking if c not in same and c.entry.reference != wanted.reference]
        kept = {claim.placement for claim in asking if claim not in others}
        assert wanted.placements == tuple(sorted(kept))
        newest = max(claim.entry.revision for claim in same)
        assert newest in {c.entry.revision for c in same if c.entry.reference == wanted.reference}
        for claim in asking:
            lost_to = first.placement if claim in others else None
            assert chosen.winner_over(claim.placement, key) == lost_to


@given(steps)
def test_what_is_chosen_step_by_step_is_what_would_be_chosen_at_once(steps):
    claims, now = ObjectOwnership(), {}
    for placement, listed, resolves in steps:
        claims.put(placement, listed)
        now[placement] = [Claim(placement, one) for one in listed]
        if resolves:
            claims.resolve()
    claims.resolve()
    assert said(claims) == said(put_all([one for listed in now.values() for one in listed]))


@given(steps)
def test_a_wish_has_the_number_it_had_while_it_says_the_same_and_one_of_its_own_when_it_comes_anew(
    steps,
):
    claims, numbers = ObjectOwnership(), {}
    before = {}
    for placement, listed, _ in steps:
        claims.put(placement, listed)
        claims.resolve()
        for key, want in claims.wanted.items():
            former = before.get(key)
            if former is not None and former.address == want.address:
                assert want.wish == former.wish
                continue
            used = numbers.setdefault(key, set())
            assert want.wish not in used
            used.add(want.wish)
        before = dict(claims.wanted)


@given(steps, steps)
def test_whoever_has_something_else_to_say_of_an_object_is_told(before, after):
    claims = ObjectOwnership()
    for placement, listed, _ in before:
        claims.put(placement, listed)
    claims.resolve()
    former = {placement: said(claims, [placement])[1:] for placement in ("p1", "p2", "p3")}
    wanted = {key: (want.reference, want.create_only) for key, want in claims.wanted.items()}
    whole = dict(claims.wanted)
    differ = {}
    for placement, listed, _ in after:
        differ.setdefault(placement, set()).update(claims.put(placement, listed))
    moved = claims.resolve()
    assert moved.wants or whole == claims.wanted
    assert set(moved.added_or_removed) == whole.keys() ^ claims.wanted.keys()
    for placement, (losers, _) in former.items():
        told = {*moved.to_report.get(placement, ()), *differ.get(placement, ())}
        for key, claim in claims.of(placement).items():
            want = claims.wanted[key]
            same = wanted.get(key) == (want.reference, want.create_only)
            lost = losers[placement, key] == claims.winner_over(placement, claim.entry.key)
            assert key in told or (same and lost)


def test_a_change_of_one_placement_moves_no_other_that_claims_something_else_or_the_same():
    claims = put_all([Claim("p1", entry(name="x")), Claim("p2", entry(name="y"))])
    claims.put("p3", [entry(name="y")])
    moved = claims.resolve()
    assert (moved.to_report, moved.added_or_removed, moved.wants) == ({}, [], True)


def resolved_one(*some):
    chosen = put_all(some)
    [only] = chosen.wanted.values()
    placements = [claim.placement for claim in some]
    losers = {p: chosen.winner_over(p, only.key) for p in placements}
    return only, {p: winner for p, winner in losers.items() if winner}


def test_of_one_source_the_highest_revision_counts_whoever_wants_it():
    only, losers = resolved_one(
        Claim("p1", entry(revision=1)),
        Claim("p2", entry(revision=2, address="b" * 64)),
    )
    assert (only.reference.address, only.placements) == ("b" * 64, ("p1", "p2"))
    assert not losers


def test_of_two_sources_the_first_placement_key_wins_and_the_other_is_told():
    other = Claim("p1", entry("t", address="b" * 64))
    only, losers = resolved_one(Claim("p2", entry()), other)
    assert only.placements == ("p1",)
    assert losers == {"p2": "p1"}


def test_two_sources_that_say_the_same_of_an_object_both_have_it():
    only, losers = resolved_one(Claim("p1", entry("t")), Claim("p2", entry()))
    assert (only.placements, losers) == (("p1", "p2"), {})


def test_create_only_holds_only_if_all_say_so_and_what_is_wanted_back_adds_up():
    create, back = (
        Claim("p1", entry(flags=CREATE_ONLY)),
        Claim("p2", entry(flags=2)),
    )
    assert resolved_one(create)[0].create_only
    both, _ = resolved_one(create, back)
    assert not both.create_only
    assert both.flags == WANT_SINGLETON


def test_what_is_under_a_rollout_goes_no_further_than_its_gates_whoever_has_something_newer():
    gated = Claim("p1", entry(revision=1), gated=True)
    newer = Claim("p2", entry(revision=2, address="b" * 64))
    only, losers = resolved_one(gated, newer)
    assert (only.reference.address, only.placements) == ("a" * 64, ("p1", "p2"))
    assert not losers
    again = Claim("p3", entry(revision=3, address="b" * 64), gated=True)
    assert resolved_one(gated, newer, again)[0].reference.address == "b" * 64


def test_of_two_claims_of_one_source_the_one_that_is_sent_whole_counts():
    whole, cleaned = Claim("p2", entry(revision=1)), Claim("p1", entry("s", 2, "b" * 64, CLEANED))
    for claims_of_it in ([whole, cleaned], [cleaned, whole]):
        chosen = choose(whole.entry.key, claims_of_it)
        assert chosen.wanted.address == "a" * 64
        assert not chosen.losers
