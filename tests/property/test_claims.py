"""Laws of choosing one writer per object."""

from hypothesis import given
from hypothesis import strategies as st

from relay.core.claims import Claim, resolve_claims
from schemas.chunks import CREATE_ONLY, WANT_SINGLETON, ManifestEntry

addresses = st.sampled_from(["a" * 64, "b" * 64])


def entry(space="s", revision=1, address="a" * 64, flags=0, name="x", uid="u"):
    return ManifestEntry(
        "", "configmaps", "shop", name, address, 1, space, uid, revision, flags=flags, order=12
    )


claims = st.builds(
    Claim,
    st.sampled_from(["p1", "p2", "p3"]),
    st.integers(0, 2),
    st.builds(
        entry,
        space=st.sampled_from(["s", "t"]),
        revision=st.integers(1, 3),
        address=addresses,
        flags=st.integers(0, 7),
        name=st.sampled_from(["x", "y"]),
    ),
)
# A placement lists an object once.
some_claims = st.lists(claims, max_size=8, unique_by=lambda one: (one.placement, one.entry.name))


@given(some_claims, st.randoms())
def test_who_writes_an_object_does_not_depend_on_the_order_of_claims(some, chance):
    shuffled = list(some)
    chance.shuffle(shuffled)
    assert resolve_claims(some) == resolve_claims(shuffled)


@given(some_claims)
def test_every_claim_wins_or_is_told_to_whom_it_lost(some):
    resolved = resolve_claims(some)
    for claim in some:
        key = claim.entry.key
        wins = claim.placement in resolved.wanted[key].placements
        assert wins != ((claim.placement, key) in resolved.losers)


def resolved_one(*some):
    resolved = resolve_claims(some)
    [only] = resolved.wanted.values()
    return only, resolved.losers


def test_of_one_source_the_highest_revision_counts_whoever_wants_it():
    only, losers = resolved_one(
        Claim("p1", 9, entry(revision=1)), Claim("p2", 0, entry(revision=2, address="b" * 64))
    )
    assert (only.reference.address, only.placements) == ("b" * 64, ("p1", "p2"))
    assert not losers


def test_of_two_sources_the_higher_priority_wins_and_the_other_is_told():
    low, high = Claim("p1", 0, entry("t")), Claim("p2", 1, entry())
    only, losers = resolved_one(low, high)
    assert only.placements == ("p2",)
    assert losers == {("p1", low.entry.key): "p2"}


def test_of_equal_priority_the_first_placement_key_wins():
    only, _ = resolved_one(Claim("p2", 1, entry()), Claim("p1", 1, entry("t")))
    assert only.placements == ("p1",)


def test_create_only_holds_only_if_all_say_so_and_what_is_wanted_back_adds_up():
    create, back = Claim("p1", 0, entry(flags=CREATE_ONLY)), Claim("p2", 0, entry(flags=2))
    assert resolved_one(create)[0].create_only
    both, _ = resolved_one(create, back)
    assert not both.create_only
    assert both.flags == WANT_SINGLETON
