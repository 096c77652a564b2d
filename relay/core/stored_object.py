"""What becomes of an object that is written: its metadata, its generation, the wishes it came of.

All of an embedded space that is not storage; shared by every implementation of one.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from relay.core.merge import Object, copied, fields_said, merge_applied, same, wish_of
from schemas import codec, names
from schemas.blobs import BLOB_MAX_BYTES
from schemas.objects import ObjectKey

NOT_FOUND, CONFLICT, INVALID = "NotFound", "Conflict", "Invalid"
TOO_LARGE = "RequestEntityTooLarge"


class Refused(ValueError):
    """A write that does not go; `reason` is a Kubernetes-like word, `message` its prose."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object as it lies in a space: without its resourceVersion, which is where it lies.

    `said` holds the fields each manager said last, `born` the revision it was created at (0: this
    one).
    """

    object: Object
    said: Mapping[str, Object] = field(default_factory=dict)
    born: int = 0


def admit(obj: Mapping[str, Any]) -> None:
    """Check what every object needs; raises Refused (Invalid), naming the field and the remedy."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, Mapping):
        raise Refused(INVALID, "metadata: missing; an object needs metadata.name")
    for name, value in (("apiVersion", obj.get("apiVersion")), ("kind", obj.get("kind"))):
        if not isinstance(value, str) or not value:
            raise Refused(INVALID, f"{name}: missing; write it as a string")
    name = metadata.get("name")
    if not isinstance(name, str) or names.path_segment_fault(name):
        raise Refused(INVALID, f"metadata.name: {name!r}: a name is {names.PATH_SEGMENT_RULE}")


def check_version(key: ObjectKey, wish: Mapping[str, Any], revision: int | None) -> None:
    """Hold a caller to the resourceVersion it named, if it did; raises Refused (Conflict)."""
    version = wish["metadata"].get("resourceVersion")
    if version and version != (str(revision) if revision else ""):
        now = f"is at {revision}" if revision else "is gone"
        raise Refused(CONFLICT, f"{key}: written for version {version}, and {now}: read it again")


def check_uid(key: ObjectKey, held: StoredObject, uid: str) -> None:
    """Hold a caller to the uid it named, if it did; raises Refused (Conflict)."""
    if uid and uid != held.object["metadata"]["uid"]:
        actual = held.object["metadata"]["uid"]
        raise Refused(CONFLICT, f"{key}: its uid is {actual}, not {uid}: it is another object")


def applied(
    held: StoredObject | None,
    revision: int | None,
    wish: Mapping[str, Any],
    manager: str,
    *,
    uid: str,
    now_ms: int,
) -> StoredObject:
    """The object after this manager's wish; `held` itself if nothing differs.

    `uid` is for an object that is new, `revision` where `held` lies.
    """
    said = fields_said(wish)
    if held is None:
        fresh = wish_of(wish)
        fresh["metadata"] |= {
            "uid": uid,
            "creationTimestamp": timestamp(now_ms),
            "generation": 1,
        }
        return StoredObject(_canonical(fresh), {manager: said})
    merged = _canonical(merge_applied(held.object, held.said.get(manager, {}), wish))
    if same(merged, held.object) and same(said, held.said.get(manager)):
        return held
    if not same(_spec(merged), _spec(held.object)):
        merged["metadata"]["generation"] = held.object["metadata"].get("generation", 0) + 1
    return StoredObject(merged, {**held.said, manager: said}, held.born or revision or 0)


def with_status(held: StoredObject, revision: int, status: Mapping[str, Any]) -> StoredObject:
    """The object with another status and nothing else changed; `held` itself if it is the same."""
    if same(held.object.get("status"), status):
        return held
    changed = _canonical({**held.object, "status": status})
    return replace(held, object=changed, born=held.born or revision)


def at_revision(held: StoredObject, revision: int) -> Object:
    """The object as readers see it: a copy, with its resourceVersion."""
    shown: Object = copied(held.object)
    shown["metadata"]["resourceVersion"] = str(revision)
    return shown


def encode(held: StoredObject) -> bytes:
    """Bytes of the object and of what its managers said."""
    return codec.pack([1, held.object, dict(held.said), held.born])


def decode(data: bytes) -> StoredObject:
    """What `encode` wrote; raises codec.CodecError."""
    match codec.unpack(data, 2 * BLOB_MAX_BYTES):
        case [1, dict(obj), dict(said), int(born)]:
            return StoredObject(copied(obj), copied(said), born)
        case _:
            raise codec.CodecError("", "not an object at rest of version 1")


def timestamp(now_ms: int) -> str:
    """Kubernetes' form of a moment, to the second: 2026-01-31T12:00:00Z."""
    moment = datetime.datetime.fromtimestamp(now_ms // 1000, tz=datetime.timezone.utc)
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


def _canonical(obj: Object) -> Object:
    """The object as it reads back from its canonical bytes; raises Refused (Invalid)."""
    try:
        plain = codec.canonical(obj)
    except codec.CodecError as error:
        raise Refused(INVALID, str(error)) from error
    read: Object = copied(codec.unpack(plain, 2 * BLOB_MAX_BYTES))
    return read
