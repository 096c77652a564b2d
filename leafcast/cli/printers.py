"""Which columns tables of custom kinds have: their definitions say it, here or at an edge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from leafcast.ask.failures import CallFailed
from leafcast.ask.object_readers import NotFound, reader_of
from leafcast.ask.resource_names import ResourceKind
from leafcast.ask.session import Session
from leafcast.show.object_output import TableStyle
from leafcast.show.object_tables import has_columns
from relay.space_errors import SpaceError
from schemas.objects.objects import CRD_GROUP

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
