"""Which objects a placement asks for, written anew: nothing of the controllers' code."""

from __future__ import annotations

from collections.abc import Mapping

from schemas.objects import ObjectKey
from tests.simulation.blind_space import Object

KIND = "edge.kubestellar.io"
NAMESPACES = ("", "namespaces")
CRD = ObjectKey("apiextensions.k8s.io", "customresourcedefinitions", "", "widgets.example.com")


def selected(placement: Object, objects: Mapping[ObjectKey, Object]) -> dict[ObjectKey, Object]:
    """The objects that a placement asks for, and the definitions that they need."""
    found = {}
    for key, obj in objects.items():
        if key.group == KIND or not key.namespace:
            continue
        if any(_matches(clause, key, obj, objects) for clause in placement["spec"]["downsync"]):
            found[key] = obj
    if any(key.resource == "widgets" for key in found) and CRD in objects:
        found[CRD] = objects[CRD]
    return found


def _matches(
    clause: Object, key: ObjectKey, obj: Object, objects: Mapping[ObjectKey, Object]
) -> bool:
    if "namespaces" in clause and key.namespace not in clause["namespaces"]:
        return False
    if "objectNames" in clause and key.name not in clause["objectNames"]:
        return False
    if "labelSelectors" in clause:
        return _labelled(clause["labelSelectors"], obj)
    if "namespaceSelectors" in clause:
        namespace = objects.get(ObjectKey(*NAMESPACES, "", key.namespace))
        return namespace is not None and _labelled(clause["namespaceSelectors"], namespace)
    return True


def _labelled(selectors: list[Object], obj: Object) -> bool:
    labels = obj["metadata"].get("labels", {})
    return any(s["matchLabels"].items() <= labels.items() for s in selectors)
