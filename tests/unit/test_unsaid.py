"""Which fields of an object on an API server nobody said, by whatever way it was written."""

import json

import pytest

from controllers.core.translation.clean_objects import CleanObjects
from controllers.core.workloads.unsaid import unsaid
from relay.objects.unsaid_fields import fields_of
from schemas.objects.objects import ObjectKey

KEY = ObjectKey("example.com", "gadgets", "shop", "g")
SAID = {"size": 1, "parts": [{"name": "a"}]}
FILLED = {
    "size": 1,
    "mode": "fast",
    "limits": {"cpu": 1, "memory": 2},
    "parts": [{"name": "a", "protocol": "TCP", "weight": 3}],
}
DEFAULTED = {
    ("spec", "mode"),
    ("spec", "limits"),
    ("spec", "parts", 0, "weight"),
}
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer"},
                "mode": {"type": "string", "default": "fast"},
                "limits": {
                    "type": "object",
                    "default": {},
                    "properties": {"cpu": {"default": 1}, "memory": {"default": 2}},
                },
                "parts": {
                    "type": "array",
                    "items": {"type": "object", "properties": {"weight": {"default": 3}}},
                },
            },
        }
    },
}
DEFINITION = {
    "metadata": {"name": "gadgets.example.com", "resourceVersion": "1"},
    "spec": {
        "versions": [
            {"name": "v2", "schema": {"openAPIV3Schema": {"type": "object"}}},
            {"name": "v1", "schema": {"openAPIV3Schema": SCHEMA}},
        ]
    },
}
ITEM = 'k:{"name":"a","protocol":"TCP"}'
APPLIED = {"f:spec": {"f:size": {}, "f:parts": {ITEM: {"f:name": {}}}}}
UPDATED = {
    "f:spec": {
        ".": {},
        "f:size": {},
        "f:mode": {},
        "f:limits": {".": {}, "f:cpu": {}, "f:memory": {}},
        "f:parts": {".": {}, ITEM: {".": {}, "f:name": {}, "f:protocol": {}, "f:weight": {}}},
    }
}


def gadget(*entries, spec=FILLED, **annotations):
    managed = [
        {"manager": manager, "operation": operation, "fieldsV1": fields}
        for manager, operation, fields in entries
    ]
    said = {"apiVersion": "example.com/v1", "kind": "Gadget", "spec": spec}
    return {**said, "metadata": {"name": "g", "annotations": annotations, "managedFields": managed}}


def of(obj, definition=DEFINITION):
    return unsaid(obj, obj, definition)


def test_of_an_applied_object_nobody_said_what_its_managers_do_not_own():
    assert of(gadget(("kubectl", "Apply", APPLIED)), None) == DEFAULTED


def test_of_an_updated_object_nobody_said_what_its_definition_fills_in():
    created = gadget(("kubectl-create", "Update", UPDATED))
    assert of(created) > DEFAULTED - {("spec", "limits")}
    assert of(created, None) == frozenset()
    slow = gadget(("helm", "Update", UPDATED), spec={**FILLED, "mode": "slow"})
    assert ("spec", "mode") not in of(slow)


def test_what_a_clients_own_apply_noted_tells_what_it_said():
    last = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps({"spec": SAID})}
    obj = gadget(("kubectl-client-side-apply", "Update", UPDATED), **last)
    assert of(obj, None) == DEFAULTED
    said = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps({"spec": FILLED})}
    assert of(gadget(("kubectl-client-side-apply", "Update", UPDATED), **said)) == frozenset()
    broken = {"kubectl.kubernetes.io/last-applied-configuration": "{"}
    lost = gadget(("kubectl-client-side-apply", "Update", UPDATED), **broken)
    assert of(lost, None) == frozenset()


def test_what_is_filled_into_the_items_of_an_atomic_list_is_no_less_unsaid():
    weight = {("spec", "parts", 0, "weight")}
    whole = {"f:spec": {"f:size": {}, "f:mode": {}, "f:limits": {}, "f:parts": {}}}
    protocol = {("spec", "parts", 0, "protocol")}
    assert of(gadget(("kubectl", "Apply", whole))) == weight
    assert of(gadget(("kubectl-create", "Update", whole))) >= weight
    last = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps({"spec": SAID})}
    obj = gadget(("kubectl-client-side-apply", "Update", whole), **last)
    assert of(obj, None) == DEFAULTED | protocol


def test_a_default_that_someone_applied_is_said():
    by_person = ("person", "Apply", {"f:spec": {"f:mode": {}}})
    obj = gadget(("helm", "Update", UPDATED), by_person)
    assert ("spec", "mode") not in of(obj)
    assert ("spec", "parts", 0, "weight") in of(obj)


@pytest.mark.parametrize("definition", [None, {}, {"spec": {"versions": [None, {"name": "v1"}]}}])
def test_of_what_tells_of_no_manager_all_is_said(definition):
    assert of({"kind": "Gadget", "metadata": {"name": "g"}, "spec": FILLED}) == frozenset()
    assert of(gadget(("m", "Update", UPDATED)), definition) == frozenset()


def test_who_looks_at_an_object_again_finds_what_its_definition_says_by_now():
    definitions = [None]
    cleaned = CleanObjects(definition=lambda _key: definitions[0])
    obj = gadget(("kubectl-create", "Update", UPDATED))
    before = cleaned.reference(KEY, obj)
    assert cleaned.unsaid(KEY) == ()
    definitions[0] = DEFINITION
    assert cleaned.reference(KEY, obj) == before
    assert ("spec", "mode") in fields_of(obj, cleaned.unsaid(KEY))
    cleaned.forget(KEY)
    assert cleaned.unsaid(KEY) == ()
