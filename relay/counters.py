"""What a node did, counted for people and tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from relay.core.effects import WriteMail
from schemas.identity import INDEX_KEY


@dataclass(slots=True)
class Counters:
    """What a node did, for people and tests."""

    mail_written: int = 0
    mail_bytes: int = 0
    index_written: int = 0
    blobs_kept: int = 0
    blobs_dropped: int = 0
    noted: Counter[str] = field(default_factory=Counter)

    def wrote(self, writes: Sequence[WriteMail]) -> None:
        """Count mail; index mail is counted apart."""
        index = sum(1 for write in writes if write.key == INDEX_KEY)
        self.index_written += index
        self.mail_written += len(writes) - index
        self.mail_bytes += sum(len(write.data) for write in writes)
