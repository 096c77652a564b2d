"""Tombstones that nobody answers for leave after 30 days; correctness does not rest on them.

How far that went is kept in OWN: a child that has read less reads its mailbox in full, and by the
index it knows what is gone. A generation is a time, so a tombstone's own says how old it is.
"""

from __future__ import annotations

from relay.core.effects import StoreOwn
from relay.core.state import State
from schemas.identity import INDEX_KEY, KEYS_KEY, MailKey
from schemas.refusals import RecordRefused
from schemas.reports import Swept, decode, encode

SWEPT_KEY = "_swept"
RETENTION_MS = 30 * 24 * 3600 * 1000
EVERY_SECONDS = 3600.0


class Tombstones:
    """The sweep of one node's mailboxes, and at the centre of its ledger."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._due = state.now.seconds + EVERY_SECONDS

    def deadline(self) -> float:
        return self._due

    def tick(self) -> None:
        """Sweep, if it is time."""
        state = self._state
        if self._due > state.now.seconds:
            return
        self._due = state.now.seconds + EVERY_SECONDS
        before = state.swept_through
        for name in state.mailboxes.boxes:
            self._sweep_mailbox(name)
        if state.swept_through != before:
            swept = Swept(state.config.incarnation, state.swept_through)
            state.out.append(StoreOwn(SWEPT_KEY, encode(swept)))
        if state.is_root:
            self._sweep_ledger()

    def _sweep_mailbox(self, name: str) -> None:
        state = self._state
        for key, slot in list(state.mailboxes.boxes[name].slots.items()):
            if slot.content or key in (INDEX_KEY, KEYS_KEY) or not slot.sequence:
                continue
            held = state.held.get(key)
            if held is not None and not (held.record.deleted and self._is_old(held.generation)):
                continue
            if held is None and not self._is_old(slot.generation):
                continue
            state.swept_through = max(state.swept_through, slot.sequence)
            state.mailboxes.clear(name, key)
            state.touch(key)

    def _sweep_ledger(self) -> None:
        """The index says of a placement that it is gone, also when its tombstone is no more."""
        state, boxes = self._state, self._state.mailboxes.boxes.values()
        for held in state.deltas():
            if not held.record.deleted or not self._is_old(held.generation):
                continue
            if not any(held.key in box.slots or held.key in box.queue for box in boxes):
                self._forget(held.key)

    def _forget(self, key: MailKey) -> None:
        state = self._state
        state.let_go(key)
        state.where.set_delta(key, None)
        state.reporting.forget(key)
        state.out.append(StoreOwn(key, None))

    def _is_old(self, generation: int) -> bool:
        return bool(generation) and self._state.now.wall_ms - generation > RETENTION_MS


def restored(state: State, data: bytes) -> bool:
    """Take in how far was swept before the start; False if that is unreadable.

    The MAIL stream goes on over a start, so its sequences do.
    """
    try:
        state.swept_through = decode(Swept, data).sequence
    except RecordRefused:
        return False
    return True
