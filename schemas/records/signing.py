"""Signed messages: what is believed from above, and the bytes that are signed.

A message is msgpack `[2, kind, key id, payload, signature, body or nil]`; signed, with ed25519, is
`"leafcast/2/" kind NUL tree-id NUL key-id NUL payload`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal, get_args

from nacl.exceptions import BadSignatureError
from nacl.signing import SigningKey, VerifyKey

from schemas.releases.release_wires import Wires
from schemas.values import codec
from schemas.values.identity import KeyId, TreeId, check_id
from schemas.values.refusals import RecordRefused, WireRefused
from schemas.values.wire import WireRecord, decode

WIRE_VERSION = 2
WIRE_LOWEST = 2
"""The oldest version that this program reads."""
OWN_WIRES = Wires(WIRE_LOWEST, WIRE_VERSION)
RecordKind = Literal["delta", "profile", "location", "node", "snapshot", "keys", "ask"]
KINDS: frozenset[str] = frozenset(get_args(RecordKind))


@dataclass(frozen=True)
class Envelope:
    """One signed message; believed only after `verify` with a key that may sign it."""

    kind: str
    key_id: KeyId
    payload: bytes
    signature: bytes
    body: bytes | None = None

    def encode(self) -> bytes:
        fields = [WIRE_VERSION, self.kind, self.key_id, self.payload, self.signature, self.body]
        return codec.pack(fields)

    @cached_property
    def payload_hash(self) -> bytes:
        """SHA-256 of the signed payload, 32 bytes."""
        return hashlib.sha256(self.payload).digest()

    def bare(self) -> Envelope:
        """The same message without its body, for a child that is no longer meant."""
        return Envelope(self.kind, self.key_id, self.payload, self.signature)

    def verify(self, tree: TreeId, public_key: bytes) -> bool:
        """Whether the owner of the ed25519 key (32 bytes) signed this for this tree."""
        try:
            signed = signed_bytes(tree, self.kind, self.key_id, self.payload)
            _verify_key(public_key).verify(signed, self.signature)
        except (BadSignatureError, ValueError, TypeError):
            return False
        return True


@dataclass(frozen=True, slots=True)
class Signer:
    """A private key with its name and its tree."""

    tree: TreeId
    key_id: KeyId
    seed: bytes

    @property
    def public_key(self) -> bytes:
        return bytes(_signing_key(self.seed).verify_key)

    def seal(self, kind: RecordKind, payload: bytes, body: bytes | None = None) -> Envelope:
        """Sign a payload."""
        signed = signed_bytes(self.tree, kind, self.key_id, payload)
        signature = _signing_key(self.seed).sign(signed).signature
        return Envelope(kind, self.key_id, payload, signature, body)


@lru_cache(maxsize=16)
def _signing_key(seed: bytes) -> SigningKey:
    """To derive a key from its seed takes as long as to sign."""
    return SigningKey(seed)


@lru_cache(maxsize=64)
def _verify_key(public_key: bytes) -> VerifyKey:
    return VerifyKey(public_key)


def signed_bytes(tree: TreeId, kind: str, key_id: KeyId, payload: bytes) -> bytes:
    return f"leafcast/2/{kind}\0{tree}\0{key_id}\0".encode() + payload


class _Message(WireRecord, frozen=True):
    version: int
    kind: str
    key_id: str
    payload: bytes
    signature: bytes
    body: bytes | None


def decode_envelope(data: bytes) -> Envelope:
    """Read a message; raises RecordRefused, whatever the bytes are."""
    said = decode(_Message, data, name="message")
    if said.version != WIRE_VERSION:
        raise RecordRefused(f"version {said.version}, this program reads {WIRE_VERSION}")
    if said.kind not in KINDS:
        raise RecordRefused(f"unknown kind {said.kind!r}")
    try:
        key_id = KeyId(check_id(said.key_id, "key id"))
    except WireRefused as error:
        raise RecordRefused(str(error)) from error
    return Envelope(said.kind, key_id, said.payload, said.signature, said.body)
