"""What of a space is followed: the kinds that placements may select."""

from __future__ import annotations

from collections.abc import Iterable

from controllers.core.workloads.selection import KindScope
from controllers.core.workloads.space import CONTROL_KINDS
from relay.space_port import Interest, Kind, Object, Space
from schemas.objects.objects import GroupResource, ObjectKey

CONTROL = frozenset(Interest(*kind) for kind in CONTROL_KINDS)
"""What is followed whatever placements say."""
EVERYTHING = KindScope(None, frozenset(), "", by_labels=False)
_VERBS_NEEDED = frozenset({"list", "watch"})


async def listed_objects(
    space: Space, group: str, resource: str, namespace: str = ""
) -> dict[ObjectKey, Object]:
    """The objects of a kind, by key; raises SpaceError."""
    listing = await space.list(group, resource, namespace=namespace)
    found = {}
    for obj in listing.objects:
        metadata = obj["metadata"]
        key = ObjectKey(group, resource, metadata.get("namespace") or "", metadata["name"])
        found[key] = obj
    return found


def kinds_of(keys: Iterable[ObjectKey]) -> dict[GroupResource, Kind]:
    """The kinds of objects, of which nothing more is known: whether they are served, say."""
    return {
        key.group_resource: Kind(key.group, "", key.resource, "", namespaced=bool(key.namespace))
        for key in keys
    }


def interests_of(reaches: Iterable[KindScope], kinds: Iterable[Kind]) -> frozenset[Interest]:
    """What to follow of a space that serves these kinds; of some, metadata tells enough."""
    found = set()
    for kind in kinds:
        may = [
            reach
            for reach in reaches
            if reach.covers(kind.group, kind.resource, namespaced=kind.namespaced)
        ]
        name = kind.group_resource
        if may and name not in CONTROL_KINDS and (not kind.verbs or kind.verbs >= _VERBS_NEEDED):
            by_labels = all(reach.by_labels for reach in may)
            found.add(Interest(*name, metadata_only=by_labels))
    return frozenset(found)
