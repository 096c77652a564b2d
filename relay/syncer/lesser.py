"""Objects that were applied without what nobody said and their space does not know.

What is left out goes out once it is said, or known there: so the record tells of it.
"""

from __future__ import annotations

import zlib

from relay.core.destination.claims import DesiredObject
from schemas.reports.reports import Done
from schemas.values.wire import encode


def mark_of(wanted: DesiredObject) -> bytes:
    """What the record notes of an object that was applied without some unsaid fields."""
    return zlib.crc32(encode(wanted.unsaid)).to_bytes(4, "big")


def is_another(wanted: DesiredObject, done: Done) -> bool:
    """Whether other fields are unsaid now than when some were left out."""
    return bool(done.lesser) and done.lesser != mark_of(wanted)
