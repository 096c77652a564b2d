"""Health as users say it: on an object, or for a kind."""

import pytest

from controllers.core.workloads.health_rules import HealthRules
from relay.objects.expressions.bounds import TOKENS_MAX
from relay.objects.health import assess
from relay.objects.health_rules import (
    annotation_fault,
    assess_as_said,
    assess_by_rule,
    is_done,
    rule_faults,
)
from relay.syncer.observed import look_at
from schemas.api.parsing import parse_kind
from schemas.content.blobs import open_stored
from schemas.objects.annotations import HEALTH
from schemas.objects.objects import ObjectKey
from schemas.records.health_rules import HealthProgram
from schemas.reports.collectors import program_set, read_program_set
from schemas.values.faults import InvalidObject
from tests.memory_tree import config_map, memory_tree, placement


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
    return HealthProgram("oxen", "example.com", "oxen", **fields)


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
    # It knows its kind better than what statuses mostly say.
    assert look_at(ox(status={"phase": "Succeeded"})).ended
    assert not look_at(ox(status={"phase": "Succeeded"}), rule=kept).ended


def test_a_rule_says_why_and_else_who_does():
    said = rule(healthy="false && obj.spec.legs > 1", message="'waits for ' + obj.status.what")
    assert look_at(ox(status={"what": "hay"}), rule=said).reason == "waits for hay"
    assert "HealthRule oxen" in look_at(ox(), rule=said).reason


def test_each_wrong_expression_of_a_rule_is_a_fault_of_its_field():
    wrong = rule(healthy="status.x", done="obj..x", message="obj.x")
    assert [fault.path for fault in rule_faults(wrong)] == ["spec.healthy", "spec.done"]


OXEN = {"apiGroup": "example.com", "resource": "oxen"}
OX = ObjectKey("example.com", "oxen", "shop", "ox")


def health_rule(name="oxen", **spec):
    metadata = {"name": name}
    api = "leafcast.io/v1alpha1"
    return {"apiVersion": api, "kind": "HealthRule", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (OXEN, "spec: it says nothing of health; write healthy, degraded or done, or ignore"),
        ({**OXEN, "message": "'x'"}, "spec: it says nothing of health"),
        ({**OXEN, "ignore": True, "healthy": "obj.x"}, "spec.healthy: nothing is asked"),
        ({"resource": "oxen", "ignore": True}, "spec.apiGroup: missing"),
        (
            {**OXEN, "resource": "Oxen", "ignore": True},
            "name one lowercase plural without its group, such as certificates",
        ),
        ({**OXEN, "healthy": ""}, "spec.healthy: empty"),
        ({**OXEN, "healthy": "x" * 5000}, "write at most 4096"),
        ({**OXEN, "helthy": "obj.x"}, 'did you mean "healthy"?'),
    ],
)
def test_a_rule_that_cannot_count_is_refused_by_field_with_a_remedy(spec, said):
    with pytest.raises(InvalidObject) as caught:
        parse_kind(health_rule(**spec))
    assert said in str(caught.value)


def test_of_rules_for_one_kind_the_first_by_name_counts_and_the_other_says_so():
    rules = HealthRules()
    kind = frozenset({OX.group_resource})
    assert rules.put("b", health_rule("b", **OXEN, ignore=True)) == kind
    assert rules.put("a", health_rule("a", **OXEN, healthy="obj.x")) == kind
    assert [each.name for each in rules.of([OX])] == ["a"]
    assert "HealthRule a" in rules.warnings("b", None)[0]
    assert rules.warnings("a", None) == ()
    assert rules.of([ObjectKey("", "configmaps", "shop", "x")]) == ()
    assert rules.remove("a") == kind
    assert [each.name for each in rules.of([OX])] == ["b"]


def test_a_rule_that_becomes_invalid_counts_as_it_was():
    rules = HealthRules()
    rules.put("a", health_rule("a", **OXEN, healthy="obj.x"))
    assert rules.put("a", health_rule("a", **OXEN, healthy="status.x")) == frozenset()
    assert "unknown variable" in rules.invalid["a"][0]
    assert rules.of([OX])[0].healthy == "obj.x"
    assert rules.put("a", health_rule("a", **OXEN, healthy="obj.y"))
    assert not rules.invalid


def test_a_rule_that_is_there_counts_though_it_says_too_much_and_says_so():
    one = "+".join(["1"] * (TOKENS_MAX // 2 - 2))
    said = {"healthy": f"{one}>0", "degraded": f"{one}>1", "message": f"string({one})"}
    rules = HealthRules()
    assert rules.put("a", health_rule("a", **OXEN, **said))
    assert not rules.invalid
    assert rules.of([OX])[0].healthy == said["healthy"]
    [warning] = rules.warnings("a", None)
    assert "say less by one rule" in warning
    [fault] = rule_faults(rules.of([OX])[0])
    assert str(fault) == warning


def test_rules_travel_beside_programs_and_without_them_nothing_does():
    ruled = rule(healthy="obj.x", ignore=False)
    assert read_program_set(open_stored(program_set({}, None, (ruled,)))).health == (ruled,)
    assert program_set({}) == program_set({}, None, ())


async def test_a_rule_judges_at_the_edges_as_soon_as_what_it_judges_and_whatever_it_says_next(
    tmp_path,
):
    kind = {"apiGroup": "", "resource": "configmaps"}
    settings = config_map("settings", "shop", ready="no")
    async with memory_tree(tmp_path, ["/r1", "/r1/s1"]) as tree:

        async def until(health):
            await tree.until("shop", lambda count: count.summary.health == {health: 1}, seconds=30)

        ruled = health_rule("maps", **kind, healthy="obj.data.ready == 'yes'")
        await tree.apply(ruled, settings, placement("shop", "shop"))
        await tree.until("shop", lambda count: count.summary.states == {"synced": 1}, seconds=30)
        await until("progressing")
        await tree.apply(health_rule("maps", **kind, degraded="obj.data.ready != 'yes'"))
        await until("degraded")
        await tree.apply(config_map("settings", "shop", ready="yes"))
        await until("healthy")
        await tree.apply(health_rule("maps", **kind, healthy="false && obj.data.x"))
        await until("progressing")
        await tree.workloads.delete(ObjectKey("leafcast.io", "healthrules", "", "maps"))
        await until("healthy")
