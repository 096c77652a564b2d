"""Which fields of an object on an API server nobody said: that server filled them in.

A manager that updates an object owns the defaults, too. The definition of a custom resource tells
them apart; what such a manager owns of other kinds counts as said.
"""

from __future__ import annotations

from collections.abc import Mapping

from relay.objects.field_owners import is_named, said_fields, unowned
from schemas.crds.structural import Schema, defaults_in
from schemas.objects.objects import Object
from schemas.values.fields import Steps

_NOT_JUDGED = frozenset({"apiVersion", "kind", "metadata", "status"})


def unsaid(obj: Object, sent: Object, definition: Object | None) -> frozenset[Steps]:
    """The fields of what is sent of an object that nobody said."""
    said, at_most = said_fields(obj), said_fields(obj, updates=True)
    if said is None:
        return frozenset()
    parts = {name: value for name, value in sent.items() if name not in _NOT_JUDGED}
    defaults = defaults_in(parts, _schema(definition, str(obj.get("apiVersion"))))
    return frozenset(unowned(at_most, parts)).union(
        steps for steps in defaults if not is_named(said, parts, steps)
    )


def _schema(definition: Object | None, api_version: str) -> Schema:
    """The schema of a version; an empty one if there is none."""
    spec = (definition or {}).get("spec")
    versions = spec.get("versions") if isinstance(spec, Mapping) else None
    for version in versions if isinstance(versions, list | tuple) else ():
        match version:
            case {"name": name, "schema": {"openAPIV3Schema": dict(schema)}}:
                if name == api_version.rpartition("/")[2]:
                    return schema
            case _:
                continue
    return {}
