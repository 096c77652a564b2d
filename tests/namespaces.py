"""Objects for tests, with the Namespaces that they lie in: no space takes one without."""

from collections.abc import Iterable, Mapping
from typing import Any

from relay.space_port import Space
from schemas.objects.objects import ALWAYS_THERE, ObjectKey


def namespace_of(obj: Mapping[str, Any]) -> str:
    """The Namespace that has to be there before the object; "" if none has to."""
    name = obj["metadata"].get("namespace", "")
    return "" if name in ALWAYS_THERE else name


async def apply_in_namespaces(
    space: Space, objects: Iterable[Mapping[str, Any]], manager: str
) -> None:
    """Apply the objects in their order; a Namespace that is missing is made first."""
    for obj in objects:
        name = namespace_of(obj)
        if name and await space.get(ObjectKey("", "namespaces", "", name)) is None:
            await space.apply(namespace_object(name), manager)
        await space.apply(dict(obj), manager)


def namespace_object(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
