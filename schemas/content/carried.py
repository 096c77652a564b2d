"""Small stored values that travel along with a record, outside what is signed.

A message is the bytes of an envelope, an array of six fields, with a seventh:
`[[address (32 bytes), stored value], ...]`. Whoever passes the record on may drop or add it, and
what is kept is the record without it.
"""

from __future__ import annotations

from collections.abc import Sequence

from schemas.values import codec
from schemas.values.identity import ContentHash
from schemas.values.refusals import CodecError

CARRIED_MAX_BYTES = 8 * 1024
"""Of all values in one message; what claims to carry more carries nothing."""
_FIELDS = 6
_BARE, _LADEN = bytes([0x90 + _FIELDS]), bytes([0x90 + _FIELDS + 1])
_ADDRESS_BYTES = 32

Carried = tuple[tuple[ContentHash, bytes], ...]


def with_carried(record: bytes, carried: Sequence[tuple[ContentHash, bytes]]) -> bytes:
    """The message of a record with values by address; raises ValueError of what is no envelope."""
    if not carried:
        return record
    if record[:1] != _BARE:
        raise ValueError("only an envelope carries something")
    values = [[bytes.fromhex(address), value] for address, value in carried]
    return _LADEN + record[1:] + codec.pack(values)


def without_carried(message: bytes) -> tuple[bytes, Carried]:
    """The record, and what came along, not checked against its addresses; whatever the bytes are.

    What is carried wrongly is left out. What is no message stays as it is: its reader refuses it.
    """
    if message[:1] != _LADEN:
        return message, ()
    try:
        end = codec.fields_end(message, _FIELDS)
    except CodecError:
        return message, ()
    try:
        carried = _carried(codec.unpack(message[end:], 2 * CARRIED_MAX_BYTES))
    except CodecError:
        carried = ()
    return _BARE + message[1:end], carried


def small(values: Sequence[tuple[ContentHash, bytes]], most: int) -> Carried:
    """All of the values if they are of at most so many bytes in all, else none."""
    return tuple(values) if sum(len(value) for _, value in values) <= most else ()


def _carried(values: object) -> Carried:
    found: list[tuple[ContentHash, bytes]] = []
    for item in values if isinstance(values, tuple) else ():
        match item:
            case (bytes(address), bytes(value)) if len(address) == _ADDRESS_BYTES:
                found.append((ContentHash(address.hex()), value))
            case _:
                return ()
    return small(found, CARRIED_MAX_BYTES)
