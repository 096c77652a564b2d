"""What a change is known by in traces, the same at each node though nothing of it travels."""

from __future__ import annotations

import hashlib

TRACE_ID_BYTES = 16


def trace_id(slot: str, generation: int) -> bytes:
    """The id of the change that a record is, by its slot and its generation.

    Its 32 hexadecimal digits are the W3C trace id; in base32 it is the record's field `trace`.
    """
    return hashlib.sha256(f"trace\0{slot}\0{generation}".encode()).digest()[:TRACE_ID_BYTES]
