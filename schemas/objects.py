"""What names a Kubernetes object: its key, group, resource, namespace and name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class ObjectKey:
    """An object in its space: API group ("" is core), resource (lowercase plural), namespace, name.

    The namespace of a cluster-scoped object is "". Keys are ordered field by field.
    """

    group: str
    resource: str
    namespace: str
    name: str

    def __str__(self) -> str:
        kind = f"{self.resource}.{self.group}" if self.group else self.resource
        return "/".join(part for part in (kind, self.namespace, self.name) if part)
