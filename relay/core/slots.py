"""What a child says in one of its report slots: a value of the slot's own kind, or a refusal."""

from __future__ import annotations

from relay.core.parts import PARTS_MAX
from relay.core.state import QUIET_SECONDS, State
from schemas.identity import check_mail_key
from schemas.refusals import BadIdentity, RecordRefused
from schemas.reports import (
    LIST_ENTRIES_MAX,
    LIST_PARTS_MAX,
    PART_MAX_BYTES,
    LabelReport,
    ListPart,
    Report,
    ReportPart,
    decode,
    decode_report,
    part_key,
)
from schemas.subjects import LABELS_KEY, LIST_KEY

OWED_MAX = LIST_PARTS_MAX * LIST_ENTRIES_MAX
"""So many unknown records a child may hold, by its own word, before more are passed over."""

Said = LabelReport | ListPart | Report | ReportPart


def read_slot(key: str, data: bytes) -> Said | None:
    """What the slot says, None if it was emptied; raises RecordRefused, whatever the bytes are.

    Each thing has one slot where it may be said, so a child has only so many.
    """
    if not data:
        return None
    if key == LABELS_KEY:
        return decode(LabelReport, data, PART_MAX_BYTES)
    if key.startswith(LIST_KEY):
        return _list_part(key, decode(ListPart, data, PART_MAX_BYTES))
    report = decode_report(data)
    if report.part > PARTS_MAX or part_key(report.key, report.part) != key:
        raise RecordRefused(f"part {report.part} of {report.key} under {key}")
    return report


def _list_part(key: str, part: ListPart) -> ListPart:
    if not 0 <= part.part < LIST_PARTS_MAX or key != f"{LIST_KEY}{part.part}":
        raise RecordRefused(f"list: part {part.part} under {key}")
    try:
        for entry in part.entries:
            check_mail_key(entry.key)
    except BadIdentity as error:
        raise RecordRefused(f"list: {error}") from error
    return part


def owe_listed(state: State, child: str, part: ListPart) -> None:
    """Send a child what became of records that it was sent before this node lost its memory.

    Of what is unknown here the node asks its own parent, by its own list.
    """
    box = state.mailboxes.boxes[child]
    room = OWED_MAX - len(box.listed)
    for entry in part.entries[:LIST_ENTRIES_MAX]:
        known, slot = entry.key in state.held, box.slots.get(entry.key)
        if known and slot is not None and slot.sequence and not slot.content:
            # It had let go of it, said so in vain, and holds it again: by an old copy, or below.
            state.mailboxes.force(child, entry.key, state.held[entry.key].order)
            state.mailboxes.flush(child)
        elif room > 0 and slot is None and (known or not state.is_root):
            state.mailboxes.owe(child, entry.key)
            room -= 1
            if not known:
                state.quiet_at = state.now.seconds + QUIET_SECONDS


def owe_no_more(state: State, child: str) -> None:
    """Forget what a child listed once and holds no more, if nobody above knew of it either."""
    listed = state.mailboxes.boxes[child].listed
    for key in [key for key in listed if key not in state.held]:
        state.mailboxes.clear(child, key)
