"""Root keys: who signs `keys` records, and what stands in such a message beside its payload.

A message of kind keys is signed by several: one signature is the message's own, the others stand in
its body, which nobody signs. There, too, are its forerunners: the messages that changed the roots
before it, so that who knows only older roots can follow (protocol.md, "Keys").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from schemas.records.records import ROOT_KEY_BYTES, ROOTS_MAX, KeysRecord, RootKey, decode_payload
from schemas.records.signing import Envelope, decode_envelope
from schemas.values.identity import KeyId
from schemas.values.refusals import RecordRefused
from schemas.values.wire import Natural, WireRecord, decode, encode

FORERUNNERS_MAX = 64
"""A message leads no further back: who knows older roots only needs a new token."""
FORERUNNERS_MAX_BYTES = 128 * 1024
_SIGNATURES_MAX = 2 * ROOTS_MAX


class Roots(WireRecord, frozen=True):
    """So many of these keys sign a `keys` record; they changed for the `version - 1`th time."""

    keys: Mapping[KeyId, bytes]
    threshold: Natural = 1
    version: Natural = 1
    # No `keys` record of a generation below it is believed: it is older than the pin.
    since: Natural = 0


class CoSignature(WireRecord, frozen=True):
    """The signature of one more root over a message's payload, under the root's own key id."""

    key_id: KeyId
    signature: bytes


class KeysBody(WireRecord, frozen=True):
    """What stands beside the payload of a `keys` message; forerunners ascend by version."""

    signatures: tuple[CoSignature, ...] = ()
    # Whole messages, without forerunners of their own.
    forerunners: tuple[bytes, ...] = ()

    def __post_init__(self) -> None:
        if len(self.signatures) > _SIGNATURES_MAX or len(self.forerunners) > FORERUNNERS_MAX:
            raise ValueError(f"more than {_SIGNATURES_MAX} signatures or {FORERUNNERS_MAX} steps")


def check_pinned(roots: Roots) -> Roots:
    """Roots that a node can begin with; raises ValueError for others."""
    if not roots.keys or any(len(public) != ROOT_KEY_BYTES for public in roots.keys.values()):
        raise ValueError(f"it has no root key of {ROOT_KEY_BYTES} bytes")
    if not 1 <= roots.threshold <= len(roots.keys) or not roots.version:
        raise ValueError("its threshold of root keys cannot be met")
    return roots


def roots_of(record: KeysRecord) -> Roots | None:
    """The roots that a record names; None if it leaves them as they were pinned."""
    keys = {root.key_id: root.public_key for root in record.roots}
    return Roots(keys, record.threshold, record.version) if keys else None


def root_keys(keys: Mapping[KeyId, bytes]) -> tuple[RootKey, ...]:
    """The same as a record lists them."""
    return tuple(RootKey(key, keys[key]) for key in sorted(keys))


def keys_body(envelope: Envelope) -> KeysBody:
    """What stands beside the payload; raises RecordRefused."""
    if envelope.body is None:
        return KeysBody()
    return decode(KeysBody, envelope.body, name="keys body")


def keys_record(envelope: Envelope) -> KeysRecord:
    """What a message of kind keys says; raises RecordRefused."""
    record = decode_payload("keys", envelope.payload) if envelope.kind == "keys" else None
    if not isinstance(record, KeysRecord):
        raise RecordRefused(f"a {envelope.kind} where keys are expected")
    return record


def signatures_of(envelope: Envelope) -> dict[KeyId, bytes]:
    """All signatures of a `keys` message, by key id; raises RecordRefused."""
    others = {one.key_id: one.signature for one in keys_body(envelope).signatures}
    return {**others, envelope.key_id: envelope.signature}


def keys_envelope(
    payload: bytes, signatures: Mapping[KeyId, bytes], forerunners: Iterable[Envelope] = ()
) -> Envelope:
    """The message of these parts, whose first signature is its own; at least one is needed."""
    first, *others = sorted(signatures)
    said = tuple(CoSignature(key, signatures[key]) for key in others)
    body = KeysBody(said, tuple(one.encode() for one in forerunners))
    return Envelope("keys", first, payload, signatures[first], encode(body))


def bare_keys(envelope: Envelope) -> Envelope:
    """The same message without forerunners; raises RecordRefused."""
    return keys_envelope(envelope.payload, signatures_of(envelope))


def forerunners_of(envelope: Envelope) -> list[Envelope]:
    """The messages that changed the roots before; raises RecordRefused."""
    return [decode_envelope(data) for data in keys_body(envelope).forerunners]


def leading_on(former: Envelope) -> list[Envelope]:
    """The forerunners of what comes next after a message; raises RecordRefused.

    Of each version of the roots it is the first message, that the roots before signed, too. Of too
    many the oldest are left out.
    """
    listed = forerunners_of(former)
    version = keys_record(former).version
    known = keys_record(listed[-1]).version if listed else 1
    if version > known:
        listed.append(bare_keys(former))
    kept: list[Envelope] = []
    size = 0
    for one in reversed(listed):
        size += len(one.encode())
        if len(kept) == FORERUNNERS_MAX or size > FORERUNNERS_MAX_BYTES:
            break
        kept.append(one)
    return kept[::-1]
