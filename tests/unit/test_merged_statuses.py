"""One status of many copies, by the rules of each kind."""

import pytest

from controllers.core.status.aggregated import aggregated
from controllers.core.status.job_statuses import storable
from relay.core.collectors.aggregates import Aggregate
from relay.objects.status_merging import merging, worst_of
from schemas.objects.objects import ObjectKey
from schemas.values import codec


def key(group, resource):
    return ObjectKey(group, resource, "shop", "web")


DEPLOYMENT, JOB = key("apps", "deployments"), key("batch", "jobs")


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
    }
    silent = {"type": "Progressing", "status": "Unknown", "reason": "NotReported"}
    silent["message"] = "1 of 2 copies do not say"
    assert merged(DEPLOYMENT, one, two) == {**said, "conditions": [silent]}
    behind = {**two, "conditions": [late]}
    assert merged(DEPLOYMENT, one, behind) == {**said, "conditions": [late]}


AVAILABLE = condition("Available", "True", reason="MinimumReplicasAvailable")
DONE = condition("Progressing", "True", reason="NewReplicaSetAvailable")
GOING = condition("Progressing", "True", "2026-02-01T00:00:00Z", "ReplicaSetUpdated")
PAUSED = condition("Progressing", "Unknown", reason="DeploymentPaused")
LATE = condition("Progressing", "False", reason="ProgressDeadlineExceeded")
SHORT = condition("Available", "False", reason="MinimumReplicasUnavailable")
FAILED = condition("ReplicaFailure", "True", reason="FailedCreate")


@pytest.mark.parametrize(
    ("copies", "said"),
    [
        ([[AVAILABLE, DONE]] * 3, [AVAILABLE, DONE]),
        ([[AVAILABLE, DONE], [AVAILABLE, GOING]], [AVAILABLE, GOING]),
        ([[AVAILABLE, GOING], [AVAILABLE, PAUSED]], [AVAILABLE, PAUSED]),
        ([[AVAILABLE, DONE], [SHORT, LATE], [AVAILABLE, GOING]], [SHORT, LATE]),
        ([[AVAILABLE, DONE], [SHORT, GOING, FAILED]], [SHORT, GOING, FAILED]),
    ],
)
def test_a_deployment_is_available_and_rolled_out_where_all_copies_are_else_as_the_worst(
    copies, said
):
    for order in (copies, copies[::-1]):
        listed = [{"replicas": 1, "conditions": each} for each in order]
        assert merged(DEPLOYMENT, *listed)["conditions"] == said


def test_a_key_that_no_edge_of_ours_says_is_no_condition():
    form = {"Available": (1, 0, 0, ("", "", "")), "Available Maybe x": (1, 0, 0, ("", "", ""))}
    assert list(worst_of(form, 1)) == []


def job(start, *conditions, **others):
    return {"startTime": f"2026-01-01T00:00:0{start}Z", "conditions": list(conditions), **others}


def ended(at, *types, status="True"):
    return [condition(type_, status, f"2026-01-01T00:00:0{at}Z", "") for type_ in types]


def test_several_jobs_are_complete_when_the_last_one_is_with_the_times_that_a_server_asks_for():
    def done(start, end):
        at = f"2026-01-01T00:00:0{end}Z"
        both = ended(end, "SuccessCriteriaMet", "Complete")
        return job(
            start, *both, completionTime=at, succeeded=1, ready=0, uncountedTerminatedPods={}
        )

    running = job(2, active=1, ready=1)
    said = merged(JOB, done(3, 5), done(1, 4))
    assert (said["startTime"], said["completionTime"]) == tuple(
        f"2026-01-01T00:00:0{at}Z" for at in (1, 5)
    )
    assert [(item["type"], item["status"]) for item in said["conditions"]] == [
        ("Complete", "True"),
        ("SuccessCriteriaMet", "True"),
    ]
    assert (said["succeeded"], "ready" in said) == (1, False)
    half = merged(JOB, done(3, 5), running)
    assert (half["conditions"], half["startTime"]) == ([], "2026-01-01T00:00:02Z")
    assert "completionTime" not in half
    broken = job(1, *ended(6, "FailureTarget", "Failed"), failed=1)
    failed = merged(JOB, done(3, 5), broken, running)
    assert [(item["type"], item["status"]) for item in failed["conditions"]] == [
        ("Failed", "True"),
        ("FailureTarget", "True"),
    ]
    assert not {"active", "completionTime"} & failed.keys()


def test_a_job_that_started_keeps_its_start_and_one_that_ended_stays_so():
    complete = job(1, *ended(2, "Complete"), completionTime="2026-01-01T00:00:02Z")
    running, again = job(1, active=1), job(5, active=1)
    early = {**complete, "completionTime": "2026-01-01T00:00:04Z"}
    assert storable(JOB, None, again) == again
    assert storable(JOB, running, again) == running
    assert storable(JOB, complete, again) == complete
    assert storable(JOB, running, {}) == running
    assert storable(JOB, again, early)["completionTime"] == "2026-01-01T00:00:05Z"
    assert storable(DEPLOYMENT, running, {}) == {}


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
    [found] = merged(key("shop.example", "tills"), *copies)["conditions"]
    assert found == condition("Complete", said, times[0], times[0])


def test_a_condition_that_an_empty_list_lacks_is_unknown():
    of_set = key("apps", "statefulsets")
    for none in ({"conditions": []}, {"replicas": 1}):
        [said] = merged(of_set, none, {"conditions": [condition("Ready", "True")]})["conditions"]
        assert (said["type"], said["status"]) == ("Ready", "Unknown")
    assert merged(of_set, {"conditions": []}, {"conditions": []}) == {"conditions": []}


def test_a_number_that_a_copy_of_a_built_in_kind_leaves_out_is_zero():
    three, none = {"replicas": 3, "readyReplicas": 3, "availableReplicas": 3}, {"replicas": 3}
    for resource in ("deployments", "replicasets", "statefulsets"):
        for pair in ((three, none), (none, three)):
            said = merged(key("apps", resource), *pair)
            assert (said["replicas"], said.get("availableReplicas", 0)) == (3, 0)
            assert said.get("readyReplicas", 0) == 0
    assert merged(key("apps", "statefulsets"), three, three) == three
    assert merged(key("shop.example", "tills"), three, none) == three
    done = {"succeeded": 1}
    assert merged(key("batch", "jobs"), done, done) == done
    assert merged(key("batch", "jobs"), done, {"active": 1}) == {}
