"""An orphan becomes a placement again: its objects and its EdgePlacement are written as it says."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from controllers.core.recovery import Orphan
from controllers.ports import CentreRelay
from relay.ports import Space
from schemas import codec
from schemas.api import GROUP, PATH_ANNOTATION, VERSION
from schemas.chunks import (
    CREATE_ONLY,
    WANT_MULTI,
    WANT_SINGLETON,
    ManifestEntry,
    read_manifest_chunk,
    read_root,
)
from schemas.objects import ALWAYS_THERE, BUILT_IN_KINDS, ObjectKey, apply_order
from schemas.records import OVER_LOCATION, DeltaHead, LocationRecord, Profile, Record
from schemas.refusals import CodecError, WireRefused

MANAGER = "leafcast-adopt"


class CannotAdopt(ValueError):
    """What the orphan holds cannot be had, or cannot be said by a placement; says why."""


async def objects_of(relay: CentreRelay, orphan: Orphan, head: DeltaHead) -> list[dict[str, Any]]:
    """All that the orphan says, its EdgePlacement last; raises CannotAdopt."""
    if not head.references or any(alt.over != OVER_LOCATION for alt in head.alternatives):
        raise CannotAdopt(f"{orphan.name}: it says what no EdgePlacement can; withdraw it")
    try:
        root = await relay.load(head.references[0])
        chunks = [await relay.load(chunk) for chunk in read_root(root or b"").chunks]
        entries = [entry for chunk in chunks for entry in read_manifest_chunk(chunk or b"")]
        found = [_read(entry, await relay.load(entry.reference)) for entry in entries]
    except WireRefused as error:
        raise CannotAdopt(f"{orphan.name}: its content is not here any more: {error}") from error
    return [*found, _placement(orphan.name, head, entries)]


def inventory_objects(strangers: Iterable[Record]) -> list[dict[str, Any]]:
    """What another inventory space said, as objects.

    Locations come first, so that whom they select is selected as soon as he is there.
    """
    listed = list(strangers)
    locations = [_location(record) for record in listed if isinstance(record, LocationRecord)]
    return locations + [_target(record) for record in listed if isinstance(record, Profile)]


async def write_back(space: Space, objects: Iterable[Mapping[str, Any]]) -> int:
    """Create what is not there, and leave what is as it is; how many objects. Raises SpaceError.

    Namespaces come with what is in them; they were lost with it.
    """
    listed = list(objects)
    kinds = BUILT_IN_KINDS.extended_by(listed)
    keys = {id(obj): kinds.key_of(obj) for obj in listed}
    for name in sorted({key.namespace for key in keys.values()} - ALWAYS_THERE - {""}):
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        if ObjectKey("", "namespaces", "", name) not in keys.values():
            await space.apply(namespace, MANAGER, create_only=True)
    for obj in sorted(listed, key=lambda obj: _order(keys[id(obj)])):
        await space.apply(dict(obj), MANAGER, create_only=True)
    return len(listed)


def _order(key: ObjectKey) -> tuple[bool, int]:
    """What others lean on first; what sends objects out once they are there."""
    return key.group == GROUP, apply_order(key.group, key.resource)


def _location(record: LocationRecord) -> dict[str, Any]:
    resource = {"group": GROUP, "version": VERSION, "resource": "synctargets"}
    spec: dict[str, Any] = {"resource": resource}
    if record.instance_selector is not None:
        spec["instanceSelector"] = record.instance_selector.to_kubernetes()
    return _of_inventory("Location", record.source.name, record, spec)


def _target(record: Profile) -> dict[str, Any]:
    obj = _of_inventory("SyncTarget", record.source.name, record, {})
    obj["metadata"]["annotations"][PATH_ANNOTATION] = str(record.path)
    return obj


def _of_inventory(
    kind: str, name: str, record: LocationRecord | Profile, spec: dict[str, Any]
) -> dict[str, Any]:
    labels, annotations = dict(record.labels), dict(record.annotations)
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": kind,
        "metadata": {"name": name, "labels": labels, "annotations": annotations},
        "spec": spec,
    }


def _read(entry: ManifestEntry, plain: bytes | None) -> dict[str, Any]:
    if plain is None:
        raise CodecError(str(entry.key), "it is missing")
    value = codec.unpack(plain, entry.size)
    if not isinstance(value, dict):
        raise CodecError(str(entry.key), "it is no object")
    return _as_json(value)  # type: ignore[no-any-return]


def _as_json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _as_json(item) for key, item in value.items()}
    return [_as_json(item) for item in value] if isinstance(value, (list, tuple)) else value


def _placement(name: str, head: DeltaHead, entries: Iterable[ManifestEntry]) -> dict[str, Any]:
    named: dict[tuple[str, str, str, int], list[str]] = defaultdict(list)
    for entry in entries:
        named[entry.group, entry.resource, entry.namespace, entry.flags].append(entry.name)
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "EdgePlacement",
        "metadata": {"name": name},
        "spec": {
            "locationSelectors": [alt.selector.to_kubernetes() for alt in head.alternatives],
            "downsync": [_clause(*what, names) for what, names in sorted(named.items())],
        },
    }


def _clause(
    group: str, resource: str, namespace: str, flags: int, names: list[str]
) -> dict[str, Any]:
    clause: dict[str, Any] = {
        "apiGroup": group,
        "resources": [resource],
        "objectNames": sorted(names),
    }
    if namespace:
        clause["namespaces"] = [namespace]
    wishes = (
        (CREATE_ONLY, "createOnly"),
        (WANT_SINGLETON, "wantSingletonReportedState"),
        (WANT_MULTI, "wantMultiWECReportedState"),
    )
    return clause | {said: True for flag, said in wishes if flags & flag}
