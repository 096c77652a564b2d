"""What a node did, counted for people and tests."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Counters:
    """What a node did, for people and tests."""

    mail_written: int = 0
    mail_bytes: int = 0
    index_written: int = 0
    blobs_kept: int = 0
    blobs_dropped: int = 0
    noted: Counter[str] = field(default_factory=Counter)
