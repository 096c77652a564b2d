"""What counts as a good end, by kind; and how soon what is lost in a row is made again."""

import pytest

from relay.objects.ended import has_succeeded, lifetime_field
from relay.syncer.losses import (
    CALM_SECONDS,
    FREE,
    PAUSE_SECONDS_MAX,
    PAUSE_SECONDS_MIN,
    lost_again,
    pause_left,
    taker,
)
from schemas.reports.reports import Lost


def obj(api, kind, status, spec=None, **metadata):
    form = {"apiVersion": api, "kind": kind, "metadata": {"name": "x", "generation": 2, **metadata}}
    return form | {"spec": spec or {}, "status": status}


def holding(*kinds, status="True"):
    return {"conditions": [{"type": kind, "status": status} for kind in kinds]}


ENDED = [
    obj("batch/v1", "Job", holding("SuccessCriteriaMet", "Complete")),
    obj("v1", "Pod", {"phase": "Succeeded"}),
    obj("certificates.k8s.io/v1", "CertificateSigningRequest", {"certificate": "eA=="}),
    obj("argoproj.io/v1alpha1", "Workflow", {"phase": "Succeeded"}),
    obj("tekton.dev/v1", "PipelineRun", holding("Succeeded")),
    obj("velero.io/v1", "Backup", {"phase": "Completed"}),
    obj(
        "sparkoperator.k8s.io/v1beta2",
        "SparkApplication",
        {"applicationState": {"state": "COMPLETED"}},
    ),
    obj("ray.io/v1", "RayJob", {"jobStatus": "SUCCEEDED", "jobDeploymentStatus": "Complete"}),
    obj("jobset.x-k8s.io/v1alpha2", "JobSet", holding("Completed")),
    obj("acme.cert-manager.io/v1", "Order", {"state": "valid"}),
    obj("cert-manager.io/v1", "CertificateRequest", holding("Ready")),
    obj("k6.io/v1alpha1", "TestRun", {"stage": "finished"}),
]
GOING_ON = [
    obj("batch/v1", "Job", holding("FailureTarget", "Failed")),
    obj("batch/v1", "Job", {"active": 1}),
    obj("batch/v1", "Job", None),
    obj("v1", "Pod", {"phase": "Running"}),
    obj("v1", "Pod", {"phase": "Failed"}),
    obj("apps/v1", "Deployment", holding("Available", "Complete")),
    obj("v1", "ConfigMap", None),
    obj("argoproj.io/v1alpha1", "Workflow", {"phase": "Running"}),
    obj("argoproj.io/v1alpha1", "Workflow", {"phase": "Failed"}),
    obj("tekton.dev/v1", "PipelineRun", holding("Succeeded", status="False")),
    obj("velero.io/v1", "Backup", {"phase": "PartiallyFailed"}),
    obj("example.com/v1", "Run", {"phase": "Succeeded", "observedGeneration": 1}),
    obj("example.com/v1", "Run", holding("Complete", "Failed")),
    obj("cert-manager.io/v1", "Certificate", holding("Ready")),
    obj("operators.coreos.com/v1alpha1", "ClusterServiceVersion", {"phase": "Succeeded"}),
]


@pytest.mark.parametrize("ended", ENDED, ids=lambda it: it["kind"])
def test_what_came_to_a_good_end_is_known_by_its_status(ended):
    assert has_succeeded(ended)
    assert has_succeeded({**ended, "metadata": {**ended["metadata"], "deletionTimestamp": "now"}})


@pytest.mark.parametrize("other", GOING_ON, ids=lambda it: it["kind"])
def test_what_fails_goes_on_or_says_nothing_came_to_no_good_end(other):
    assert not has_succeeded(other)


def test_losses_in_a_row_are_made_good_at_once_at_first_then_ever_more_rarely():
    lost, now, pauses = None, 1_000_000, []
    for _ in range(FREE + 20):
        lost = lost_again(lost, now, "")
        pauses.append(pause_left(lost, now))
        now += int(pauses[-1] * 1000) + 17_000
    assert pauses[: FREE - 1] == [0.0] * (FREE - 1)
    assert pauses[FREE - 1] == PAUSE_SECONDS_MIN
    assert pauses == sorted(pauses)
    assert pauses[-1] == PAUSE_SECONDS_MAX
    assert lost_again(lost, now + int(CALM_SECONDS * 1000), "").count == 1


def test_a_clock_that_was_put_back_holds_nothing_up_for_long():
    assert pause_left(Lost(FREE + 3, 10_000_000), 5_000_000) == 0.0
    assert lost_again(Lost(9, 10_000_000), 5_000_000, "").count == 1


def test_what_may_take_an_object_is_named_as_far_as_it_says_so():
    entry = {"manager": "workflow-controller", "operation": "Update", "subresource": "status"}
    ours = {"manager": "leafcast", "operation": "Apply"}
    run = obj("x.io/v1", "Run", {}, managedFields=[ours, entry])
    assert "workflow-controller" in taker(run)
    assert "leafcast" not in taker(run)
    assert taker(obj("x.io/v1", "Run", {}, managedFields=[ours])) == ""
    timed = obj("x.io/v1", "Run", {}, {"strategy": {"ttlSeconds": 5}}, managedFields=[entry])
    assert "spec.strategy.ttlSeconds" in taker(timed)
    owned = obj("v1", "ConfigMap", None, ownerReferences=[{"kind": "App", "name": "shop"}])
    assert "App/shop" in taker(owned)
    failed = obj("batch/v1", "Job", holding("Failed"), {"ttlSecondsAfterFinished": 1})
    assert "failed" in taker(failed)
    assert lifetime_field(failed) == "spec.ttlSecondsAfterFinished"
