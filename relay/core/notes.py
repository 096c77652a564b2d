"""What a node noted in OWN for itself, beside the records: read at its start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from relay.core.effects import Effect, Noted
from relay.core.events import Remembered
from schemas.content.blobs import Reference
from schemas.records.records import Away, FirstSession, History, TakenArms
from schemas.reports.link import Cursor
from schemas.values.identity import KEYS_KEY, MailKey
from schemas.values.refusals import RecordRefused
from schemas.values.subjects import (
    AWAY_PREFIX,
    CURSOR_KEY,
    FIRST_SESSION_PREFIX,
    HISTORY_PREFIX,
    TAKEN_KEY,
)
from schemas.values.wire import WireRecord, decode

_N = TypeVar("_N", bound=WireRecord)


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
        kept = self.below(HISTORY_PREFIX, History)
        return {key: it.references for key, it in kept.items()}

    @property
    def first_sessions(self) -> dict[str, str]:
        """By name, the keys with which children came first by bundles of a former release."""
        return {
            name: it.nkey for name, it in self.below(FIRST_SESSION_PREFIX, FirstSession).items()
        }

    @property
    def away(self) -> dict[str, Away]:
        """The children that were silent or had left, by their names."""
        return {str(name): it for name, it in self.below(AWAY_PREFIX, Away).items()}

    def below(self, prefix: str, kind: type[_N]) -> dict[MailKey, _N]:
        """The notes whose keys begin so, by what follows."""
        found = {}
        for key in self._data:
            if key.startswith(prefix) and (kept := self._read(key, kind)) is not None:
                found[MailKey(key.removeprefix(prefix))] = kept
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
