"""A proof of a node that has placements, signed as a centre signs them."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from leafcast.object_proofs import ObjectProof, ShownList
from leafcast.proofs import Proof
from schemas.content import blobs
from schemas.content.blobs import OBJECT
from schemas.content.manifest import ManifestEntry, build_manifest, read_root
from schemas.content.sealing import PLACEMENT_KEY_BYTES, SealingKey, mark
from schemas.objects.objects import ObjectKey
from schemas.records.records import (
    API_KEYS,
    DeltaBody,
    DeltaHead,
    Gate,
    KeyGrant,
    KeysRecord,
    RootKey,
    Source,
    encode_payload,
)
from schemas.records.roots import Roots, keys_envelope
from schemas.records.signing import Signer
from schemas.values.codec import address, canonical
from schemas.values.groups import API_PLACEMENT
from schemas.values.identity import ContentHash, KeyId, NodePath, TreeId

TREE = TreeId("t" * 26)
ROOT_SIGNERS = tuple(Signer(TREE, KeyId(it * 26), it.encode() * 32) for it in "rsu")
SIGNING = Signer(TREE, KeyId("k" * 26), b"k" * 32)
TERM = "00" * 8


CART = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "cart", "namespace": "shop"},
    "data": {"ttl": "86400"},
}
CART_KEY = ObjectKey("", "configmaps", "shop", "cart")
SEALING = SealingKey(TREE, b"p" * PLACEMENT_KEY_BYTES)


def delta(name: str, generation: int, signer: Signer = SIGNING, body: bytes | None = None) -> bytes:
    """The message of a placement."""
    source = Source(API_PLACEMENT, "space", "", name)
    hashed = b"\1" * 32 if body is None else hashlib.sha256(body).digest()
    head = DeltaHead(source, generation, TERM, "", hashed, (), 0)
    return signer.seal("delta", encode_payload(head), body).encode()


def grants(*kinds: str) -> KeyGrant:
    """What the signing key may sign; nothing is that it is revoked."""
    return KeyGrant(SIGNING.key_id, SIGNING.public_key, kinds)


def keys(signers: Sequence[Signer], grant: KeyGrant) -> bytes:
    """The message of the keys in force, signed by these roots."""
    listed = tuple(RootKey(it.key_id, it.public_key) for it in ROOT_SIGNERS)
    record = KeysRecord(Source(API_KEYS, TREE, "", ""), 42, TERM, "", (grant,), listed, 2)
    payload = encode_payload(record)
    signatures = {it.key_id: it.seal("keys", payload).signature for it in signers}
    return keys_envelope(payload, signatures).encode()


def signed_proof(names: Sequence[str] = ("monitoring", "shop")) -> Proof:
    """One whose signatures all lead to two of three roots."""
    roots = Roots({it.key_id: it.public_key for it in ROOT_SIGNERS}, 2)
    records = tuple(delta(name, 43 + at) for at, name in enumerate(names))
    message = keys(ROOT_SIGNERS[:2], grants("delta"))
    return Proof(
        TREE, NodePath.parse("/region-1/site-1"), 1_800_000_000_000, roots, message, records
    )


def entry(name: str, key: SealingKey | None = None) -> ManifestEntry:
    """What a manifest lists of CART under another name."""
    plain = canonical({**CART, "metadata": {"name": name, "namespace": "shop"}})
    stored = blobs.store(OBJECT, plain) if key is None else key.store(OBJECT, plain)
    lies, marked = stored.reference, mark(b"m" * 32, address(OBJECT, plain)) if key else ""
    place = "", "configmaps", "shop", name
    return ManifestEntry(
        *place, lies.address, lies.size, "s", 7, order=12, mark=marked, created_s=1, uid="u-1"
    )


def object_proof(
    key: SealingKey | None = None, shown_key: bytes = b"", about: ObjectKey = CART_KEY
) -> Proof:
    """One of CART among others, by a placement whose manifest has several chunks.

    With `about` it is said to be of that.
    """
    listed = [entry(name, key) for name in ("cart", *(f"c{at}" for at in range(20)))]
    stored = build_manifest(listed, key=key)
    root = blobs.open_stored(stored[0])
    there = read_root(root).chunk_of(CART_KEY)
    chunk = next(blobs.open_stored(it) for it in stored if it.reference == there)
    body = DeltaBody((stored[0].reference,), (Gate(stored[0].reference),)).encode()
    shown = ShownList(root, chunk, ContentHash(listed[0].address), shown_key)
    return replace(
        signed_proof(),
        records=(delta("shop", 43, body=body),),
        about=ObjectProof(about, (shown,)),
    )
