"""What a person is told of what runs at an edge: the true reason of a Pod, and its events."""

import pytest

from leafcast.show.object_cells import pod_status
from leafcast.show.object_events import EVENTS_MAX, events_about, events_text

NOW_MS = 100_000


def pod(*containers, init=(), phase="Running", **status):
    """Each container is its state."""
    names = ("containerStatuses", containers), ("initContainerStatuses", init)
    listed = {name: [{"state": state} for state in states] for name, states in names if states}
    spec = {"containers": [{}] * len(containers), "initContainers": [{}] * len(init)}
    metadata = {"name": "p", "namespace": "shop"}
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec,
        "status": {"phase": phase, **listed, **status},
    }  # fmt: skip


RUNS = {"running": {"startedAt": "x"}}


def waits(reason):
    return {"waiting": {"reason": reason}}


def ended(reason="", code=0, **more):
    return {"terminated": {"exitCode": code, **({"reason": reason} if reason else {}), **more}}


def condition(type_, status, reason=""):
    return [{"type": type_, "status": status, "reason": reason}]


@pytest.mark.parametrize(
    ("obj", "said"),
    [
        (pod(RUNS), "Running"),
        (pod(phase="Pending"), "Pending"),
        (pod(waits("ImagePullBackOff"), phase="Pending"), "ImagePullBackOff"),
        (pod(RUNS, waits("CrashLoopBackOff")), "CrashLoopBackOff"),
        (pod(ended("OOMKilled", 137)), "OOMKilled"),
        (pod(ended(code=3), phase="Failed"), "ExitCode:3"),
        (pod(ended(code=0, signal=9), phase="Failed"), "Signal:9"),
        (pod(ended("Completed"), phase="Succeeded"), "Completed"),
        (pod(ended("Completed"), RUNS, conditions=condition("Ready", "True")), "Running"),
        (pod(ended("Completed"), RUNS, conditions=condition("Ready", "False")), "NotReady"),
        (pod(waits("PodInitializing"), init=[RUNS], phase="Pending"), "Init:0/1"),
        (pod({}, init=[ended("Completed"), waits("PodInitializing")]), "Init:1/2"),
        (pod({}, init=[waits("CrashLoopBackOff")]), "Init:CrashLoopBackOff"),
        (pod({}, init=[ended("Error", 1)]), "Init:Error"),
        (pod({}, init=[ended("", 2)]), "Init:ExitCode:2"),
        (pod(phase="Failed", reason="Evicted"), "Evicted"),
        (
            pod(phase="Pending", conditions=condition("PodScheduled", "False", "Unschedulable")),
            "Unschedulable",
        ),
        (
            pod(phase="Pending", conditions=condition("PodScheduled", "False", "SchedulingGated")),
            "SchedulingGated",
        ),
    ],
)  # fmt: skip
def test_a_pods_status_is_what_keeps_it(obj, said):
    assert pod_status(obj) == said


def test_a_pod_that_goes_says_so_whatever_its_containers_do():
    going = pod(waits("CrashLoopBackOff"))
    going["metadata"]["deletionTimestamp"] = "x"
    assert pod_status(going) == "Terminating"
    going["status"]["reason"] = "NodeLost"
    assert pod_status(going) == "Unknown"


def event(name="p", at=1, kind="Pod", namespace="shop", **more):
    return {
        "involvedObject": {"kind": kind, "name": name, "namespace": namespace},
        "type": "Warning", "reason": "Failed", "message": f"at {at}\nmore",
        "lastTimestamp": f"1970-01-01T00:00:{at:02}Z", "source": {"component": "kubelet"}, **more,
    }  # fmt: skip


def test_a_description_ends_with_the_events_of_its_object_alone_the_newest_last():
    namesake = {"apiVersion": "example.com/v1", "kind": "Pod", "name": "p", "namespace": "shop"}
    others = [event("q"), event(kind="Job"), event(namespace="other"), {"involvedObject": None}]
    others.append(event(involvedObject=namesake))
    found = events_about(pod(RUNS), [event(at=9), *others, event(at=3)])
    assert [each["lastTimestamp"][-3:-1] for each in found] == ["03", "09"]
    text = events_text([event(at=40, count=7)], NOW_MS)
    assert text.splitlines()[0] == "Events:"
    assert "Warning  Failed  60s (x7)  kubelet  at 40 more" in text


def test_of_many_events_the_newest_are_told_and_none_is_said():
    assert len(events_about(pod(RUNS), [event(at=at) for at in range(30)])) == EVENTS_MAX
    assert events_text([], NOW_MS) == "Events:  <none>\n"
