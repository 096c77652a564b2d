"""The W3C trace context of who asks for something: which trace, and which span of it."""

from __future__ import annotations

import re
from typing import NamedTuple

FORM = "00-<32 hex digits>-<16 hex digits>-<2 hex digits>"
EXAMPLE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
_CHARACTERS_MAX = 256
_CONTEXT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII)


class BadTraceparent(ValueError):
    """A text that names no span; says why, and what it looks like."""

    def __init__(self, text: str, reason: str) -> None:
        shown = text if len(text) <= _CHARACTERS_MAX else f"{text[:_CHARACTERS_MAX]}..."
        super().__init__(f"traceparent {shown!r}: {reason}; write {FORM}, such as {EXAMPLE}")


class TraceContext(NamedTuple):
    """A span of someone else's trace."""

    trace_id: int
    span_id: int
    flags: int

    def __str__(self) -> str:
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-{self.flags:02x}"


def read_traceparent(text: str) -> TraceContext:
    """The context that a header `traceparent` says; raises BadTraceparent."""
    found = _CONTEXT.fullmatch(text) if len(text) <= _CHARACTERS_MAX else None
    if found is None:
        raise BadTraceparent(text, "it is of another form")
    version, trace, span, flags, more = found.groups()
    if version == "ff":
        raise BadTraceparent(text, "there is no version ff")
    # A later version may say more behind it.
    if version == "00" and more is not None:
        raise BadTraceparent(text, "it goes on behind the flags")
    if not int(trace, 16):
        raise BadTraceparent(text, "its trace id is all 0")
    if not int(span, 16):
        raise BadTraceparent(text, "its span id is all 0")
    return TraceContext(int(trace, 16), int(span, 16), int(flags, 16))
