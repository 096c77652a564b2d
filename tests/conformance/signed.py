"""Keys, records, messages and snapshots of one tree, as the vectors have them."""

from __future__ import annotations

import hashlib
from typing import Any

from relay.core.records.tree import SnapshotTree
from schemas.content import blobs
from schemas.content.blobs import Reference
from schemas.objects.selectors import LabelSelector, Requirement
from schemas.records import snapshots
from schemas.records.records import (
    Alternative,
    DeltaBody,
    DeltaHead,
    Gate,
    KeyGrant,
    KeysRecord,
    LocationRecord,
    NodeRecord,
    Profile,
    Record,
    RootKey,
    Source,
    body_of,
    encode_payload,
)
from schemas.records.roots import keys_envelope
from schemas.records.signing import Envelope, RecordKind, Signer
from schemas.values import codec
from schemas.values.identity import DestinationId, KeyId, NodePath, TreeId
from schemas.values.wire import replace
from tests.conformance.forms import Json

TREE, OTHER_TREE = TreeId("a" * 26), TreeId("b" * 26)
SIGNER, SECOND, REVOKED, NARROW, STRANGER = (
    Signer(TREE, KeyId(letter * 26), letter.encode() * 32) for letter in "swxyz"
)
ROOTS = tuple(Signer(TREE, KeyId(letter * 26), letter.encode() * 32) for letter in "klmn")
KINDS = ("delta", "profile", "location", "node", "snapshot", "ask")
TERM = "5465726d5465726d"
PROD = LabelSelector((Requirement("env", "In", ("prod",)),))
HERE, BELOW = NodePath.parse("/emea"), NodePath.parse("/emea/s1")
MANIFEST = Reference("manifest", codec.address("manifest", b"m"), 1)
BODY = DeltaBody((MANIFEST,), (Gate(MANIFEST),))
PLACEMENT = Source("edge.kubestellar.io/EdgePlacement", "wds", "", "shop")
LOCATION = Source("edge.kubestellar.io/Location", "inv", "", "prod")


def delta(generation: int = 200, **changes: Any) -> DeltaHead:
    hashed = hashlib.sha256(BODY.encode()).digest()
    alternatives = (Alternative("location", PROD, "inv"),)
    return replace(
        DeltaHead(PLACEMENT, generation, TERM, "trace-1", hashed, alternatives, 0), **changes
    )


def location(generation: int = 200) -> LocationRecord:
    return LocationRecord(LOCATION, generation, TERM, "", {"env": "prod"}, {"note": "a"}, PROD)


def profile(path: NodePath = BELOW, generation: int = 200) -> Profile:
    source = Source("edge.kubestellar.io/SyncTarget", "inv", "", path.name)
    who = DestinationId(f"inv-mb-{path.name}")
    return Profile(source, generation, TERM, "", who, path, {"env": "prod"}, {}, {"p": "q"})


def node(path: NodePath = BELOW, generation: int = 200) -> NodeRecord:
    return NodeRecord(
        Source("leafcast.io/Node", TREE, "", str(path)), generation, TERM, "", path, "U"
    )


def keys(generation: int = 100, **changes: Any) -> KeysRecord:
    grants = (
        KeyGrant(SIGNER.key_id, SIGNER.public_key, KINDS),
        KeyGrant(SECOND.key_id, SECOND.public_key, KINDS, first=150, last=250),
        KeyGrant(REVOKED.key_id, REVOKED.public_key, ()),
        KeyGrant(NARROW.key_id, NARROW.public_key, KINDS, path=BELOW),
    )
    made = KeysRecord(Source("leafcast.io/Keys", TREE, "", "keys"), generation, TERM, "", grants)
    return replace(made, **changes)


def root_keys(*roots: Signer) -> tuple[RootKey, ...]:
    return tuple(RootKey(root.key_id, root.public_key) for root in roots)


def message(kind: RecordKind, record: Record, signer: Signer = SIGNER) -> Envelope:
    body = BODY.encode() if kind == "delta" else body_of(record)
    return signer.seal(kind, encode_payload(record), body)


def signed_keys(record: KeysRecord, *signers: Signer, led: tuple[Envelope, ...] = ()) -> Envelope:
    payload = encode_payload(record)
    signed = {each.key_id: each.seal("keys", payload).signature for each in signers}
    return keys_envelope(payload, signed, led)


def hexed(envelope: Envelope) -> str:
    return envelope.encode().hex()


KEYS = hexed(signed_keys(keys(), ROOTS[0]))
PINNED = {
    "keys": {ROOTS[0].key_id: ROOTS[0].public_key.hex()},
    "threshold": 1,
    "version": 1,
    "since": 0,
}


def snapshot(listed: dict[str, int], generation: int = 1000, **changes: Any) -> Json:
    """A signed snapshot that lists these entry keys (hex), and its blobs in clear."""
    tree = SnapshotTree.empty().changed(
        {snapshots.EntryKey(bytes.fromhex(key)): at for key, at in listed.items()}
    )
    term = snapshots.Term(bytes.fromhex(TERM))
    terms = snapshots.encode(snapshots.TermList((snapshots.TermEntry(term, None),)))
    known = blobs.store(snapshots.SNAPSHOT_TERMS, terms)
    fields = {
        "generation": generation,
        "term": term,
        "time_ms": 1_000_000,
        "expires_ms": 87_400_000,
        "settled": min(900, generation),
        "terms": snapshots.BlobPointer.to(known.reference),
        "root": tree.root,
        "height": tree.height,
        "count": tree.count,
    }
    record = snapshots.SnapshotRecord(**(fields | changes))
    plain = {
        blob.reference.address: blobs.open_stored(blob).hex() for blob in (*tree.blobs(), known)
    }
    return {
        "message": hexed(SIGNER.seal("snapshot", snapshots.encode(record))),
        "blobs": plain,
    }


def entry_key(record: Record) -> str:
    if isinstance(record, Profile | NodeRecord):
        return snapshots.path_entry_key(record.path, record.source.key).hex()
    return snapshots.mail_entry_key(record.source.key).hex()
