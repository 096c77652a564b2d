"""Health as users say it: on an object, or for a kind."""

import pytest

from relay.objects.health import assess
from relay.objects.health_rules import (
    annotation_fault,
    assess_as_said,
    assess_by_rule,
    is_done,
    rule_faults,
)
from relay.syncer.observed import look_at
from schemas.annotations import HEALTH
from schemas.health_rules import HealthProgram


def ox(said=None, status=None, **metadata):
    annotations = {} if said is None else {HEALTH: said}
    form = {
        "apiVersion": "example.com/v1",
        "kind": "Ox",
        "metadata": {"name": "ox", "uid": "u", "annotations": annotations, **metadata},
        "spec": {"legs": 4},
    }
    return form if status is None else {**form, "status": status}


def rule(**fields):
    return HealthProgram("oxen", "example.com", "Ox", **fields)


@pytest.mark.parametrize(
    ("said", "status", "health"),
    [
        ("ignore", {"phase": "Lame"}, "healthy"),
        ("ignore", None, "healthy"),
        ("obj.status.phase == 'Up'", {"phase": "Up"}, "healthy"),
        ("obj.status.phase == 'Up'", {"phase": "Down"}, "progressing"),
        ("obj.status.phase == 'Up'", None, "progressing"),
        ("returned.status.phase == 'Up'", {"phase": "Up"}, "healthy"),
        ("has(obj.status) ? 'degraded: no hay' : 'healthy'", {"phase": "x"}, "degraded"),
        ("has(obj.status) ? 'degraded: no hay' : 'healthy'", None, "healthy"),
        ("obj.spec.legs", None, "progressing"),
        (
            "obj.status.conditions.exists(c, c.type == 'Up' && c.status == 'True')",
            {"conditions": [{"type": "Up", "status": "True"}]},
            "healthy",
        ),
    ],
)
def test_an_object_is_as_well_as_it_says(said, status, health):
    obj = ox(said, status)
    assert assess_as_said(said, obj)[0] == health
    sight = look_at(obj)
    assert sight.health == health
    assert sight.awaits is None
    assert (sight.reason == "") == (health == "healthy")


def test_what_it_says_of_the_reason_is_its_reason():
    assert look_at(ox("'degraded: no hay'")).reason == "no hay"
    assert "no such key" in look_at(ox("obj.status.phase == 'Up'")).reason
    assert "give true or false" in look_at(ox("obj.spec.legs")).reason


def test_what_is_ignored_is_well_also_while_it_goes_and_nothing_else_is():
    assert look_at(ox("ignore", deletionTimestamp="now")).health == "healthy"
    assert look_at(ox("true || obj.spec.legs > 1", deletionTimestamp="now")).health == "progressing"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("obj.status.phase = 'Ready'", "not CEL"),
        ("status.phase == 'Ready'", 'unknown variable "status"'),
        ("ignored", 'unknown variable "ignored"'),
        ("healthy", "looks at nothing"),
        ("obj.a.all(x, x.all(y, y.all(z, z)))", "nested loops"),
        ("x" * 5000, "at most 4096"),
    ],
)
def test_what_says_nothing_of_health_is_a_fault_with_a_remedy(said, words):
    fault = annotation_fault(ox(said))
    assert words in fault.message
    assert fault.path == f"metadata.annotations[{HEALTH}]"
    assert "ignore" in fault.remedy


def test_what_says_something_is_no_fault():
    assert annotation_fault(ox()) is None
    assert annotation_fault(ox("ignore")) is None
    assert annotation_fault(ox("obj.status.phase == 'Ready'")) is None


def test_a_rule_judges_all_objects_of_its_kind_but_those_that_judge_themselves():
    ruled = rule(healthy="obj.status.phase == 'Up'", degraded="obj.status.phase == 'Lame'")
    for phase, health in (("Up", "healthy"), ("Lame", "degraded"), ("Calf", "progressing")):
        assert look_at(ox(status={"phase": phase}), rule=ruled).health == health
    assert look_at(ox(), rule=ruled).health == "progressing"
    assert look_at(ox("ignore", {"phase": "Lame"}), rule=ruled).health == "healthy"
    assert look_at(ox(status={"phase": "Lame"}), rule=rule(ignore=True)).health == "healthy"


def test_where_a_rule_says_nothing_the_kind_does():
    lame = {"conditions": [{"type": "Ready", "status": "False", "reason": "Lame"}]}
    kept = rule(done="obj.status.phase == 'Sold'")
    obj = ox(status=lame)
    assert assess_by_rule(kept, obj, lambda: assess(obj)) == ("degraded", "Lame")
    assert not is_done(kept, obj)
    assert is_done(kept, ox(status={"phase": "Sold"}))
    assert look_at(ox(status={"phase": "Sold"}), rule=kept).ended


def test_a_rule_says_why_and_else_who_does():
    said = rule(healthy="false && obj.spec.legs > 1", message="'waits for ' + obj.status.what")
    assert look_at(ox(status={"what": "hay"}), rule=said).reason == "waits for hay"
    assert "HealthRule oxen" in look_at(ox(), rule=said).reason


def test_each_wrong_expression_of_a_rule_is_a_fault_of_its_field():
    wrong = rule(healthy="status.x", done="obj..x", message="obj.x")
    assert [fault.path for fault in rule_faults(wrong)] == ["spec.healthy", "spec.done"]
