"""What a delta leads to, read from its blobs; read once for all who keep the same bytes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TypeVar

from controllers.core.blob_reading import BlobReading
from relay.core.effects import WriteMail
from relay.core.records.accepted import read_record
from schemas.content import blobs
from schemas.content.blobs import Reference
from schemas.content.manifest import chunk_references, read_root
from schemas.values.identity import ContentHash
from tests.simulation.host import Host

KNOWN_MAX = 4096
T = TypeVar("T")
COMPRESSED = b"\x01"


def missing(host: Host, write: WriteMail) -> set[str]:
    """What of all that the delta written leads to is not in the host's store."""
    _, delta = read_record(write.data)
    stored, lacks = host.streams.blobs, set[str]()
    for root in delta.body.content if delta.body is not None else ():
        if root.kind != blobs.MANIFEST:
            continue
        if root.address not in stored:
            lacks.add(root.address)
            continue
        for chunk in _chunks(root, stored[root.address]):
            if chunk.address not in stored:
                lacks.add(chunk.address)
            else:
                lacks |= _listed(chunk, stored[chunk.address]) - stored.keys()
    return lacks


def said_in(value: bytes) -> bytes:
    """What a stored value says: bits may differ that no reader of its form minds."""
    size = blobs.BLOB_MAX_BYTES
    return blobs.decompress(value, size) if value[:1] == COMPRESSED else value


def read_stored(reading: BlobReading[T], stored: Mapping[ContentHash, bytes]) -> T:
    """What a reading comes to that finds just these values."""
    wanted = next(reading)
    while True:
        known = [it for it in wanted if it.address in stored]
        found = {it.address: blobs.open_value(it, stored[it.address]) for it in known}
        try:
            wanted = reading.send(found)
        except StopIteration as done:
            result: T = done.value
            return result


def reachable(stored: Mapping[ContentHash, bytes], root: Reference) -> set[str]:
    """The blobs to which a manifest leads, itself included, as far as they are stored."""
    found: set[str] = {root.address}
    for chunk in _chunks(root, stored[root.address]) if root.address in stored else ():
        found.add(chunk.address)
        if chunk.address in stored:
            found |= _listed(chunk, stored[chunk.address])
    return found


@lru_cache(maxsize=KNOWN_MAX)
def _chunks(root: Reference, value: bytes) -> tuple[Reference, ...]:
    return read_root(blobs.open_value(root, value)).chunks


@lru_cache(maxsize=KNOWN_MAX)
def _listed(chunk: Reference, value: bytes) -> frozenset[str]:
    plain = blobs.open_value(chunk, value)
    return frozenset(it.address for it in chunk_references(plain))
