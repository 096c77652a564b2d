"""Whether another centre runs with a copy of this one's keys, and which of the two goes on.

Both sign for the same tree. What the other signed after this one began comes to light when a child
that heard the other shows it. Terms begin with the time at which they began, so both judge alike:
the one that began first goes on.
"""

from __future__ import annotations

from enum import Enum

from relay.core.effects import SnapshotShown

CLOCKS_DIFFER_MS = 60_000
_TIME_BYTES, _TERM_BYTES = 6, 8


class Rival(Enum):
    """What is known of another centre."""

    NONE = "none"
    MUST_END = "the other one"
    GOES_ON = "this one must end"


def new_term(now_ms: int, entropy: bytes) -> str:
    """The id of a term that begins now, as 16 hex digits: the time, and what tells copies apart."""
    begun = now_ms.to_bytes(_TIME_BYTES, "big")
    return (begun + entropy[: _TERM_BYTES - _TIME_BYTES]).hex()


def judge_shown(shown: SnapshotShown, own: str, known: int) -> Rival:
    """What a snapshot says of another centre; one from before this term began says nothing.

    `known` is the highest generation of the ledger as the term began: nobody issued it since,
    whatever time the clock was set to then.
    """
    began_ms = int(own[: 2 * _TIME_BYTES], 16)
    if shown.term == own or shown.rank.generation <= known:
        return Rival.NONE
    if shown.time_ms <= began_ms + CLOCKS_DIFFER_MS:
        return Rival.NONE
    return Rival.GOES_ON if shown.term < own else Rival.MUST_END
