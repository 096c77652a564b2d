"""The keys of a world's centre: what their file holds outlives the ledger."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from controllers.core.access.keyring import Keyring
from controllers.core.access.keys import (
    KeyChange,
    KeyRing,
    Stamp,
    changed_record,
    completed,
    request_of,
)
from controllers.issuing.keys import CentreKeyring, CentreKeys
from schemas.records.records import KeyGrant
from schemas.values import wire

NO_TERM = "0" * 16
NOWHERE = Path()


class KeyringInMemory(CentreKeyring):
    """The ring without its file."""

    def _keep(self, ring: Keyring) -> None:
        self.announced = ring


class KeysInMemory(CentreKeys):
    """The keys without their file; `on_kept` hears of each change once it would be there."""

    def __init__(self, ring: KeyRing, sealing: Keyring, on_kept: Callable[[], None]) -> None:
        super().__init__(ring, NOWHERE, KeyringInMemory(sealing, NOWHERE))
        self._on_kept = on_kept

    def keep(self, ring: KeyRing) -> None:
        self.ring = ring
        self._on_kept()


def first_ring(ring: KeyRing, grant: KeyGrant, generation: int) -> KeyRing:
    """A ring with its first message, by which another key may sign something, too."""
    record = changed_record(ring, KeyChange(), Stamp(generation, NO_TERM), (), alone=True)
    request = request_of(ring, wire.replace(record, grants=(*record.grants, grant)))
    return completed(ring, request, generation)
