"""Defects that a campaign must find, or it proves nothing: another exception, and a bomb."""

from __future__ import annotations

from tests.fuzz.campaign import MEMORY_BYTES
from tests.fuzz.inputs import fields
from tests.fuzz.target import Form, Target


def stumble(data: bytes) -> None:
    """Trusts what it was told."""
    found = fields(data, dict)
    if found is not None and found[0]:
        found[0]["name"].upper()


def swell(data: bytes) -> None:
    """Makes room for as much as it is told of."""
    found = fields(data, int)
    if found is not None and found[0] > 0:
        bytearray(min(found[0], 4 * MEMORY_BYTES))


TARGETS = {
    "stumble": Target(stumble, lambda: [b"\x91\x81\xa4name\xa1a"], Form.MSGPACK),
    "swell": Target(swell, lambda: [b"\x91\x07"], Form.MSGPACK),
}
