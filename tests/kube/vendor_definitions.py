"""Definitions of the shapes that vendors publish, two of them large."""

import json


def definition(plural, group, schema, **more):
    """A CustomResourceDefinition, as the generator of controllers writes one."""
    kind = plural[:-1].capitalize()
    version = {"name": "v1", "served": True, "storage": True, **more.pop("version", {})}
    names = {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            "creationTimestamp": None,
            "annotations": {"controller-gen.kubebuilder.io/version": "v0.16.1"},
        },
        "spec": {
            "group": group,
            "names": names,
            "scope": "Namespaced",
            "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
            **more,
        },
        "status": {
            "acceptedNames": {"kind": "", "plural": ""},
            "conditions": [],
            "storedVersions": [],
        },
    }


def large(plural, size):
    """A definition of so many bytes: most of it says what fields are for."""
    words = "what this field is for, in a sentence or two; \u00e9\u4e2d " * 8
    one = {"type": "string", "description": words, "maxLength": 253, "pattern": "^[a-z]*$"}
    fields, made = {}, {}
    while len(json.dumps(fields)) < size:
        at = len(fields)
        fields |= {f"field{at + more}": one for more in range(200)}
    count = len(fields) * size // len(json.dumps(fields))
    made = {name: fields[name] for name in list(fields)[:count]}
    spec = {"type": "object", "properties": made}
    status = {"type": "object", "properties": {"ready": {"type": "boolean", "default": False}}}
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    return definition(plural, "large.example.org", schema, version={"subresources": {"status": {}}})


def cluster_definition():
    text, table = {"type": "string"}, {"type": "object", "additionalProperties": {"type": "string"}}
    read = {"type": "object", "properties": {"on": {"type": "boolean", "default": False}}}
    csi = {"type": "object", "properties": {"cephfs": table, "readAffinity": read}}
    node = {"type": "object", "properties": {"name": text, "config": {**table, "nullable": True}}}
    nodes = {"type": "array", "items": node}
    spec = {
        "image": text,
        "mon": {"type": "object", "properties": {"count": {"type": "integer", "minimum": 0}}},
        "csi": csi,
        "storage": {"type": "object", "properties": {"nodes": nodes}},
    }
    of_spec = {"type": "object", "properties": spec}
    return definition(
        "clusters", "clusters.example.org", {"type": "object", "properties": {"spec": of_spec}}
    )


def gateway_definition():
    rule = {"rule": "self.a <= self.b", "message": "in order"}
    numbers = {name: {"type": "integer", "format": "int32"} for name in "ab"}
    spec = {"type": "object", "properties": numbers, "x-kubernetes-validations": [rule]}
    either = {
        "x-kubernetes-int-or-string": True,
        "anyOf": [{"type": "integer"}, {"type": "string"}],
    }
    listed = {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}
    fields = {"spec": spec, "port": either, "hosts": listed}
    columns = [{"name": "A", "type": "integer", "jsonPath": ".spec.a", "priority": 1}]
    return definition(
        "gateways",
        "gateway.example.org",
        {"type": "object", "properties": fields},
        version={
            "additionalPrinterColumns": columns,
            "deprecated": True,
            "deprecationWarning": "old",
        },
        names={
            "kind": "Gateway",
            "plural": "gateways",
            "shortNames": ["gtw"],
            "categories": ["all"],
        },
    )


def balancer_definition():
    """With a webhook that converts, and two versions."""
    made = definition("peers", "balancer.example.org", {"type": "object"})
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    older = {"name": "v1beta1", "served": True, "storage": False, "schema": schema}
    made["spec"]["versions"].append(older)
    where = {
        "service": {"namespace": "balancer", "name": "webhook", "path": "/convert", "port": 443}
    }
    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": where}
    made["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    return made
