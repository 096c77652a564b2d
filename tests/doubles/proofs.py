"""A proof of a node that has placements, signed as a centre signs them."""

from collections.abc import Sequence

from leafcast.proofs import Proof
from schemas.records.records import (
    API_KEYS,
    DeltaHead,
    KeyGrant,
    KeysRecord,
    RootKey,
    Source,
    encode_payload,
)
from schemas.records.roots import Roots, keys_envelope
from schemas.records.signing import Signer
from schemas.values.groups import API_PLACEMENT
from schemas.values.identity import KeyId, NodePath, TreeId

TREE = TreeId("t" * 26)
ROOT_SIGNERS = tuple(Signer(TREE, KeyId(it * 26), it.encode() * 32) for it in "rsu")
SIGNING = Signer(TREE, KeyId("k" * 26), b"k" * 32)
TERM = "00" * 8


def delta(name: str, generation: int, signer: Signer = SIGNING) -> bytes:
    """The message of a placement."""
    source = Source(API_PLACEMENT, "space", "", name)
    head = DeltaHead(source, generation, TERM, "", b"\1" * 32, (), 0)
    return signer.seal("delta", encode_payload(head)).encode()


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
