"""The world's own cheap signatures, through the same port as the real ones.

Most seeds sign and verify by a keyed hash: a hundredth of the cost, with the same bytes signed and
the same length. A sample of the seeds uses ed25519.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from relay.core import book, inbox, node
from relay.core.records.accepted import Held
from schemas import records
from schemas.identity import TreeId, mail_key
from schemas.signing import Envelope, RecordKind, Signer, signed_bytes
from tests.simulation.unguarded import Replaced, unguarded

REAL_EVERY = 64
"""Every so many seeds the signatures are real; to the others nothing else is different."""


KNOWN_MAX = 20_000
_known: dict[bytes, tuple[Envelope, Held]] | None = None
"""What was read before, by its bytes; None while all is read as it comes."""
_lasting: dict[bytes, tuple[Envelope, Held]] = {}
_lasts = False
"""Whether what is replaced stays so between lives."""


@contextmanager
def many_lives() -> Iterator[None]:
    """Leave what is replaced as it is between the lives within, and take the guard off records.

    To replace it each time takes the interpreter longer than it seems: whatever it had learned of
    the classes is forgotten. Lives with real signatures find all as it is in the program.
    """
    global _lasts  # noqa: PLW0603 - as the methods that are replaced
    _lasts = True
    try:
        yield
    finally:
        _lasts = False
        _INSTEAD.put(on=False)
        _UNGUARDED.put(on=False)


@contextmanager
def cheap_signatures(*, real: bool = False, afresh: bool = True) -> Iterator[None]:
    """Sign, verify and read the same bytes again cheaply within; with `real` nothing is changed.

    With `afresh` nothing is known of what was read before, as there may be faults in the reading.
    """
    global _known  # noqa: PLW0603 - as the methods that are replaced
    _INSTEAD.put(on=not real)
    _UNGUARDED.put(on=not real and _lasts)
    if not real:
        _known = {} if afresh else _lasting
    try:
        yield
    finally:
        _known = None
        if not _lasts:
            _INSTEAD.put(on=False)


def read_record(data: bytes, order: int, hops: tuple[int, ...] = ()) -> tuple[Envelope, Held]:
    """What `book` reads of a message, at once if it was read before."""
    if _known is None:
        return book.read_record(data, order, hops)
    found = _known.get(data)
    if found is None:
        if len(_known) > KNOWN_MAX:
            _known.clear()
        found = _known[data] = book.read_record(data, 0)
    envelope, h = found
    if not order and not hops:
        return found
    # As `replace` would, in a fifth of the time.
    held = Held(
        h.key, h.kind, h.record, data, h.payload_hash, h.term, h.body, order, hops, h.opaque
    )
    return envelope, held


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


_INSTEAD = Replaced(
    [
        (Envelope, "verify", _verify),
        (Signer, "seal", _seal),
        (records, "mail_key", _mail_key),
        (inbox, "read_record", read_record),
        (node, "read_record", read_record),
    ]
)
_UNGUARDED = Replaced(unguarded())
