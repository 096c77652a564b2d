"""The world's own cheap signatures, through the same port as the real ones.

Most seeds sign and verify by a keyed hash: a hundredth of the cost, with the same bytes signed and
the same length. A sample of the seeds uses ed25519.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from schemas.records.signing import Envelope, RecordKind, Signer, signed_bytes
from schemas.values.identity import TreeId

REAL_EVERY = 64
"""Every so many seeds the signatures are real; to the others nothing else is different."""


@contextmanager
def cheap_signatures(*, real: bool = False) -> Iterator[None]:
    """Sign and verify cheaply within; with `real` nothing is changed."""
    honest = Envelope.verify, Signer.seal
    if not real:
        Envelope.verify, Signer.seal = _verify, _seal  # type: ignore[method-assign]
    try:
        yield
    finally:
        Envelope.verify, Signer.seal = honest  # type: ignore[method-assign]


@cache
def public_key_of(signer: Signer) -> bytes:
    """The signer's public key, computed once."""
    return signer.public_key


def _hash(tree: TreeId, kind: str, key_id: str, payload: bytes, public_key: bytes) -> bytes:
    signed = signed_bytes(tree, kind, key_id, payload)  # type: ignore[arg-type]
    return hashlib.blake2b(signed, key=public_key, digest_size=64).digest()


def _seal(self: Signer, kind: RecordKind, payload: bytes, body: bytes | None = None) -> Envelope:
    signature = _hash(self.tree, kind, self.key_id, payload, public_key_of(self))
    return Envelope(kind, self.key_id, payload, signature, body)


def _verify(self: Envelope, tree: TreeId, public_key: bytes) -> bool:
    return self.signature == _hash(tree, self.kind, self.key_id, self.payload, public_key)
