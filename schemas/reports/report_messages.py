"""What lies in a report slot: what is said there, and often the progress that follows it.

The last report of a flush takes the progress along, as `[report, progress]`: one message, one
answer. A slot that is emptied, or has no room, takes nothing along.
"""

from __future__ import annotations

from collections.abc import Mapping

from schemas.reports.reports import PART_MAX_BYTES
from schemas.values.codec import fields_end
from schemas.values.refusals import CodecError
from schemas.values.subjects import PROGRESS_KEY

_PAIR = b"\x92"


def messages_of(said: Mapping[str, bytes]) -> dict[str, bytes]:
    """The messages by slot, in their order; a progress at the end goes with what is before it."""
    messages = dict(said)
    slots = list(messages)[-2:]
    if len(slots) < 2 or slots[1] != PROGRESS_KEY:
        return messages
    report, progress = messages[slots[0]], messages[PROGRESS_KEY]
    if report and progress and len(_PAIR + report + progress) <= PART_MAX_BYTES:
        messages[slots[0]] = _PAIR + report + progress
        del messages[PROGRESS_KEY]
    return messages


def said_in(slot: str, message: bytes) -> list[tuple[str, bytes]]:
    """What is said, by slots, in order; whatever the bytes are."""
    if message[:1] != _PAIR:
        return [(slot, message)]
    try:
        end = fields_end(message, 1)
    except CodecError:
        return [(slot, message)]  # Its reader refuses it.
    return [(slot, message[1:end]), (PROGRESS_KEY, message[end:])]
