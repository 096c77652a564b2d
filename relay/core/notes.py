"""What a node noted in OWN for itself, beside the records: read at its start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from relay.core.effects import Effect, Noted
from relay.core.events import Remembered
from schemas.content.blobs import Reference
from schemas.identity import KEYS_KEY, MailKey
from schemas.link import Cursor
from schemas.records import History, TakenArms
from schemas.refusals import RecordRefused
from schemas.subjects import CURSOR_KEY, HISTORY_PREFIX, TAKEN_KEY
from schemas.wire import decode

_N = TypeVar("_N", Cursor, TakenArms, History)


class Notes:
    """The notes that one start found; what cannot be read is said in `out`, and is as none."""

    def __init__(self, remembered: Remembered, out: list[Effect]) -> None:
        self._data = {own.key: own.data for own in remembered.own if is_note(own.key)}
        self._out = out

    @property
    def cursor(self) -> Cursor | None:
        """How far the mailbox was read."""
        return self._read(CURSOR_KEY, Cursor)

    @property
    def taken(self) -> Mapping[MailKey, tuple[str, ...]]:
        """The arms that the destination took of placements with windows, by name."""
        note = self._read(TAKEN_KEY, TakenArms)
        return note.arms if note is not None else {}

    @property
    def history(self) -> dict[MailKey, tuple[Reference, ...]]:
        """At the centre, the former contents that stay, by placement."""
        found = {}
        for key in self._data:
            kept = self._read(key, History) if key.startswith(HISTORY_PREFIX) else None
            if kept is not None:
                found[MailKey(key.removeprefix(HISTORY_PREFIX))] = kept.references
        return found

    def _read(self, key: str, kind: type[_N]) -> _N | None:
        data = self._data.get(key)
        try:
            return decode(kind, data) if data is not None else None
        except RecordRefused as error:
            self._out.append(Noted("Unreadable", f"own {key.lstrip('_')}", error.reason))
            return None


def is_note(key: str) -> bool:
    """Whether what lies there in OWN is no record: of the reserved keys `_keys` alone is one."""
    return key.startswith("_") and key != KEYS_KEY
