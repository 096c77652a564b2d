"""How many SyncTargets each Location selects, for the table of Locations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from leafcast.show.object_cells import at
from leafcast.show.object_output import ObjectGroup
from schemas.objects.selectors import LabelSelector
from schemas.values.groups import GROUP
from schemas.values.refusals import BadSelector

if TYPE_CHECKING:
    from leafcast.ask.asked_space import AskedSpace


async def with_instances(inventory: AskedSpace, group: ObjectGroup) -> ObjectGroup:
    """The same objects; Locations with `status.instances`, which no one keeps in the space."""
    if group.kind.group_resource != (GROUP, "locations"):
        return group
    listing = await inventory.list(GROUP, "synctargets")
    labels = [obj["metadata"].get("labels") or {} for obj in listing.objects]
    return replace(group, objects=[_counted(obj, labels) for obj in group.objects])


def _counted(
    location: Mapping[str, Any], targets: Sequence[Mapping[str, str]]
) -> Mapping[str, Any]:
    form: Any = at(location, "spec", "instanceSelector")
    try:
        # Without a selector a Location holds nothing; an empty one selects all.
        selector = None if form is None else LabelSelector.from_kubernetes(form)
    except BadSelector:
        return dict(location)
    count = 0 if selector is None else sum(map(selector.matches, targets))
    return {**location, "status": {**(location.get("status") or {}), "instances": count}}
