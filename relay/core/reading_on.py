"""What follows from how far a child has read its mailbox: some is written again, some taken out."""

from __future__ import annotations

from relay.core.book import is_delta
from relay.core.children import Child
from relay.core.state import State


def read_on(state: State, name: str, child: Child, cursor: int) -> None:
    """Take note of how far a child says that it has read.

    Where nothing was read, written or reported since the heartbeat before, nothing follows: no slot
    need be looked at for it.
    """
    read, child.cursor = min(child.cursor, cursor), cursor
    written, said = state.mailboxes.boxes[name].last_sequence, state.reporting.digest(name)
    seen = (child.epoch, read, cursor, written, said)
    if seen != child.seen:
        child.seen = seen
        _ask_again(state, name, read)
        _clear_read(state, name, cursor)
    state.mailboxes.flush(name)


def _ask_again(state: State, name: str, read: int) -> None:
    """Write deltas again that a child has not answered for since it read what bears on them.

    To the child it may not: of a location it saw other versions than those written to it.
    `read` is how far it had read by the heartbeat before; since then it could answer.
    """
    for key, slot in list(state.mailboxes.boxes[name].slots.items()):
        held = state.held.get(key)
        if not is_delta(held) or not 0 < slot.bearing <= read:
            continue
        if state.reporting.answered(name, key) < slot.bearing:
            state.mailboxes.force(name, key, held.order)


def _clear_read(state: State, name: str, cursor: int) -> None:
    """Take tombstones of profiles and locations out of the mailbox once they were read."""
    for key, slot in list(state.mailboxes.boxes[name].slots.items()):
        held = state.held.get(key)
        if held is None or not held.record.deleted or held.kind == "delta":
            continue
        if slot.generation == held.generation and 0 < slot.sequence <= cursor:
            state.mailboxes.clear(name, key)
