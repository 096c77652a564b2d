"""The inventory of a simulated centre: a space of SyncTargets and Locations, as people write it."""

from __future__ import annotations

from relay.space_port import Object
from schemas.objects.objects import ObjectKey
from schemas.objects.selectors import LabelSelector
from schemas.values.groups import GROUP, PATH_ANNOTATION
from tests.doubles.memory_space import MemorySpace
from tests.simulation.model import INVENTORY, Located, Target
from tests.simulation.space import now

USER = "user"
VERSION = "v2alpha1"
API = f"{GROUP}/{VERSION}"
RESOURCE = {"group": GROUP, "version": VERSION, "resource": "synctargets"}


class InventorySpace(MemorySpace):
    """A space under the name by which the model knows it."""

    async def identity(self) -> str:
        return INVENTORY

    def put_target(self, target: Target) -> str:
        """Write a SyncTarget; its uid."""
        annotations = {**target.annotations, PATH_ANNOTATION: str(target.path)}
        metadata = {"name": target.name, "labels": dict(target.labels), "annotations": annotations}
        return self._write("SyncTarget", metadata, {})

    def put_location(self, name: str, located: Located) -> None:
        spec: Object = {"resource": RESOURCE}
        if located.instances is not None:
            spec["instanceSelector"] = said_of(located.instances)
        self._write("Location", {"name": name, "labels": dict(located.labels)}, spec)

    def remove(self, resource: str, name: str) -> None:
        now(self.delete(ObjectKey(GROUP, resource, "", name)))

    def _write(self, kind: str, metadata: Object, spec: Object) -> str:
        said = {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": kind,
            "metadata": metadata,
            "spec": spec,
        }
        written: Object = now(self.apply(said, USER))
        return str(written["metadata"]["uid"])


def said_of(selector: LabelSelector) -> Object:
    """A selector as Kubernetes writes it."""
    listed: list[Object] = []
    for it in selector.requirements:
        values = {"values": list(it.values)} if it.values else {}
        listed.append({"key": it.key, "operator": it.operator, **values})
    return {"matchExpressions": listed} if listed else {}
