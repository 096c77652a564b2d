"""What becomes of an object that is written: its metadata, its generation, the wishes it came of.

All of an embedded space that is not storage; shared by every implementation of one.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from relay.objects.merge import (
    Object,
    changed_fields,
    fields_said,
    merge_applied,
    same,
    says,
    wish_of,
    withdrawn,
    without_nulls,
)
from relay.space_errors import Conflict, FieldConflict, SpaceError
from schemas.content.blobs import BLOB_MAX_BYTES, OBJECT_MAX_BYTES
from schemas.objects.objects import ObjectKey, validate_object
from schemas.values import codec
from schemas.values.faults import InvalidObject
from schemas.values.fields import mapping_at
from schemas.values.refusals import CodecError

CONFLICT, INVALID, TOO_LARGE = "Conflict", "Invalid", "RequestEntityTooLarge"


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object as it lies in a space: without its resourceVersion, which is where it lies."""

    object: Object
    # The fields that each manager applied last.
    applied_fields: Mapping[str, Object] = field(default_factory=dict)
    # The revision at which it was created; 0 is this one.
    created_at: int = 0


class CreationTracker:
    """Tells one watcher which change is the first it can have seen of an object."""

    def __init__(self, since: int) -> None:
        self._since = since
        self._seen: set[ObjectKey] = set()

    def change(self, key: ObjectKey, held: StoredObject) -> Literal["added", "modified"]:
        if 0 < held.created_at <= self._since or key in self._seen:
            return "modified"
        self._seen.add(key)
        return "added"

    def deleted(self, key: ObjectKey) -> None:
        self._seen.discard(key)


def admit(obj: Mapping[str, Any]) -> None:
    """Check what every object needs; raises SpaceError (Invalid) with the field and the remedy."""
    try:
        validate_object(obj)
    except InvalidObject as error:
        raise SpaceError(INVALID, str(error)) from error


def _check_version(key: ObjectKey, wish: Mapping[str, Any], revision: int | None) -> None:
    """Hold a caller to the resourceVersion it named, if it did; raises Conflict."""
    version = wish["metadata"].get("resourceVersion")
    if version and version != (str(revision) if revision else ""):
        now = f"is at {revision}" if revision else "is gone"
        raise Conflict(CONFLICT, f"{key}: written for version {version}, and {now}: read it again")


def _contested(
    held: StoredObject, wish: Mapping[str, Any], manager: str
) -> dict[tuple[str, ...], list[str]]:
    """Fields that the wish would change and others said, with who did."""
    if held.applied_fields.keys() <= {manager}:
        return {}
    wanted = wish_of(wish)
    for name in ("apiVersion", "kind"):
        wanted.pop(name, None)
    found = {}
    for _, fields in changed_fields(held.object, wanted):
        others = [
            who
            for who, said in held.applied_fields.items()
            if who != manager and says(said, fields)
        ]
        if others:
            found[fields] = others
    return found


def _without(
    applied_fields: Mapping[str, Object], taken: Mapping[tuple[str, ...], list[str]]
) -> dict[str, Object]:
    """What managers said, less what was taken from them: it is not theirs to take out any more."""
    left = dict(applied_fields)
    for fields, others in taken.items():
        for who in others:
            left[who] = withdrawn(left[who], fields)
    return left


def check_size(key: ObjectKey, size: int, limit: int) -> None:
    """Hold an object to a limit in bytes; raises SpaceError (RequestEntityTooLarge)."""
    if size > limit:
        said = f"{key}: {size} bytes, at most {limit} fit: split it, or keep less in it"
        raise SpaceError(TOO_LARGE, said)


def check_uid(key: ObjectKey, held: StoredObject | None, uid: str) -> None:
    """Hold a caller to the uid it named, if it did; raises Conflict."""
    actual = held.object["metadata"]["uid"] if held else ""
    if uid and uid != actual:
        now = f"its uid is {actual}, not {uid}: it is another object" if held else f"{uid} is gone"
        raise Conflict(CONFLICT, f"{key}: {now}")


def applied(  # noqa: PLR0913 - what is there, what is wished, and by whom
    key: ObjectKey,
    held: StoredObject | None,
    revision: int,
    wish: Mapping[str, Any],
    manager: str,
    *,
    uid: str,
    now_ms: int,
    force: bool = True,
    whole: Callable[[ObjectKey, Object], Object] = lambda _, obj: obj,
    as_written: Callable[[Object], Object] | None = None,
) -> StoredObject:
    """The object after this manager's wish; `held` itself if nothing differs.

    `revision` is where `held` lies; `uid` is for an object that is new; `whole` makes of what is
    said what is kept, and `as_written` puts in the nulls that the wish says. Raises SpaceError,
    and FieldConflict, unless by force, if others said fields that it would change.
    """
    _check_version(key, wish, revision if held else None)
    check_uid(key, held, wish["metadata"].get("uid", ""))
    said = fields_said(wish)
    if held is None:
        fresh = whole(key, _named(wish_of(wish), key))
        stamps = {"uid": uid, "creationTimestamp": timestamp(now_ms), "generation": 1}
        fresh["metadata"] |= stamps
        fresh = as_written(fresh) if as_written is not None else fresh
        return StoredObject(_canonical(key, fresh), {manager: said})
    contested = _contested(held, wish, manager)
    if contested and not force:
        managers = {".".join(path): who[0] for path, who in contested.items()}
        named = ", ".join(f"{path} (by {said_by})" for path, said_by in sorted(managers.items()))
        told = f"{key}: others own fields that this would change: {named}"
        raise FieldConflict(CONFLICT, told, managers)
    others = _without(held.applied_fields, contested)
    # Nulls are what the last wish says: one that is said no more is gone.
    there = held.object if as_written is None else without_nulls(held.object)
    merged = merge_applied(there, held.applied_fields.get(manager, {}), wish)
    merged = whole(key, _named(merged, key, held.object))
    merged = _canonical(key, as_written(merged) if as_written is not None else merged)
    if same(merged, held.object) and same(said, held.applied_fields.get(manager)):
        return held
    if not same(_spec(merged), _spec(held.object)):
        merged["metadata"]["generation"] = held.object["metadata"].get("generation", 0) + 1
    return StoredObject(merged, {**others, manager: said}, held.created_at or revision)


def disowned(
    key: ObjectKey,
    held: StoredObject,
    revision: int,
    *,
    uid: str,
    managers: Collection[str],
    marks: Collection[str],
) -> StoredObject:
    """The object with nothing said by these managers, and without these labels and annotations.

    All else stays. Raises SpaceError if it is another object.
    """
    check_uid(key, held, uid)
    metadata = dict(held.object["metadata"])
    for name in ("labels", "annotations"):
        said = metadata.pop(name, None) or {}
        if kept := {mark: value for mark, value in said.items() if mark not in marks}:
            metadata[name] = kept
    left = {name: said for name, said in held.applied_fields.items() if name not in managers}
    changed = _canonical(key, {**held.object, "metadata": metadata})
    return StoredObject(changed, left, held.created_at or revision)


def replaced(
    key: ObjectKey,
    held: StoredObject,
    revision: int,
    wish: Mapping[str, Any],
    whole: Callable[[ObjectKey, Object], Object],
) -> StoredObject:
    """The object as it is wished whole, with its own status; `held` itself if it is that already.

    Raises Conflict if it is at another version than the wish names.
    """
    _check_version(key, wish, revision)
    check_uid(key, held, wish["metadata"].get("uid", ""))
    made = _named(wish_of(wish), key, held.object)
    stamps = ("uid", "creationTimestamp", "generation")
    own = held.object["metadata"]
    made["metadata"] |= {name: own[name] for name in stamps if name in own}
    if "status" in held.object:
        made["status"] = held.object["status"]
    made = _canonical(key, whole(key, made))
    if same(made, held.object):
        return held
    if not same(_spec(made), _spec(held.object)):
        made["metadata"]["generation"] = own.get("generation", 0) + 1
    fields = {who: _still_there(said, made) for who, said in held.applied_fields.items()}
    return StoredObject(made, fields, held.created_at or revision)


def _still_there(said: Object, obj: Mapping[str, Any]) -> Object:
    """What a manager said, less what the object has no more."""
    left: dict[str, Any] = {}
    for name, below in said.items():
        if name not in obj:
            continue
        nested = isinstance(below, Mapping) and isinstance(obj[name], Mapping)
        left[name] = _still_there(dict(below), obj[name]) if nested else below
    return left


def with_labels(
    key: ObjectKey,
    held: StoredObject,
    revision: int,
    labels: Mapping[str, str | None],
    manager: str,
) -> StoredObject:
    """The object with these labels set or taken off; `held` itself if it has them so already.

    They are this manager's then, and nobody else's. Raises SpaceError.
    """
    before = labels_of(held.object)
    changed = {name: value for name, value in labels.items() if before.get(name) != value}
    if not changed:
        return held
    after = {**before, **changed}
    kept = {name: value for name, value in after.items() if value is not None}
    metadata = {name: said for name, said in held.object["metadata"].items() if name != "labels"}
    if kept:
        metadata["labels"] = kept
    obj = {**held.object, "metadata": metadata}
    admit(obj)
    fields = {who: _unlabelled(said, changed) for who, said in held.applied_fields.items()}
    mine = dict.fromkeys((name for name, value in changed.items() if value is not None), 0)
    if mine:
        said = fields.get(manager, {})
        about = said.get("metadata", {})
        whole = {**about, "labels": {**about.get("labels", {}), **mine}}
        fields[manager] = {**said, "metadata": whole}
    return StoredObject(_canonical(key, obj), fields, held.created_at or revision)


def _unlabelled(said: Object, labels: Mapping[str, str | None]) -> Object:
    """What a manager said, less these labels."""
    for name in labels:
        path = ("metadata", "labels", name)
        if says(said, path):
            said = withdrawn(said, path)
    return said


def with_status(
    key: ObjectKey, held: StoredObject, revision: int, status: Mapping[str, Any]
) -> StoredObject:
    """The object with another status and nothing else changed; `held` itself if it is the same."""
    # The rest was read from canonical bytes before.
    said, before = _canonical(key, {"status": status}), held.object.get("status")
    if before == said["status"] and same(before, status):
        return held
    changed = dict(sorted({**held.object, **said}.items()))
    check_size(key, len(codec.pack(changed)), OBJECT_MAX_BYTES)
    return replace(held, object=changed, created_at=held.created_at or revision)


def at_revision(held: StoredObject, revision: int) -> Object:
    """The object as readers see it, with its resourceVersion unless that is 0: nowhere.

    Itself and its metadata are copies; what is below is shared, and nobody changes it.
    """
    metadata = dict(held.object["metadata"])
    if revision:
        metadata["resourceVersion"] = str(revision)
    return {**held.object, "metadata": metadata}


def encode(held: StoredObject) -> bytes:
    """Bytes of the object and of what its managers said."""
    return codec.pack([1, held.object, dict(held.applied_fields), held.created_at])


def decode(data: bytes) -> StoredObject:
    """What `encode` wrote; raises CodecError."""
    match codec.unpack(data, 2 * BLOB_MAX_BYTES, lists=True):
        case [1, dict(obj), dict(said), int(born)] if isinstance(obj.get("metadata"), dict):
            return StoredObject(obj, said, born)
        case _:
            raise CodecError("", "not an object at rest of version 1")


def labels_of(obj: Mapping[str, Any]) -> dict[str, str]:
    """The object's labels, none if it has none."""
    return dict(mapping_at(obj, "metadata", "labels"))


def timestamp(now_ms: int) -> str:
    """Kubernetes' form of a moment, to the second: 2026-01-31T12:00:00Z."""
    moment = dt.datetime.fromtimestamp(now_ms // 1000, tz=dt.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def uid_from(entropy: bytes) -> str:
    """A uid, in the form of a version 4 UUID, from 16 random bytes."""
    raw = bytearray(entropy[:16])
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    text = raw.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def _spec(obj: Mapping[str, Any]) -> Object:
    """All whose change bumps the generation: everything but metadata and status."""
    return {name: value for name, value in obj.items() if name not in ("metadata", "status")}


def _named(obj: Object, key: ObjectKey, held: Mapping[str, Any] | None = None) -> Object:
    """The object under its key: the namespace it lives in, its kind even if a wish lost it."""
    metadata = obj.setdefault("metadata", {})
    metadata["name"] = key.name
    metadata.pop("namespace", None)
    if key.namespace:
        metadata["namespace"] = key.namespace
    for name in ("apiVersion", "kind"):
        if held is not None and name not in obj:
            obj[name] = held[name]
    return obj


def _canonical(key: ObjectKey, obj: Object) -> Object:
    """The object as it reads back from its canonical bytes; raises SpaceError."""
    try:
        plain = codec.canonical(obj)
    except CodecError as error:
        raise SpaceError(INVALID, f"{key}: {error}") from error
    check_size(key, len(plain), OBJECT_MAX_BYTES)
    read: Object = codec.unpack(plain, OBJECT_MAX_BYTES, lists=True)
    return read
