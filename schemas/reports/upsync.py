"""What comes up from edges: the clauses that name it, and an object's copy as its parent keeps it.

A clause travels in the manifest of its placement. A copy lies at the edge's parent under a hash of
its key; the key stands inside, too, and what reads it compares.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from schemas.content import blobs
from schemas.objects.objects import ObjectKey
from schemas.values import codec
from schemas.values.identity import short_key
from schemas.values.refusals import BlobRefused, CodecError, RecordRefused
from schemas.values.wire import Natural, WireRecord, decode, encode

ANY = "*"
SECRETS = ("", "secrets")


OBJECT_MAX_BYTES = 1024 * 1024
"""Of an object's canonical bytes."""
OBJECT_MAX_VALUES = 100_000
"""Of an object with as many maps and lists: a hundred bytes say them, and take time to open."""
COPY_MAX_BYTES = 1024 * 1024 - 8192
"""Of a copy as it travels: what a server takes, less its headers."""
EDGE_MAX_BYTES = 16 * 1024 * 1024
"""Of all copies of one edge, with what its parent's server keeps beside each."""
EDGE_MAX_OBJECTS = 10_000
COPY_BESIDE_BYTES = 128
"""What a server keeps with a copy, besides its bytes and its subject."""
WRITE_EVERY_SECONDS = 5.0
"""One object is written at most so often."""


class UpsyncClause(WireRecord, frozen=True):
    """Which objects that arise at destinations come up; an empty list admits nothing."""

    group: str
    # Secrets come only if they are named here: `*` does not.
    resources: tuple[str, ...]
    # They say nothing of what is in none.
    namespaces: tuple[str, ...]
    names: tuple[str, ...]

    def admits_kind(self, group: str, resource: str) -> bool:
        """Whether objects of the kind may be meant."""
        if (group, resource) == SECRETS:
            return self.group == group and resource in self.resources
        return self.group == group and _named(self.resources, resource)

    def matches(self, key: ObjectKey) -> bool:
        return (
            self.admits_kind(key.group, key.resource)
            and (not key.namespace or _named(self.namespaces, key.namespace))
            and _named(self.names, key.name)
        )

    @property
    def leaves_secrets_out(self) -> bool:
        """Whether someone may think that Secrets come up by it."""
        return self.group == "" and ANY in self.resources and "secrets" not in self.resources


class Copy(WireRecord, frozen=True):
    """An object of an edge: its key, and its canonical bytes as a blob's value would hold them."""

    key: ObjectKey
    size: Natural
    value: bytes


def copy_key(key: ObjectKey) -> str:
    """The last token of the subject under which an object's copy lies."""
    parts = (key.group, key.resource, key.namespace, key.name)
    return str(short_key(hashlib.sha256("\0".join(parts).encode()).digest()[:20]))


def encode_copy(key: ObjectKey, obj: Mapping[str, Any]) -> bytes:
    """The bytes of a copy; raises CodecError of what cannot be said, or is too large."""
    plain = codec.canonical(obj)
    if len(plain) > OBJECT_MAX_BYTES:
        raise CodecError("", f"{len(plain)} bytes, at most {OBJECT_MAX_BYTES} of an object come up")
    codec.check_holders(plain, OBJECT_MAX_VALUES)
    data = encode(Copy(key, len(plain), blobs.compress(plain)))
    if len(data) > COPY_MAX_BYTES:
        raise CodecError("", f"{len(data)} bytes, at most {COPY_MAX_BYTES} are sent")
    return data


def read_copy(data: bytes, at: str = "") -> Copy:
    """A copy without its object opened; raises RecordRefused, also if it lies `at` another key."""
    copy = decode(Copy, data, COPY_MAX_BYTES)
    if copy.size > OBJECT_MAX_BYTES:
        raise RecordRefused(f"Copy: {copy.size} bytes, at most {OBJECT_MAX_BYTES}")
    if at and copy_key(copy.key) != at:
        raise RecordRefused("Copy: it lies under the key of another object")
    return copy


def open_copy(copy: Copy) -> dict[str, Any]:
    """The object; raises RecordRefused if it is none, or not the one that the key names."""
    try:
        plain = blobs.decompress(copy.value, copy.size)
        codec.check_holders(plain, OBJECT_MAX_VALUES)
        obj = codec.unpack(plain, OBJECT_MAX_BYTES, deepest=codec.DEPTH_MAX + 1)
    except (BlobRefused, CodecError) as error:
        raise RecordRefused(f"Copy: {error}") from error
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    if not isinstance(metadata, dict):
        raise RecordRefused("Copy: it is no object")
    said = (metadata.get("namespace") or "", metadata.get("name"))
    if said != (copy.key.namespace, copy.key.name):
        raise RecordRefused("Copy: the object has another name than its key")
    found: dict[str, Any] = obj
    return found


def _named(wanted: tuple[str, ...], value: str) -> bool:
    return value in wanted or ANY in wanted
