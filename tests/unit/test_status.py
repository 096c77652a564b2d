"""What comes back, as status: counts, conditions, errors, and a singleton's own status."""

import pytest

from controllers.core.conditions import condition, merged
from controllers.core.status.facts import PlacementFacts
from controllers.core.status.generations import HubContent
from controllers.core.status.status import (
    error_text,
    placement_status,
    singleton,
)
from controllers.core.workloads.missing_references import Lack
from schemas.api.placement import EdgePlacement
from schemas.objects.objects import ObjectKey, takes_status
from schemas.reports.reports import Count, ExceptionSample, ObjectResult, RepairSample, Summary
from schemas.reports.states import AT_WORK, NEVER_JOINED, NOT_WORKING
from schemas.values import codec
from schemas.values.faults import Fault

NOW_MS = 1_800_000_000_000
WEB = ObjectKey("apps", "deployments", "shop", "web")
FACTS = PlacementFacts(generation=3, locations=2)


def status(summary, facts=FACTS, before=None):
    return placement_status(facts, counted(summary), before, NOW_MS)


def counted(known):
    """A bare summary is an exact one."""
    return Count(known, exact=True) if isinstance(known, Summary) else known


def at_least(summary, *waiting_for):
    return Count(summary, False, waiting_for)


def reasons(said):
    return {item["type"]: (item["status"], item["reason"]) for item in said["conditions"]}


def test_a_status_is_one_that_the_api_knows():
    facts = PlacementFacts(3, 2, "bad", "held", faults=(Fault("a", "b", "c"),))
    said = status(Summary({"synced": 1}, {"healthy": 1}), facts)
    EdgePlacement.model_validate(
        {
            "apiVersion": "edge.kubestellar.io/v2alpha1",
            "kind": "EdgePlacement",
            "metadata": {"name": "p"},
            "status": said,
        }
    )
    assert said["specGeneration"] == 3


@pytest.mark.parametrize(
    ("summary", "synced", "healthy"),
    [
        (None, ("Unknown", "Incomplete"), ("Unknown", "Incomplete")),
        (Summary(), ("False", "NoDestinations"), ("False", "NoDestinations")),
        (Summary({"synced": 2}, {"healthy": 2}), ("True", "Synced"), ("True", "Healthy")),
        (
            Summary({"synced": 1, "pending": 1}, {"healthy": 1, "progressing": 1}),
            ("False", "Pending"),
            ("False", "Progressing"),
        ),
        (
            Summary({"synced": 1, "failing": 1}, {"healthy": 1, "degraded": 1}),
            ("False", "Failing"),
            ("False", "Degraded"),
        ),
        (
            Summary({"synced": 1, "unreachable": 1}, {"healthy": 1, "unknown": 1}),
            ("False", "Unreachable"),
            ("False", "Unreachable"),
        ),
        (
            Summary({"pending": 1, "unreachable": 1}, {"progressing": 1, "unknown": 1}),
            ("False", "Pending"),
            ("False", "Progressing"),
        ),
        (
            Count(Summary({"synced": 1}, {"healthy": 1}), False, ("/emea",)),
            ("Unknown", "Incomplete"),
            ("Unknown", "Incomplete"),
        ),
    ],
)
def test_synced_and_healthy_are_said_only_of_an_exact_count(summary, synced, healthy):
    said = reasons(status(summary))
    assert (said["Synced"], said["Healthy"]) == (synced, healthy)


def test_what_fails_most_is_named_where_kubectl_looks_for_it():
    denied = ExceptionSample(0, "configmaps/shop/a", "Denied", 2, "/emea")
    crashing = ExceptionSample(NOT_WORKING, "pods/shop/b", "CrashLoopBackOff", 1, "/emea")
    summary = Summary({"failing": 2}, {"degraded": 2}, exceptions=(crashing, denied))
    messages = {item["type"]: item["message"] for item in status(summary)["conditions"]}
    named = "shop/configmaps/a: Denied (2 destinations, e.g. /emea)"
    assert messages["Synced"] == f"0 of 2 destinations are synced (2 failing): {named}"
    assert "CrashLoopBackOff" in messages["Healthy"]


def test_who_never_joined_counts_apart_and_is_not_waited_for():
    some = Summary({"synced": 2, NEVER_JOINED: 1}, {"healthy": 2, NEVER_JOINED: 1})
    said = status(some)
    assert reasons(said)["Synced"] == ("True", "Synced")
    assert reasons(said)["Healthy"] == ("True", "Healthy")
    assert (said["destinations"], said["neverJoined"]) == (2, 1)
    messages = [item["message"] for item in said["conditions"]]
    assert "2 of 2 destinations are synced (1 never joined)" in messages
    nobody = reasons(status(Summary({NEVER_JOINED: 3}, {NEVER_JOINED: 3})))
    assert nobody["Synced"] == nobody["Healthy"] == ("False", "NeverJoined")


@pytest.mark.parametrize(("pending", "reason"), [(0, "Waiting"), (1, "Pending")])
def test_who_waits_for_a_window_is_counted_apart(pending, reason):
    said = status(Summary({"synced": 1, "waiting": 2, "pending": pending}, {"healthy": 3}))
    assert said["waiting"] == 2
    assert reasons(said)["Synced"] == ("False", reason)


def test_what_is_not_synced_is_counted_by_what_it_is():
    said = status(Summary({"synced": 2, "unreachable": 3, "failing": 1}, {"healthy": 6}))
    (synced,) = [item for item in said["conditions"] if item["type"] == "Synced"]
    assert synced["message"] == "2 of 6 destinations are synced (1 failing, 3 unreachable)"


def test_why_something_does_not_work_yet_is_said_and_is_no_error():
    samples = (
        ExceptionSample(AT_WORK, "deployments.apps/shop/web", "1 of 2 replicas available", 1, "/a"),
        ExceptionSample(AT_WORK, "services/shop/web", "waiting for an address", 3, "/b"),
    )
    health = {"healthy": 1, "progressing": 3}
    said = status(Summary({"synced": 4}, health, exceptions=samples))
    (healthy,) = [item for item in said["conditions"] if item["type"] == "Healthy"]
    assert healthy["message"] == (
        "1 of 4 destinations are healthy (3 progressing): "
        "shop/services/web: waiting for an address (3 destinations, e.g. /b)"
    )
    assert said["errors"] == []


def test_a_count_that_is_not_exact_reads_at_least_and_names_who_is_awaited():
    said = status(at_least(Summary({"synced": 1}), "/emea"))
    (synced,) = [item for item in said["conditions"] if item["type"] == "Synced"]
    assert synced["message"] == "at least 1 of 1 destination is synced; waiting for /emea"


def test_the_worst_errors_come_first_and_are_bounded():
    samples = tuple(
        ExceptionSample(at % 3, f"deployments.apps/shop/d{at}", "Refused", at, "/s1")
        for at in range(1, 31)
    )
    said = status(Summary({"failing": 1}, exceptions=samples))
    assert len(said["errors"]) == 20
    assert said["errors"][0] == "shop/deployments.apps/d30: Refused (30 destinations, e.g. /s1)"


def test_an_error_without_an_object_names_its_reason_alone():
    assert error_text(ExceptionSample(0, "", "Offline", 1, "/s1")) == (
        "Offline (1 destination, e.g. /s1)"
    )


def test_a_condition_that_stays_keeps_its_time_and_others_conditions_stay():
    foreign = {"type": "Theirs", "status": "True"}
    first = merged([foreign], [condition("Synced", "True", "Synced", "1 of 1")], 0)
    again = merged(first, [condition("Synced", "True", "Synced", "2 of 2")], NOW_MS)
    turned = merged(again, [condition("Synced", "False", "Pending", "1 of 2")], NOW_MS)
    assert first[0] == again[0] == foreign
    assert [item[1]["lastTransitionTime"] for item in (first, again, turned)] == [
        "1970-01-01T00:00:00Z",
        "1970-01-01T00:00:00Z",
        "2027-01-15T08:00:00Z",
    ]


def test_a_condition_of_ours_that_is_no_longer_said_goes():
    held = PlacementFacts(1, 0, removal_held="too many")
    before = status(Summary(), held)
    assert "RemovalHeld" in reasons(before)
    assert "RemovalHeld" not in reasons(status(Summary(), before=before))


def result(count, returned=None, where="d"):
    data = None if returned is None else codec.canonical(returned)
    return ObjectResult(WEB, count, where if count == 1 else "", data)


@pytest.mark.parametrize(
    ("asking", "count", "expected"),
    [
        ([(Summary({"synced": 1}), [result(1, {"ready": [1]})])], 1, {"ready": [1]}),
        ([(Summary({"synced": 1}), [result(1)])], 1, {}),
        ([(Summary({"synced": 2}), [result(2)])], 2, {}),
        ([(Summary({"synced": 1, "leaving": 1}), [result(1, {"a": 1})])], 1, {"a": 1}),
        ([(Summary(), [])], 0, {}),
        ([(None, [])], 0, None),
        ([(Count(Summary({"synced": 1}), False), [result(1, {"a": 1})])], 1, None),
        ([(Count(Summary({"synced": 2}), False), [result(1, {"a": 1})])], 2, {}),
        (
            [(Summary({"synced": 1}), [result(1, {"a": 1})]), (Summary({"synced": 1}), [])],
            1,
            {"a": 1},
        ),
        ([(Summary(), [result(1, {"a": 1})]), (Summary(), [result(1, {"b": 1}, "e")])], 2, {}),
        ([(Summary(), [result(1, {"a": 1})]), (Summary(), [result(1, {"a": 1})])], 1, {"a": 1}),
    ],
)
def test_only_the_one_copy_of_those_who_ask_gives_its_status(asking, count, expected):
    judged = singleton(WEB, [(counted(known), listed) for known, listed in asking], HubContent(0))
    assert (judged.count, judged.status) == (count, expected)


@pytest.mark.parametrize(
    "key",
    [
        ObjectKey("", "namespaces", "", "shop"),
        ObjectKey("apiextensions.k8s.io", "customresourcedefinitions", "", "x.example.com"),
    ],
)
def test_namespaces_and_definitions_never_get_a_status(key):
    assert not takes_status(key)
    assert takes_status(WEB)


def test_what_lacks_something_is_never_synced_whatever_is_counted():
    lack = Lack("NothingSelected", "no object is selected: ...")
    facts = PlacementFacts(3, 2, lack=lack)
    for summary in (None, Summary(), Summary({"synced": 2}, {"healthy": 2})):
        said = status(summary, facts)
        assert reasons(said) == {
            "Valid": ("True", "Valid"),
            "Synced": ("False", "NothingSelected"),
            "Healthy": ("False", "NothingSelected"),
            "ObjectsSelected": ("False", "NothingSelected"),
            "Ready": ("False", "NothingSelected"),
            "Reconciling": ("True", "NothingSelected"),
        }
        assert said["selectedObjects"] == 0
    again = status(Summary({"synced": 2}, {"healthy": 2}), PlacementFacts(3, 2, selected=7), said)
    assert reasons(again)["Synced"] == ("True", "Synced")
    assert "ObjectsSelected" not in reasons(again)
    assert again["selectedObjects"] == 7


def test_of_what_is_frozen_and_lacks_a_customizer_it_is_said_that_it_is_frozen():
    missing = ("Customizer shop/a is not there: 1 object goes out as it is written",)
    for lack, said in ((None, "CustomizerMissing"), (Lack("Frozen", "it stays"), "Frozen")):
        facts = PlacementFacts(3, 2, lack=lack, uncustomized=missing)
        told = [item for item in status(None, facts)["conditions"] if item["type"] == "Customized"]
        assert [item["reason"] for item in told] == [said]


def test_what_is_kept_and_what_was_put_right_is_told_and_is_nothing_wrong():
    why = "left in place: kept: it holds data"
    copy = ExceptionSample(0, "persistentvolumeclaims/shop/data", why, 2, "/e/s1")
    repair = RepairSample(NOW_MS, str(WEB), "/e/s1", 3, "spec.replicas", "kubectl")
    known = Summary(
        {"synced": 1}, {"healthy": 1}, kept=2, kept_copies=(copy,), repaired=7, repairs=(repair,)
    )
    said = status(known)
    assert said["errors"] == []
    assert said["kept"]["count"] == 2
    assert said["kept"]["copies"][0] == {
        "object": "shop/persistentvolumeclaims/data",
        "destinations": 2,
        "path": "/e/s1",
        "reason": "it holds data",
    }
    assert said["repairs"]["count"] == 7
    assert said["repairs"]["last"][0]["manager"] == "kubectl"
    assert "kept" not in status(Summary({"synced": 1}), before=said)
    # Who has not answered yet takes nothing back.
    early = status(at_least(Summary({"synced": 1}), "/e"), before=said)
    assert (early["kept"], early["repairs"]) == (said["kept"], said["repairs"])
