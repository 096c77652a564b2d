"""Figures of what a node did, for people and tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from relay.core.effects import WriteMail
from schemas.values.identity import SNAPSHOT_KEY


@dataclass(slots=True)
class Counters:
    """What a node did, for people and tests."""

    mail_written: int = 0
    mail_bytes: int = 0
    snapshots_written: int = 0
    blobs_kept: int = 0
    noted: Counter[str] = field(default_factory=Counter)

    def wrote(self, writes: Sequence[WriteMail]) -> None:
        """Count mail; snapshots are counted apart."""
        snapshots = sum(1 for write in writes if write.key == SNAPSHOT_KEY)
        self.snapshots_written += snapshots
        self.mail_written += len(writes) - snapshots
        self.mail_bytes += sum(len(write.data) for write in writes)
