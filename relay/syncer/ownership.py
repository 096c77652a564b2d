"""What an object's managedFields say of one manager: what it holds there, and who else does.

A server writes an object in its own words (`1000m` becomes `1`), adds defaults, and lets others own
fields; so what a manager applied is judged by its own entry: the fields in it, and their values.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from relay.objects.field_owners import MANAGED, entries, parsed_key
from schemas.values import codec
from schemas.values.fields import is_mapping, mappings_at

FIELDS_MAX = 1024
AUTOSCALERS = ("autoscaling", "horizontalpodautoscalers")
AUTOSCALING_MANAGER = "kube-controller-manager"
"""Sets replicas for the autoscalers of a cluster, and for nothing else."""
_ITSELF = "."
_MISSING = object()
_MARK = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class ManagedFields:
    """What a manager holds in an object; all is empty if that is nothing."""

    # A hash of its fields and their values.
    digest: str
    # Four bytes for each field: enough to know one again.
    fields: bytes


NOTHING = ManagedFields("", b"")


def hold_of(obj: Mapping[str, Any], manager: str) -> ManagedFields | None:
    """What the manager applied and holds now; None if the object does not say who holds what."""
    if MANAGED not in obj["metadata"]:
        return None
    fields = _applied_by(obj, manager)
    if not fields:
        return NOTHING
    paths: list[str] = []
    held = _held(fields, obj, "", paths)
    return ManagedFields(codec.digest([fields, held]), marks(paths))


def marks(paths: Iterable[str]) -> bytes:
    """Four bytes for each field path, at most FIELDS_MAX of them."""
    found = sorted({zlib.crc32(path.encode()) for path in paths})
    return b"".join(_MARK.pack(mark) for mark in found[:FIELDS_MAX])


def is_marked(path: str, fields: bytes) -> bool:
    """Whether a field is among those marked; `path` as servers write it, with or without a dot."""
    mark = zlib.crc32(path.removeprefix(_ITSELF).encode())
    return any(mark == held for (held,) in _MARK.iter_unpack(fields))


def taken(obj: Mapping[str, Any], manager: str, fields: bytes) -> dict[str, str]:
    """Fields that the manager once applied and others hold now instead, with one of them each."""
    kept = set(_paths(_applied_by(obj, manager)))
    marked = {mark for (mark,) in _MARK.iter_unpack(fields)}
    lost = {}
    for entry, owned in entries(obj):
        if entry.get("manager") == manager:
            continue
        for path in _paths(owned):
            if path not in kept and zlib.crc32(path.encode()) in marked:
                lost[path] = str(entry.get("manager", ""))
    return lost


def is_newborn(obj: Mapping[str, Any], manager: str) -> bool:
    """Whether no one but the manager ever wrote the object: then it made it just now.

    What admission adds to a new object counts as the manager's.
    """
    writers = [it.get("manager") for it in _listed(obj) if not it.get("subresource")]
    return bool(writers) and all(writer == manager for writer in writers)


def is_shared(obj: Mapping[str, Any], manager: str) -> bool:
    """Whether it is known that others wrote the object, too."""
    return MANAGED in obj["metadata"] and not is_newborn(obj, manager)


def other_managers(obj: Mapping[str, Any], ours: Collection[str]) -> list[str]:
    """Who else writes an object; who writes its status comes first."""
    others = [entry for entry in _listed(obj) if entry.get("manager") not in ours]
    others.sort(key=lambda entry: entry.get("subresource") != "status")
    return list(dict.fromkeys(str(entry.get("manager", "")) for entry in others))


def scaled_by(obj: Mapping[str, Any]) -> str:
    """The controller, no person, that owns spec.replicas by scaling; "" if none does."""
    for entry, owned in entries(obj):
        manager = str(entry.get("manager", ""))
        if entry.get("subresource") != "scale" or manager.startswith("kubectl"):
            continue
        if "spec.replicas" in _paths(owned):
            return manager
    return ""


def scales(autoscaler: Mapping[str, Any], group: str, name: str) -> bool:
    """Whether an autoscaler sets the replicas of the object of this name beside it."""
    match autoscaler.get("spec"):
        case {"scaleTargetRef": {"apiVersion": str(version), "name": str(target)}}:
            return (version.rpartition("/")[0], target) == (group, name)
        case _:
            return False


def counted_path(path: str, count: int) -> str:
    """What is noted of a list with keys: that so many of its items were applied."""
    return f"{path}#{count}"


@dataclass(frozen=True, slots=True)
class OwnedFields:
    """What a manager owns of an object, or of a part of it, as servers say it."""

    manager: str
    # Whether it applied that, and did not merely write it.
    applied: bool
    fields: Mapping[str, Any]

    def below(self, name: str) -> OwnedFields | None:
        """The same of one element; None if it owns nothing in it."""
        found = self.fields.get(name)
        return OwnedFields(self.manager, self.applied, found) if is_mapping(found) else None


def owned_fields(obj: Mapping[str, Any]) -> list[OwnedFields]:
    """What each manager owns of the object, but for what it wrote through a subresource."""
    return [
        OwnedFields(str(entry.get("manager", "")), entry.get("operation") == "Apply", owned)
        for entry, owned in entries(obj)
        if not entry.get("subresource")
    ]


def element_keys(fields: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The items of a list that are owned in these fields: the element, and the item's key."""
    for name in fields:
        keys = parsed_key(name[2:]) if name.startswith("k:") else None
        if isinstance(keys, Mapping) and keys:
            yield name, keys


def item_path(above: str, keys: Mapping[str, Any]) -> str:
    """The path of an item of a list, as servers name it."""
    named = ",".join(f"{key}={json.dumps(value)}" for key, value in sorted(keys.items()))
    return f"{above}[{named}]".removeprefix(_ITSELF)


def _listed(obj: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The entries of all managers, also of those that do not tell their fields."""
    return mappings_at(obj, "metadata", MANAGED)


def _applied_by(obj: Mapping[str, Any], manager: str) -> Mapping[str, Any]:
    for entry, owned in entries(obj):
        applied = entry.get("operation") == "Apply" and not entry.get("subresource")
        if applied and entry.get("manager") == manager:
            return owned
    return {}


def _paths(fields: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """Each field that is owned, as servers name it: `spec.containers[name="main"].image`."""
    for name, below in fields.items():
        if name == _ITSELF:
            yield above
            continue
        path = f"{above}{_step(name)}".removeprefix(_ITSELF)
        if below and is_mapping(below):
            yield from _paths(below, path)
        else:
            yield path


def _step(name: str) -> str:
    """One element of a path."""
    form, _, text = name.partition(":")
    match form:
        case "f":
            return f".{text}"
        case "k":
            keys = parsed_key(text)
            return item_path("", keys if isinstance(keys, Mapping) else {})
        case "v":
            return f"[={json.dumps(parsed_key(text))}]"
        case _:
            return f"[{text}]"


def _held(fields: Mapping[str, Any], held: Any, above: str, paths: list[str]) -> dict[str, Any]:
    """The values of these fields, and as `_paths` their names; what is not there has no value.

    A list with keys also says how many of its items are held.
    """
    found = {}
    if count := sum(name.startswith("k:") for name in fields):
        paths.append(counted_path(above, count))
    for name, below in fields.items():
        if name == _ITSELF:
            paths.append(above)
            continue
        path = f"{above}{_step(name)}".removeprefix(_ITSELF)
        value = _child(name, held)
        if below and is_mapping(below):
            inside = _held(below, value, path, paths)
            if value is not _MISSING:
                found[name] = inside
            continue
        paths.append(path)
        if value is not _MISSING:
            found[name] = value
    return found


def _child(name: str, held: Any) -> Any:
    """What an element of a path leads to, or `_MISSING`."""
    form, _, text = name.partition(":")
    if form == "f":
        return held.get(text, _MISSING) if is_mapping(held) else _MISSING
    items = held if isinstance(held, (list, tuple)) else ()
    sought = parsed_key(text)
    if form == "k" and isinstance(sought, Mapping):
        wanted = sought.items()
        alike = (item for item in items if isinstance(item, Mapping) and wanted <= item.items())
        return next(alike, _MISSING)
    if form == "v":
        return next((item for item in items if item == sought), _MISSING)
    if form == "i" and isinstance(sought, int) and sought < len(items):
        return items[sought]
    return _MISSING
