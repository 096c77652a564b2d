"""What tables need besides the objects: columns of custom kinds, SyncTargets of each Location."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from leafcast.ask.failures import CallFailed
from leafcast.ask.object_readers import NotFound, reader_of
from leafcast.ask.resource_names import ResourceKind
from leafcast.ask.session import Session
from leafcast.show.object_cells import at
from leafcast.show.object_output import ObjectGroup, TableStyle
from leafcast.show.object_tables import has_columns
from relay.space_errors import SpaceError
from schemas.objects.objects import CRD_GROUP
from schemas.objects.selectors import LabelSelector
from schemas.values.groups import GROUP
from schemas.values.refusals import BadSelector

if TYPE_CHECKING:
    from leafcast.ask.asked_space import AskedSpace


_DEFINITIONS = ResourceKind(
    CRD_GROUP, "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)


async def learn_columns(
    session: Session, style: TableStyle, kinds: Iterable[tuple[ResourceKind, str]], at: str | None
) -> None:
    """Note the columns of those kinds that are defined, each with the version that is shown.

    An edge is asked for what the centre does not know. Who is not told shows NAME and AGE.
    """
    for kind, version in kinds:
        if kind in style.printers or not kind.group or has_columns(*kind.group_resource):
            continue
        definition = await _definition(session, kind, at)
        if definition is not None:
            # Here, as most kinds are built in.
            from leafcast.show.printer_columns import printer_columns  # noqa: PLC0415

            style.printers[kind] = printer_columns(definition, version)


def version_of(obj: Mapping[str, Any]) -> str:
    """The version of an object's API."""
    return str(obj.get("apiVersion") or "").rpartition("/")[2]


async def _definition(
    session: Session, kind: ResourceKind, at: str | None
) -> Mapping[str, Any] | None:
    for place in [None] if at is None else [None, at]:
        reader = reader_of(session, place)
        try:
            found: Mapping[str, Any] = await reader.get(_DEFINITIONS, "", kind.qualified)
        except (NotFound, CallFailed, SpaceError):
            continue
        return found
    return None


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
