"""Laws of the syncer's plan."""

from hypothesis import given
from hypothesis import strategies as st

from relay.core.destination.claims import DesiredObject
from relay.syncer.plan import ApplyObject, PruneObject, with_namespaces
from schemas.content import blobs
from schemas.content.blobs import Reference
from schemas.content.manifest import CREATE_ONLY
from schemas.objects.objects import ObjectKey, apply_order
from schemas.reports.reports import Done
from schemas.values.wire import replace
from tests.whole_plan import plan

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
    return DesiredObject(key, Reference(blobs.OBJECT, address, 1), order, flags, names)


wants = st.lists(
    st.builds(want, keys, addresses, st.sampled_from([0, CREATE_ONLY]), placements), max_size=8
).map(lambda some: {item.key: item for item in some})
records = st.lists(
    st.builds(
        Done, keys, st.sampled_from(["", "u"]), addresses, placements, st.booleans(), st.just(1)
    ),
    max_size=8,
).map(lambda some: {item.key: item for item in some})


def always(_key):
    return True


def never(_key):
    return False


def carry_out(actions, applied):
    after = dict(applied)
    for action in actions:
        match action:
            case PruneObject(done):
                del after[done.key]
            case ApplyObject(wanted):
                held = after.get(wanted.key)
                kept = held.address if held and wanted.create_only else wanted.reference.address
                after[wanted.key] = Done(
                    wanted.key, "u", kept, wanted.placements, made=True, order=wanted.order
                )
    return after


@given(wants, records, st.booleans())
def test_a_plan_carried_out_leaves_nothing_to_do(wanted, applied, may_prune):
    after = carry_out(plan(wanted, applied, may_prune=lambda _key: may_prune), applied)
    assert plan(wanted, after, may_prune=lambda _key: may_prune) == []


@given(wants, records)
def test_after_a_plan_with_pruning_exactly_what_is_wanted_is_applied(wanted, applied):
    after = carry_out(plan(wanted, applied, may_prune=always), applied)
    assert after.keys() == wanted.keys()


@given(wants, records)
def test_without_leave_nothing_is_pruned(wanted, applied):
    assert all(isinstance(action, ApplyObject) for action in plan(wanted, applied, may_prune=never))


@given(wants, records)
def test_only_what_was_applied_and_is_not_wanted_is_pruned(wanted, applied):
    pruned = {
        a.done.key for a in plan(wanted, applied, may_prune=always) if isinstance(a, PruneObject)
    }
    assert pruned == applied.keys() - wanted.keys()


@given(wants, records)
def test_applies_ascend_then_prunes_descend(wanted, applied):
    actions = plan(wanted, applied, may_prune=always)
    applies = [a.wanted.order for a in actions if isinstance(a, ApplyObject)]
    prunes = [a.done.order for a in actions if isinstance(a, PruneObject)]
    assert applies == sorted(applies)
    assert prunes == sorted(prunes, reverse=True)
    assert all(isinstance(a, ApplyObject) for a in actions[: len(applies)])


@given(wants, records, st.sets(keys))
def test_what_drifted_is_applied_again(wanted, applied, drifted):
    actions = plan(wanted, applied, may_prune=always, drifted=drifted)
    again = {a.wanted.key for a in actions if isinstance(a, ApplyObject)}
    assert drifted & wanted.keys() <= again


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
    assert plan({key: item}, {key: done}, may_prune=always) == []
    assert plan({key: item}, {key: replace(done, uid="")}, may_prune=always) == [ApplyObject(item)]


@given(wants, records, st.sets(keys))
def test_what_goes_is_decided_object_by_object(wanted, applied, settled):
    actions = plan(wanted, applied, may_prune=settled.__contains__)
    pruned = {action.done.key for action in actions if isinstance(action, PruneObject)}
    assert pruned == (applied.keys() - wanted.keys()) & settled
