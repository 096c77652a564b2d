"""Laws of the syncer's plan."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from relay.syncer.plan import (
    Apply,
    Claim,
    Prune,
    Wanted,
    plan,
    resolve_wants,
    with_namespaces,
)
from schemas import blobs
from schemas.blobs import Reference
from schemas.chunks import CREATE_ONLY, ManifestEntry
from schemas.objects import ObjectKey, apply_order
from schemas.reports import Done

KINDS = [("", "configmaps"), ("apps", "deployments"), ("", "namespaces"), ("", "services")]
addresses = st.sampled_from(["a" * 64, "b" * 64, "c" * 64])
keys = st.builds(
    lambda kind, name: ObjectKey(*kind, "" if kind[1] == "namespaces" else "shop", name),
    st.sampled_from(KINDS),
    st.sampled_from(["x", "y", "z"]),
)
placements = st.sets(st.sampled_from(["p1", "p2"]), min_size=1).map(
    lambda some: tuple(sorted(some))
)


def want(key, address, flags, names):
    order = apply_order(key.group, key.resource)
    return Wanted(key, Reference(blobs.OBJECT, address, 1), order, flags, names)


wants = st.lists(
    st.builds(want, keys, addresses, st.sampled_from([0, CREATE_ONLY]), placements), max_size=8
).map(lambda some: {item.key: item for item in some})
records = st.lists(
    st.builds(
        Done, keys, st.sampled_from(["", "u"]), addresses, placements, st.booleans(), st.just(1)
    ),
    max_size=8,
).map(lambda some: {item.key: item for item in some})


def carry_out(actions, applied):
    after = dict(applied)
    for action in actions:
        match action:
            case Prune(done):
                del after[done.key]
            case Apply(wanted):
                held = after.get(wanted.key)
                kept = held.address if held and wanted.create_only else wanted.reference.address
                after[wanted.key] = Done(
                    wanted.key, "u", kept, wanted.placements, made=True, order=wanted.order
                )
    return after


@given(wants, records, st.booleans())
def test_a_plan_carried_out_leaves_nothing_to_do(wanted, applied, may_prune):
    after = carry_out(plan(wanted, applied, may_prune=may_prune), applied)
    assert plan(wanted, after, may_prune=may_prune) == []


@given(wants, records)
def test_after_a_plan_with_pruning_exactly_what_is_wanted_is_applied(wanted, applied):
    after = carry_out(plan(wanted, applied, may_prune=True), applied)
    assert after.keys() == wanted.keys()


@given(wants, records)
def test_without_leave_nothing_is_pruned(wanted, applied):
    assert all(isinstance(action, Apply) for action in plan(wanted, applied, may_prune=False))


@given(wants, records)
def test_only_what_was_applied_and_is_not_wanted_is_pruned(wanted, applied):
    pruned = {a.done.key for a in plan(wanted, applied, may_prune=True) if isinstance(a, Prune)}
    assert pruned == applied.keys() - wanted.keys()


@given(wants, records)
def test_applies_ascend_then_prunes_descend(wanted, applied):
    actions = plan(wanted, applied, may_prune=True)
    applies = [a.wanted.order for a in actions if isinstance(a, Apply)]
    prunes = [a.done.order for a in actions if isinstance(a, Prune)]
    assert applies == sorted(applies)
    assert prunes == sorted(prunes, reverse=True)
    assert all(isinstance(a, Apply) for a in actions[: len(applies)])


@given(wants, records, st.sets(keys))
def test_what_drifted_is_applied_again(wanted, applied, drifted):
    actions = plan(wanted, applied, may_prune=True, drifted=drifted)
    again = {a.wanted.key for a in actions if isinstance(a, Apply)}
    assert drifted & wanted.keys() <= again


def entry(space="s", uid="u", revision=1, address="a" * 64, flags=0, name="x"):
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
        uid=st.sampled_from(["u", "v"]),
        revision=st.integers(1, 3),
        address=addresses,
        flags=st.integers(0, 7),
        name=st.sampled_from(["x", "y"]),
    ),
)


@given(st.lists(claims, max_size=8), st.randoms())
def test_who_writes_an_object_does_not_depend_on_the_order_of_claims(some, chance):
    shuffled = list(some)
    chance.shuffle(shuffled)
    assert resolve_wants(some) == resolve_wants(shuffled)


@given(st.lists(claims, max_size=8))
def test_every_claim_wins_or_is_reported_lost(some):
    wanted, lost = resolve_wants(some)
    for claim in some:
        key = claim.entry.key
        assert claim in lost.get(key, []) or claim.placement in wanted[key].placements


def resolved(*some):
    wanted, lost = resolve_wants(some)
    [(key, only)] = wanted.items()
    return only, lost.get(key, [])


def test_of_one_source_the_highest_revision_counts_whoever_wants_it():
    only, lost = resolved(
        Claim("p1", 9, entry(revision=1)), Claim("p2", 0, entry(revision=2, address="b" * 64))
    )
    assert (only.reference.address, only.placements, lost) == ("b" * 64, ("p1", "p2"), [])


def test_of_two_sources_the_higher_priority_wins_and_the_other_is_named():
    loser = Claim("p1", 0, entry(uid="v"))
    only, lost = resolved(loser, Claim("p2", 1, entry(address="b" * 64)))
    assert (only.placements, lost) == (("p2",), [loser])


def test_of_equal_priority_the_first_placement_key_wins():
    only, _ = resolved(Claim("p2", 1, entry()), Claim("p1", 1, entry(uid="v")))
    assert only.placements == ("p1",)


def test_create_only_holds_only_if_all_say_so():
    both = [Claim("p1", 0, entry(flags=CREATE_ONLY)), Claim("p2", 0, entry())]
    assert not resolved(*both)[0].create_only
    assert resolved(both[0])[0].create_only


def test_namespaces_that_no_one_brings_are_implied_and_never_overwritten():
    config = ObjectKey("", "configmaps", "shop", "x")
    wanted = {config: want(config, "a" * 64, 0, ("p",))}
    implied = with_namespaces(wanted)[ObjectKey("", "namespaces", "", "shop")]
    assert implied.create_only
    assert implied.placements == ()
    brought = want(implied.key, "b" * 64, 0, ("p",))
    assert with_namespaces({**wanted, implied.key: brought})[implied.key] == brought


def test_what_was_only_meant_to_be_applied_is_applied():
    key = ObjectKey("", "configmaps", "shop", "x")
    item = want(key, "a" * 64, 0, ("p",))
    done = Done(key, "u", "a" * 64, ("p",), made=True, order=item.order)
    assert plan({key: item}, {key: done}, may_prune=True) == []
    assert plan({key: item}, {key: replace(done, uid="")}, may_prune=True) == [Apply(item)]
