"""One status of many copies, by the rules of each kind."""

import pytest

from controllers.core.status.aggregated import aggregated
from relay.core.collectors.aggregates import Aggregate
from relay.objects.status_merging import merging
from schemas import codec
from schemas.objects import ObjectKey


def key(group, resource):
    return ObjectKey(group, resource, "shop", "web")


DEPLOYMENT = key("apps", "deployments")


def merged(about, *statuses):
    """As the centre says it, of copies that said this each."""
    leaves = []
    for status in statuses:
        plain = codec.canonical(status)
        leaves.append(Aggregate(1, plain, merging(about, codec.unpack(plain))))
    return aggregated(about, leaves)


def condition(type_, status, at="2026-01-01T00:00:00Z", reason="AsItIs"):
    said = {"type": type_, "status": status, "reason": reason, "message": reason.lower()}
    return {**said, "lastTransitionTime": at}


def test_of_one_copy_the_status_is_as_it_said():
    said = {"replicas": 3, "conditions": [condition("Available", "True")], "odd": [1, {"a": None}]}
    assert merged(DEPLOYMENT, said) == said
    assert merged(DEPLOYMENT) == {}


def test_of_deployments_the_least_counts_the_greatest_lack_and_the_first_deadline():
    late = condition("Progressing", "False", reason="ProgressDeadlineExceeded")
    fine = condition("Progressing", "True", reason="NewReplicaSetAvailable")
    one = {"replicas": 3, "readyReplicas": 3, "unavailableReplicas": 1, "conditions": [fine]}
    two = {"replicas": 2, "readyReplicas": 1, "unavailableReplicas": 4, "other": 7}
    said = {
        "replicas": 2,
        "readyReplicas": 1,
        "updatedReplicas": 0,
        "availableReplicas": 0,
        "observedGeneration": 0,
        "unavailableReplicas": 4,
        "conditions": [],
    }
    assert merged(DEPLOYMENT, one, two) == said
    behind = {**two, "conditions": [fine, late]}
    assert merged(DEPLOYMENT, one, behind) == {**said, "conditions": [late]}


def test_of_replica_sets_and_daemon_sets_by_theirs():
    failed = condition("ReplicaFailure", "True", reason="FailedCreate")
    said = merged(
        key("apps", "replicasets"),
        {"replicas": 3, "fullyLabeledReplicas": 3},
        {"replicas": 4, "fullyLabeledReplicas": 1, "conditions": [failed]},
    )
    assert (said["replicas"], said["fullyLabeledReplicas"]) == (3, 1)
    assert (said["readyReplicas"], said["conditions"]) == (0, [failed])
    said = merged(
        key("apps", "daemonsets"),
        {"numberReady": 3, "numberMisscheduled": 0},
        {"numberReady": 2, "numberMisscheduled": 5},
    )
    assert (said["numberReady"], said["numberMisscheduled"]) == (2, 5)
    assert "conditions" not in said


@pytest.mark.parametrize(
    "about", [key("apps", "statefulsets"), key("batch", "jobs"), key("shop.example", "tills")]
)
def test_of_all_other_kinds_numbers_are_the_least_and_booleans_all(about):
    one = {"succeeded": 2, "ready": True, "phase": "Up", "list": [1], "deep": {"n": 1.5}}
    two = {"succeeded": 1, "ready": False, "phase": "Up", "list": [2], "deep": {"n": 3}}
    said = merged(about, one, two)
    assert said == {"succeeded": 1, "ready": False, "phase": "Up", "deep": {"n": 1.5}}


@pytest.mark.parametrize(
    ("statuses", "said"),
    [
        (["True", "True"], "True"),
        (["True", "False"], "False"),
        (["Unknown", "False"], "False"),
        (["True", "Unknown"], "Unknown"),
        (["True", None], "Unknown"),
    ],
)
def test_a_condition_is_false_by_one_and_true_by_all(statuses, said):
    times = ("2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z")
    copies = [
        {"conditions": [condition("Complete", status, at, at)]} if status else {"conditions": []}
        for status, at in zip(statuses, times, strict=True)
    ]
    [found] = merged(key("batch", "jobs"), *copies)["conditions"]
    assert found == condition("Complete", said, times[0], times[0])


def test_a_condition_that_an_empty_list_lacks_is_unknown():
    of_set = key("apps", "statefulsets")
    for none in ({"conditions": []}, {"replicas": 1}):
        [said] = merged(of_set, none, {"conditions": [condition("Ready", "True")]})["conditions"]
        assert (said["type"], said["status"]) == ("Ready", "Unknown")
    assert merged(of_set, {"conditions": []}, {"conditions": []}) == {"conditions": []}
