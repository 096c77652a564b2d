"""What a space serves, as an API server does: kinds and their versions, and what these demand.

Built-in kinds are known by a table, custom ones by the definitions that lie in the space.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from relay.objects.nulls import not_nullable, with_nulls, without_fields
from relay.objects.stored_object import INVALID
from relay.space_errors import NOT_FOUND, SpaceError
from schemas.crds.structural import Schema, pruned, schema_faults, with_defaults
from schemas.objects.objects import (
    ALWAYS_THERE,
    BUILT_IN_KINDS,
    NAMESPACES,
    KindTable,
    ObjectKey,
    definition_of,
    group_of,
    is_definition,
    served_versions,
)
from schemas.values.alike import most_alike
from schemas.values.fields import Steps

NO_KIND = "no matches for kind"
"""What a space says of a kind or version that it does not serve, in kubectl's words."""

Object = dict[str, Any]
_GroupKind = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Serving:
    """The kinds of one space; `custom` holds what each definition says of its kind, by version."""

    table: KindTable = BUILT_IN_KINDS
    custom: Mapping[_GroupKind, Mapping[str, Schema | None]] = field(default_factory=dict)

    def extended_by(self, objects: Iterable[Mapping[str, Any]]) -> Serving:
        """With the kinds that definitions among the objects bring; itself if there is none."""
        definitions = [obj for obj in objects if is_definition(obj)]
        if not definitions:
            return self
        found = [it for it in map(definition_of, definitions) if it is not None]
        custom = {(it.group, it.kind): it.versions for it in found}
        return Serving(self.table.extended_by(definitions), {**self.custom, **custom})

    def brings(self, obj: Mapping[str, Any]) -> bool:
        """Whether a definition tells of the object's kind."""
        return (group_of(obj), str(obj["kind"])) in self.custom

    def admitted(self, obj: Mapping[str, Any]) -> ObjectKey:
        """The key of an object whose kind is served in its version; raises SpaceError."""
        group, kind, said = group_of(obj), str(obj["kind"]), str(obj["apiVersion"])
        if said.rpartition("/")[2] not in self.versions(group, kind):
            told = f'{NO_KIND} "{kind}" in version "{said}"'
            raise SpaceError(NOT_FOUND, f"{told}; {self._remedy(group, kind)}")
        return self.table.key_of(obj)

    def versions(self, group: str, kind: str) -> tuple[str, ...]:
        """The versions in which a kind is served, the preferred one first; empty if it is not."""
        custom = self.custom.get((group, kind))
        return served_versions(group, kind) if custom is None else tuple(custom)

    def wished(self, obj: Mapping[str, Any]) -> Object:
        """What of a wish is kept: no field that its schema does not know; raises SpaceError.

        Nor one that is null, and that may not be. A Secret's `stringData` joins its `data`.
        """
        schema = self._schema(obj)
        if schema is None:
            return without_string_data(obj)
        known = pruned(obj, schema)
        made: Object = without_fields(known, list(not_nullable(known, schema)))
        return made

    def not_nullable(self, obj: Mapping[str, Any]) -> list[Steps]:
        """The fields of the object that are null, though its definition does not let them be."""
        schema = self._schema(obj)
        return [] if schema is None else list(not_nullable(obj, schema))

    def as_written(self, made: Object, wish: Mapping[str, Any]) -> Object:
        """What was made of a wish, with the nulls that it says, where a definition tells of it."""
        schema = self._schema(wish)
        if schema is None:
            return made
        known = {**pruned(wish, schema), "metadata": {}, "status": {}}
        said: Object = with_nulls(made, known)
        return said

    def made_whole(self, key: ObjectKey, obj: Mapping[str, Any]) -> Object:
        """The object with its schema's defaults; raises SpaceError if it is not valid then."""
        schema = self._schema(obj)
        if schema is None:
            return dict(obj)
        said = {name: value for name, value in obj.items() if name != "status"}
        whole = with_defaults(without_fields(said, list(not_nullable(said, schema))), schema)
        if faults := schema_faults(whole, schema):
            told = "; ".join(str(fault) for fault in faults)
            raise SpaceError(INVALID, f"{key}: {told}")
        return {**whole, "status": obj["status"]} if "status" in obj else whole

    def _schema(self, obj: Mapping[str, Any]) -> Schema | None:
        custom = self.custom.get((group_of(obj), str(obj["kind"])))
        return custom.get(str(obj["apiVersion"]).rpartition("/")[2]) if custom else None

    def _remedy(self, group: str, kind: str) -> str:
        """Which kind and version may be meant."""
        if (group, kind) in self.custom and not self.versions(group, kind):
            return "its CustomResourceDefinition serves no version: add one to spec.versions"
        groups = [known for known, name in self._kinds() if name == kind]
        for known in sorted(groups, key=lambda other: other != group):
            for version in self.versions(known, kind):
                return f"write {known}/{version}" if known else f"write {version}"
        names = [name for known, name in self._kinds() if known == group]
        if close := most_alike(kind, names):
            return f'did you mean "{close}"?'
        return "ensure its CustomResourceDefinition is applied first"

    def _kinds(self) -> Iterable[_GroupKind]:
        return (*(kind for kind, _ in self.table.items()), *self.custom)


def without_string_data(obj: Mapping[str, Any]) -> Object:
    """The object, of a Secret `stringData` joined to `data`; raises SpaceError if it is wrong."""
    if (group_of(obj), obj["kind"]) != ("", "Secret"):
        return dict(obj)
    data, plain = obj.get("data") or {}, obj.get("stringData") or {}
    for name, pairs in (("data", data), ("stringData", plain)):
        if not isinstance(pairs, Mapping) or not all(isinstance(it, str) for it in pairs.values()):
            raise SpaceError(INVALID, f"{name}: it is not a mapping of strings; quote its values")
    for key, value in data.items():
        try:
            base64.b64decode("".join(value.split("\n")), validate=True)
        except ValueError as error:
            told = f"data.{key}: illegal base64 data ({error})"
            raise SpaceError(INVALID, f"{told}; write it as stringData, or encode it") from error
    made = {name: value for name, value in obj.items() if name != "stringData"}
    if plain:
        encoded = {key: base64.b64encode(text.encode()).decode() for key, text in plain.items()}
        made["data"] = {**data, **encoded}
    return made


def needs_namespace(key: ObjectKey) -> ObjectKey | None:
    """The Namespace that has to be there for the object to be made; None if none has to."""
    if not key.namespace or key.namespace in ALWAYS_THERE:
        return None
    return ObjectKey(*NAMESPACES, "", key.namespace)


def no_namespace(key: ObjectKey) -> SpaceError:
    """That an object cannot be made, for its Namespace is not there."""
    told = f'{key}: namespaces "{key.namespace}" not found; apply the Namespace first'
    return SpaceError(NOT_FOUND, told)
