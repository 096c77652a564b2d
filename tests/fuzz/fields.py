"""Objects as API servers show them: whoever owns what in them, they are cleaned, and told apart."""

from __future__ import annotations

import json
from contextlib import suppress

from controllers.core.workloads.clean_copies import clean, taken_off
from controllers.core.workloads.unsaid import unsaid
from relay.objects.unsaid_fields import fields_of, numbers_of, without_unknown
from schemas.api.placement import AS_WRITTEN, KUBESTELLAR
from schemas.objects.objects import ObjectKey
from schemas.values import codec
from schemas.values.refusals import CodecError
from tests.fuzz.target import Form, Target

KEYS = (
    ObjectKey("", "services", "shop", "a"),
    ObjectKey("batch", "jobs", "shop", "a"),
    ObjectKey("", "persistentvolumes", "", "a"),
    ObjectKey("example.com", "gadgets", "shop", "a"),
)
LAST = "kubectl.kubernetes.io/last-applied-configuration"
OWNED = {
    "f:metadata": {"f:finalizers": {".": {}, 'v:"x/y"': {}}},
    "f:spec": {
        "f:clusterIP": {},
        "f:ports": {'k:{"port":80}': {".": {}, "f:port": {}}, "i:1": {"f:nodePort": {}}},
    },
}
OBJECT = {
    "apiVersion": "example.com/v1",
    "kind": "Gadget",
    "metadata": {
        "name": "a",
        "finalizers": ["x/y", "z"],
        "labels": {"controller-uid": "u"},
        "annotations": {LAST: '{"spec": {"ports": [{"port": 80}]}}'},
        "managedFields": [
            {"manager": "helm", "operation": "Update", "fieldsV1": OWNED},
            {"manager": "kubectl-client-side-apply", "operation": "Update", "fieldsV1": OWNED},
            {"manager": "kubectl", "operation": "Apply", "fieldsV1": OWNED},
        ],
    },
    "spec": {
        "clusterIP": "10.0.0.1",
        "selector": {"a": "b"},
        "claimRef": {"uid": "u"},
        "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}, {"port": 81, "nodePort": 1}],
        "template": {"metadata": {"labels": {"controller-uid": "u"}}},
    },
    "status": {},
}
SCHEMA = {
    "properties": {
        "spec": {
            "properties": {
                "clusterIP": {"default": "10.0.0.1"},
                "ports": {"items": {"properties": {"protocol": {"default": "TCP"}}}},
            }
        }
    }
}
VERSION = {"name": "v1", "schema": {"openAPIV3Schema": SCHEMA}}
DEFINITION = {"metadata": {}, "spec": {"versions": [VERSION]}}
REFUSED = (
    '.spec.ports[port=80,protocol="TCP"].nodePort: field not declared in schema '
    ".spec.claimRef.uid: field not declared in schema .spec.ports[1]: field not declared in schema"
)


def cleaned(data: bytes) -> None:
    """An object, the definition of its kind, and what an edge's server says of it."""
    try:
        obj, definition, message = json.loads(data)
        codec.canonical(obj)
    except (ValueError, TypeError, RecursionError, CodecError):
        return
    if not isinstance(obj, dict) or not isinstance(definition, dict):
        return
    for key in KEYS:
        for rule in (AS_WRITTEN, KUBESTELLAR):
            sent = clean(key, obj, rule)
            assert len(taken_off(key, obj, rule)) or sent == obj
            free = unsaid(obj, sent, definition)
            told = fields_of(sent, numbers_of(sent, free))
            assert told <= free
            with suppress(CodecError):
                codec.canonical(without_unknown(sent, told, str(message)) or {})


TARGETS = {
    "fields": Target(
        cleaned, lambda: [json.dumps([OBJECT, DEFINITION, REFUSED]).encode()], Form.JSON
    )
}
