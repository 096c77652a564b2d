"""Which of its own generations a hub's object is told to be observed."""

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from controllers.core.status.generations import (
    HubContent,
    copies_expected,
    of_all_copies,
    of_one_copy,
)
from relay.core.collectors.aggregates import Aggregate, AggregateAlgebra
from relay.shell.evaluator import CelEvaluator
from schemas.content.manifest import content_id
from schemas.objects.objects import ObjectKey
from schemas.reports.reports import Count, ObjectResult, Summary
from schemas.values import codec
from schemas.values.identity import ContentHash

WEB = ObjectKey("apps", "deployments", "shop", "web")
ROUTE = ObjectKey("gateway.networking.k8s.io", "httproutes", "shop", "web")
NEW, OLD = (content_id(WEB, ContentHash(codec.address("object", it))) for it in (b"new", b"old"))
HUB = HubContent(5, frozenset({NEW}))


def returned(content, generation):
    return ObjectResult(WEB, 1, "d", None, content, generation)


@pytest.mark.parametrize(
    ("content", "generation", "observed", "at_hub"),
    [
        (NEW, 1, 1, 5),
        # Its own ran ahead, or is looked at later.
        (NEW, 9, 9, 5),
        (NEW, 9, 8, 4),
        (OLD, 9, 9, 4),
        (OLD, 1, 1, 4),
        (b"", 5, 5, 4),
        # Of a kind that counts nothing of its own at the edge.
        (NEW, 0, 0, 5),
    ],
)
def test_the_hubs_generation_is_observed_once_a_copy_holds_its_content_and_looked_at_it(
    content, generation, observed, at_hub
):
    condition = {"type": "Ready", "status": "True", "observedGeneration": observed}
    said = {"observedGeneration": observed, "conditions": [condition], "replicas": 3}
    told = of_one_copy(said, returned(content, generation), HUB)
    assert told["observedGeneration"] == at_hub
    assert told["conditions"] == [{**condition, "observedGeneration": at_hub}]
    assert told["replicas"] == 3


def test_each_condition_counts_for_itself_wherever_it_stands():
    def condition(seen):
        return {"type": "Accepted", "status": "True", "observedGeneration": seen}

    parent = {"parentRef": {"name": "gate"}, "conditions": [condition(3), condition(2)]}
    owned = {"kind": "ReplicaSet", "name": "web-1", "observedGeneration": 2}
    said = {"parents": [parent], "parts": [owned], "text": {"observedGeneration": "3"}}
    told = of_one_copy(said, returned(NEW, 3), HUB)
    [parent_told] = told["parents"]
    assert [item["observedGeneration"] for item in parent_told["conditions"]] == [5, 4]
    assert told["parts"] == [owned]
    assert told["text"] == {"observedGeneration": "5"}


def test_where_the_hub_counts_nothing_the_status_is_as_it_was_said():
    said = {"observedGeneration": 7}
    assert of_one_copy(said, returned(NEW, 7), HubContent(0, frozenset({NEW}))) == said


def test_the_first_generation_of_all_is_not_observed_either_before_it_is_there():
    assert of_one_copy({"observedGeneration": 3}, returned(OLD, 3), HubContent(1)) == {
        "observedGeneration": 0
    }


def copies(*said, key=WEB):
    """Of each copy: its content, its generation, its status."""
    evaluator, leaves = CelEvaluator(), []
    for content, generation, status in said:
        plain = None if status is None else codec.canonical(status)
        leaf = evaluator.merging(key, plain, content, generation)
        leaves.append(Aggregate(1, *leaf) if leaf is not None else Aggregate())
    return leaves


def merged(*said, key=WEB, hub=HUB, expected=-1, before=None):
    many = len(said) if expected == -1 else expected
    algebra = AggregateAlgebra()
    told = [algebra.read(algebra.write(leaf)) for leaf in copies(*said, key=key)]
    return of_all_copies(key, told, hub, many, before)


def deployment(observed, available=3):
    return {"observedGeneration": observed, "replicas": 3, "availableReplicas": available}


GOOD, AHEAD = (NEW, 1, deployment(1)), (NEW, 7, deployment(7))
BAD = [
    (OLD, 1, deployment(1)),
    (NEW, 7, deployment(6)),
    (b"", 7, deployment(7)),
    (NEW, 1, {"replicas": 3}),
    (NEW, 1, None),
]


def test_several_copies_have_observed_what_all_of_them_hold_and_looked_at():
    assert merged(GOOD, AHEAD, GOOD)["observedGeneration"] == 5
    for bad in BAD:
        for order in itertools.permutations([GOOD, AHEAD, bad]):
            assert merged(*order)["observedGeneration"] == 4, bad


def test_no_field_beside_those_of_the_kind_is_told():
    assert set(merged(GOOD, AHEAD)) == {
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "observedGeneration",
        "conditions",
    }


def test_who_has_no_copy_yet_has_not_observed_it():
    assert merged(GOOD, GOOD, expected=3)["observedGeneration"] == 4
    assert merged(GOOD, expected=2)["observedGeneration"] == 4
    assert merged(GOOD, GOOD, expected=2)["observedGeneration"] == 5


def test_while_nobody_can_tell_what_was_observed_stays_and_nothing_more_is():
    told = [merged(GOOD, expected=None, before=before) for before in (None, deployment(4))]
    assert [each["observedGeneration"] for each in told] == [4, 4]
    assert merged(BAD[0], expected=None, before=deployment(5))["observedGeneration"] == 5


def test_an_edge_that_does_not_name_what_it_holds_is_not_known_to_hold_it():
    evaluator = CelEvaluator()
    known, _ = copies(GOOD, GOOD)
    status, node = evaluator.merging(WEB, codec.canonical(deployment(9)), NEW, 1)
    plain = {name: item for name, item in node[1].items() if not name.startswith("leafcast")}
    silent = Aggregate(1, status, (node[0], plain))
    for pair in ([known, silent], [silent, known], [silent, silent]):
        assert of_all_copies(WEB, pair, HUB, 2, None)["observedGeneration"] == 4


def test_merged_conditions_say_of_which_generation_they_are():
    def route(*seen):
        types = ("Accepted", "ResolvedRefs", "Silent")
        listed = [
            {"type": type_, "status": "True", "observedGeneration": at}
            for type_, at in zip(types, seen, strict=False)
        ]
        return {"conditions": [*listed, {"type": "Silent", "status": "True"}]}

    both = merged((NEW, 3, route(3, 3)), (NEW, 8, route(8, 7)), key=ROUTE)
    told = {item["type"]: item.get("observedGeneration") for item in both["conditions"]}
    assert told == {"Accepted": 5, "ResolvedRefs": 4, "Silent": None}
    old = merged((NEW, 3, route(3, 3)), (OLD, 8, route(8, 8)), key=ROUTE)
    assert [item.get("observedGeneration") for item in old["conditions"]] == [4, 4, None]


@given(
    st.lists(
        st.tuples(
            st.sampled_from([NEW, OLD, b""]),
            st.integers(0, 4),
            st.one_of(st.none(), st.builds(deployment, st.integers(0, 4), st.integers(0, 3))),
        ),
        min_size=1,
        max_size=5,
    ),
    st.integers(1, 6),
    st.randoms(use_true_random=False),
)
def test_it_is_never_early_and_comes_in_the_end_however_copies_are_merged(said, expected, dice):
    leaves = copies(*said)
    dice.shuffle(leaves)
    cut = dice.randint(0, len(leaves))
    algebra = AggregateAlgebra()
    parts = [algebra.merge(leaves[:cut]), algebra.merge(leaves[cut:])]
    told = of_all_copies(WEB, parts, HUB, expected, None)
    done = len(said) >= expected and all(
        content == NEW and status is not None and status["observedGeneration"] >= generation
        for content, generation, status in said
    )
    seen = told.get("observedGeneration")
    assert seen == (5 if done else 4) or (seen is None and said[0][2] is None and not done)


def counted(exact=True, **states):
    return Count(Summary({name.replace("_", " "): many for name, many in states.items()}), exact)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([counted(synced=3)], 3),
        ([counted(synced=1, failing=1, unreachable=1, leaving=2, never_joined=4)], 3),
        ([counted(exact=False, synced=3)], None),
        ([None], None),
        # Of two placements nobody knows whether they mean the same destinations.
        ([counted(synced=3), counted(synced=2)], 4),
        ([counted(synced=3), counted(synced=1, pending=1)], None),
        ([counted(synced=3), counted(exact=False, synced=1)], None),
    ],
)
def test_as_many_copies_are_expected_as_destinations_that_joined_have_it(counts, expected):
    assert copies_expected(4, counts) == expected


AGENT = ObjectKey("apps", "daemonsets", "shop", "agent")


def daemon_set(desired, updated, available):
    scheduled = {"desiredNumberScheduled": desired, "currentNumberScheduled": desired}
    here = {"updatedNumberScheduled": updated, "numberReady": available}
    there = {"numberAvailable": available, "observedGeneration": 1}
    return (NEW, 1, {**scheduled, **here, **there})


@pytest.mark.parametrize(
    ("copies_of", "desired", "updated", "available"),
    [
        ([daemon_set(10, 10, 10), daemon_set(3, 3, 3)], 3, 3, 3),
        # By the least alone all of these would be done.
        ([daemon_set(10, 5, 10), daemon_set(3, 3, 3)], 8, 3, 3),
        ([daemon_set(10, 10, 9), daemon_set(3, 3, 3)], 4, 3, 3),
        ([daemon_set(0, 0, 0), daemon_set(3, 2, 3)], 1, 0, 0),
    ],
)
def test_no_daemon_set_is_rolled_out_while_a_larger_cluster_is_at_work(
    copies_of, desired, updated, available
):
    for order in itertools.permutations(copies_of):
        told = merged(*order, key=AGENT)
        assert (told["updatedNumberScheduled"], told["numberAvailable"]) == (updated, available)
        assert told["desiredNumberScheduled"] == desired


@given(st.lists(st.tuples(*[st.integers(0, 5)] * 3), min_size=2, max_size=4))
def test_kubectl_takes_daemon_sets_for_rolled_out_only_if_all_are(said):
    told = merged(*(daemon_set(*each) for each in said), key=AGENT)
    desired = told["desiredNumberScheduled"]
    done = min(told["updatedNumberScheduled"], told["numberAvailable"]) >= desired
    assert done == all(min(updated, available) >= wanted for wanted, updated, available in said)


def replicas(old, updated, available):
    said = {"replicas": old + updated, "updatedReplicas": updated, "availableReplicas": available}
    return (NEW, 1, {**said, "observedGeneration": 1})


@pytest.mark.parametrize("wanted", [0, 2])
def test_none_of_none_is_not_done_while_another_copy_lacks_one(wanted):
    assert not is_rolled_out(merged(replicas(0, 0, 0), replicas(0, 1, 0)), wanted)


def is_rolled_out(status, wanted):
    """As kubectl judges a Deployment."""
    there, updated = status.get("replicas", 0), status.get("updatedReplicas", 0)
    return wanted <= updated >= there and status.get("availableReplicas", 0) >= updated


@given(st.lists(st.tuples(*[st.integers(0, 4)] * 3), min_size=2, max_size=4), st.integers(0, 4))
def test_kubectl_takes_deployments_for_rolled_out_only_if_all_are(said, wanted):
    listed = [replicas(*each) for each in said]
    told = merged(*listed)
    assert is_rolled_out(told, wanted) == all(is_rolled_out(it[2], wanted) for it in listed)


def test_an_old_replica_of_one_copy_is_still_to_go_though_others_have_none():
    told = merged(replicas(1, 2, 2), replicas(0, 2, 2))
    assert (told["replicas"], told["updatedReplicas"], told["availableReplicas"]) == (3, 2, 2)


@given(st.lists(st.tuples(*[st.integers(0, 4)] * 3), min_size=2, max_size=4))
def test_stateful_sets_of_any_sizes_have_what_all_of_them_have(said):
    listed = [
        (NEW, 1, {"replicas": size, "updatedReplicas": min(updated, size), "readyReplicas": ready})
        for size, updated, ready in said
    ]
    told = merged(*listed, key=ObjectKey("apps", "statefulsets", "shop", "db"))
    least = min(size for size, _, _ in said)
    for place, name in ((1, "updatedReplicas"), (2, "readyReplicas")):
        assert (told.get(name, 0) >= least) == all(
            each[place] >= each[0] for each in said
        ) or not least


REPLICAS = st.tuples(*[st.integers(0, 5)] * 4).map(sorted)


@given(
    st.lists(REPLICAS, min_size=2, max_size=4),
    st.sampled_from([WEB, ObjectKey("apps", "statefulsets", "shop", "web")]),
)
@example([[0, 0, 0, 0], [0, 0, 0, 0]], ObjectKey("apps", "statefulsets", "shop", "web"))
def test_api_servers_take_the_merge_of_statuses_that_they_took(said, key):
    """No part of all replicas is more than these, and none is available that is not ready."""
    names = ("availableReplicas", "readyReplicas", "updatedReplicas", "replicas")
    statuses = [dict(zip(names, numbers, strict=True)) for numbers in said]
    told = merged(*[(NEW, 1, each) for each in statuses], key=key)
    parts = [told.get(name, 0) for name in ("updatedReplicas", "readyReplicas", "currentReplicas")]
    # A StatefulSet says no number that is nothing.
    assert max(parts) <= told.get("replicas", 0)
    assert told.get("availableReplicas", 0) <= told.get("readyReplicas", 0)
