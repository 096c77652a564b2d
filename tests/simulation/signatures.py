"""The world's own cheap signatures, through the same port as the real ones.

Most seeds sign and verify by a keyed hash: a hundredth of the cost, with the same bytes signed and
the same length. A sample of the seeds uses ed25519.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache

from relay.core import inbox, node
from relay.core.book import Held, read_record
from schemas import records
from schemas.identity import TreeId, mail_key
from schemas.signing import Envelope, RecordKind, Signer, signed_bytes

REAL_EVERY = 16
"""Every so many seeds the signatures are real."""


@contextmanager
def cheap_signatures(*, real: bool = False) -> Iterator[None]:
    """Sign, verify and read the same bytes again cheaply within; with `real` nothing is changed."""
    if real:
        yield
        return
    known: dict[bytes, tuple[Envelope, Held]] = {}

    def read(data: bytes, order: int, hops: tuple[int, ...] = ()) -> tuple[Envelope, Held]:
        found = known.get(data)
        if found is None:
            found = known[data] = read_record(data, 0)
        return found[0], replace(found[1], order=order, hops=hops)

    cheap: list[tuple[object, str, object]] = [
        (Envelope, "verify", _verify),
        (Signer, "seal", _seal),
        (records, "mail_key", _mail_key),
        *(
            (module, "read_record", read)
            for module in (inbox, node)
            if hasattr(module, "read_record")
        ),
    ]
    honest = [(owner, name, getattr(owner, name)) for owner, name, _ in cheap]
    for owner, name, instead in cheap:
        setattr(owner, name, instead)
    try:
        yield
    finally:
        for owner, name, was in honest:
            setattr(owner, name, was)


_mail_key = cache(mail_key)


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
