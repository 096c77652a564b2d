"""What a change is known by in traces, the same at each node though nothing of it travels."""

from __future__ import annotations

import base64
import hashlib
import re

TRACE_ID_BYTES = 16
_IN_RECORD = re.compile(r"[a-z2-7]{26}\Z")


def trace_id(slot: str, generation: int) -> bytes:
    """The id of the change that a record is, by its slot and its generation.

    Its 32 hexadecimal digits are the W3C trace id; in base32 it is the record's field `trace`.
    """
    return hashlib.sha256(f"trace\0{slot}\0{generation}".encode()).digest()[:TRACE_ID_BYTES]


def w3c_trace_id(said: str) -> str:
    """The 32 hexadecimal digits of what a record says in `trace`; that itself if it is no such."""
    if not _IN_RECORD.match(said):
        return said
    return base64.b32decode(f"{said.upper()}======").hex()
