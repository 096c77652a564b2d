"""Who signed one object of an edge: from a signed message to the object's hash. Pure.

The message names its body by a hash, the body a manifest, that a chunk, and the chunk lists the
object with its address. In a sealed tree who lacks the placement's key sees only that the address
is listed, and not of what.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from schemas.content import blobs
from schemas.content.manifest import (
    ManifestEntry,
    chunk_references,
    read_manifest_chunk,
    read_root,
)
from schemas.content.sealing import SealingKey
from schemas.objects.objects import ObjectKey
from schemas.records.records import DeltaBody, DeltaHead, decode_body
from schemas.records.signing import Envelope
from schemas.values.codec import address
from schemas.values.identity import ContentHash, TreeId
from schemas.values.refusals import WireRefused


@dataclass(frozen=True, slots=True)
class ShownList:
    """What leads from the message of one placement to an object, as a node shows it."""

    manifest: bytes
    chunk: bytes
    address: ContentHash
    # The placement's key (16 bytes), of whoever has it.
    key: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class ObjectProof:
    """An object, and what leads to it from each message of a proof, in their order."""

    key: ObjectKey
    lists: tuple[ShownList, ...]


@dataclass(frozen=True, slots=True)
class ListChecked:
    """What a placement delivers as an object; `refused` says why nobody signed that."""

    manifest: str
    address: ContentHash
    # None if it is refused, or sealed and without its key.
    entry: ManifestEntry | None = None
    sealed_under: SealingKey | None = None
    # Whether what the address is of is the node's word alone.
    is_closed: bool = False
    refused: str = ""


def sealing_id(shown: ShownList) -> bytes:
    """What the key is called that it is sealed under; empty in clear. Raises RecordRefused."""
    return read_root(shown.manifest).key


def check_list(
    tree: TreeId, envelope: Envelope, head: DeltaHead, key: ObjectKey, shown: ShownList
) -> ListChecked:
    """Follow a message, whose signature others check, to an object."""
    manifest = address(blobs.MANIFEST, shown.manifest)
    try:
        if envelope.body is None:
            return ListChecked(manifest, shown.address, refused="its message has no body")
        body = decode_body(head, envelope.body)
        if manifest not in _arms(body):
            said = "its body names another manifest"
            return ListChecked(manifest, shown.address, refused=said)
        return _followed(tree, manifest, key, shown)
    except WireRefused as error:
        said = f"what leads to the object cannot be read: {error}"
        return ListChecked(manifest, shown.address, refused=said)


def _arms(body: DeltaBody) -> frozenset[ContentHash]:
    return frozenset(gate.arm.address for gate in body.gates if gate.arm is not None)


def _followed(tree: TreeId, manifest: ContentHash, key: ObjectKey, shown: ShownList) -> ListChecked:
    """From a manifest that the body names on; raises WireRefused."""
    root = read_root(shown.manifest)
    if address(blobs.MANIFEST_CHUNK, shown.chunk) not in {it.address for it in root.chunks}:
        said = "its manifest names no such part"
        return ListChecked(manifest, shown.address, refused=said)
    sealed_under = SealingKey(tree, shown.key) if root.key and shown.key else None
    if root.key and sealed_under is None:
        listed = {it.address for it in chunk_references(shown.chunk)}
        refused = "" if shown.address in listed else "its manifest does not list the address"
        return ListChecked(manifest, shown.address, is_closed=True, refused=refused)
    found = [it for it in read_manifest_chunk(shown.chunk, sealed_under) if it.key == key]
    if not found or found[0].address != shown.address:
        said = f"its manifest does not list {key} with this address"
        return ListChecked(manifest, shown.address, refused=said)
    return ListChecked(manifest, shown.address, found[0], sealed_under)
