"""What a placement, a selector and a Rollout may list: over it a clear error, whoever reads it."""

from __future__ import annotations

import random
import time

import pytest

from controllers.core.workloads.selection import rules_of
from schemas.api.parsing import parse_kind
from schemas.api.shared import (
    CLAUSES_MAX,
    LISTED_MAX,
    REQUIREMENTS_IN_ALL,
    REQUIREMENTS_MAX,
    SELECTORS_MAX,
)
from schemas.crds.definitions import custom_resource_definitions
from schemas.objects.objects import ObjectKey
from schemas.objects.selectors import LabelSelector
from schemas.records.records import WINDOWS_MAX
from schemas.values.faults import InvalidObject

PLACEMENT = ("edge.kubestellar.io/v2alpha1", "EdgePlacement")
POLICY = ("control.kubestellar.io/v1alpha1", "BindingPolicy")
ROLLOUT = ("leafcast.io/v1alpha1", "Rollout")
CLAUSE = {"resources": ["configmaps"]}
WAVE = {"name": "all", "percent": 100}
WINDOW = {"cron": "0 2 * * *", "duration": "1h", "zone": "UTC"}
LABELS = {"matchLabels": {"a": "b"}}


def wide(values):
    said = {"key": "a", "operator": "In", "values": [f"v{at}" for at in range(values)]}
    return {"matchExpressions": [said]}


def labels(count, prefix=""):
    return {"matchLabels": {f"{prefix}k{at}": "v" for at in range(count)}}


def parsed(kind, spec):
    api, name = kind
    return parse_kind({"apiVersion": api, "kind": name, "metadata": {"name": "x"}, "spec": spec})


def clause(**fields):
    return {"downsync": [{**CLAUSE, **fields}]}


def rolled(**fields):
    wave = {**WAVE, **({"windows": fields.pop("of_wave")} if "of_wave" in fields else {})}
    return {"placement": {"name": "x"}, "waves": [wave], **fields}


CASES = [
    (PLACEMENT, lambda n: {"downsync": [CLAUSE] * n}, CLAUSES_MAX),
    (POLICY, lambda n: {"downsync": [CLAUSE] * n}, CLAUSES_MAX),
    (PLACEMENT, lambda n: {"upsync": [CLAUSE] * n}, CLAUSES_MAX),
    (PLACEMENT, lambda n: {"nonNamespacedObjects": [CLAUSE] * n}, CLAUSES_MAX),
    (PLACEMENT, lambda n: {"locationSelectors": [LABELS] * n}, SELECTORS_MAX),
    (POLICY, lambda n: {"clusterSelectors": [LABELS] * n}, SELECTORS_MAX),
    (PLACEMENT, lambda n: clause(labelSelectors=[LABELS] * n), SELECTORS_MAX),
    (POLICY, lambda n: clause(objectSelectors=[LABELS] * n), SELECTORS_MAX),
    (PLACEMENT, lambda n: clause(objectNames=[f"n{at}" for at in range(n)]), LISTED_MAX),
    (PLACEMENT, lambda n: clause(namespaces=["a"] * n), LISTED_MAX),
    (POLICY, lambda n: clause(statusCollectors=["a"] * n), LISTED_MAX),
    (PLACEMENT, lambda n: {"upsync": [{**CLAUSE, "names": ["a"] * n}]}, LISTED_MAX),
    (PLACEMENT, lambda n: {"locationSelectors": [wide(n)]}, LISTED_MAX),
    (PLACEMENT, lambda n: {"locationSelectors": [labels(n)]}, REQUIREMENTS_MAX),
    (ROLLOUT, lambda n: rolled(windows=[WINDOW] * n), WINDOWS_MAX),
    (ROLLOUT, lambda n: rolled(of_wave=[WINDOW] * n), WINDOWS_MAX),
]


@pytest.mark.parametrize(("kind", "spec", "most"), CASES)
def test_over_a_bound_the_field_both_numbers_and_a_remedy_are_named(kind, spec, most):
    assert parsed(kind, spec(most)) is not None
    with pytest.raises(InvalidObject) as refused:
        parsed(kind, spec(most + 1))
    [fault] = refused.value.faults
    assert fault.path.startswith("spec.")
    assert f"{most + 1} are listed, at most {most} may be" in fault.message
    assert fault.remedy


@pytest.mark.parametrize("kind", [PLACEMENT, POLICY])
def test_all_selectors_of_a_placement_share_a_bound(kind):
    field = "labelSelectors" if kind == PLACEMENT else "objectSelectors"
    many = [labels(REQUIREMENTS_MAX, f"p{at}") for at in range(SELECTORS_MAX)]
    clauses = REQUIREMENTS_IN_ALL // REQUIREMENTS_MAX // SELECTORS_MAX
    assert parsed(kind, {"downsync": [{**CLAUSE, field: many}] * clauses})
    with pytest.raises(InvalidObject, match="requirements in all its selectors, at most 2048"):
        parsed(kind, {"downsync": [{**CLAUSE, field: many}] * clauses + [{field: [LABELS]}]})


def test_the_largest_placement_takes_an_object_less_than_two_milliseconds():
    none = {"matchExpressions": [{"key": f"k{at}", "operator": "DoesNotExist"} for at in range(31)]}
    never = {"matchExpressions": [*none["matchExpressions"], {"key": "z", "operator": "Exists"}]}
    spec = {"downsync": [{**CLAUSE, "labelSelectors": [never] * SELECTORS_MAX}] * 2}
    rules = rules_of(parsed(PLACEMENT, spec).spec)
    key, began = ObjectKey("", "configmaps", "n", "x"), time.process_time()
    for _ in range(200):
        assert rules.flags_of(key, {}, {}) is None
    assert (time.process_time() - began) / 200 < 0.002


def test_a_requirement_with_a_hundred_thousand_values_is_looked_up_and_not_gone_through():
    values = [f"v{at:06}" for at in range(0, 200_000, 2)]
    selector = LabelSelector.from_kubernetes(
        {"matchExpressions": [{"key": "a", "operator": "In", "values": values}]}
    )
    asked = random.Random(1).sample(range(200_002), 1_000)
    began = time.process_time()
    for number in asked:
        inside = number % 2 == 0 and number < 200_000
        assert selector.matches({"a": f"v{number:06}"}) is inside
    assert not selector.matches({})
    assert time.process_time() - began < 0.2


def test_an_api_server_is_told_the_same_bounds():
    said = {each["spec"]["names"]["kind"]: each for each in custom_resource_definitions()}
    version = said["EdgePlacement"]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    spec = version["properties"]["spec"]["properties"]
    requirement = spec["locationSelectors"]["items"]["properties"]
    assert spec["downsync"]["maxItems"] == CLAUSES_MAX
    assert requirement["matchLabels"]["maxProperties"] == REQUIREMENTS_MAX
    values = requirement["matchExpressions"]["items"]["properties"]["values"]
    assert values["maxItems"] == LISTED_MAX
