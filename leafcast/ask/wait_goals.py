"""What `leafcast wait` waits for: how many of which destinations have to be as they should.

Pure: who asks counts, and judges by what is counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from schemas.records.shares import checked_share, share_of
from schemas.reports.states import MAINTAINED, NEVER_JOINED
from schemas.values.faults import Faulty
from schemas.values.identity import NodePath

SYNCED, HEALTHY, READY, ROLLED_OUT, DELETE = "synced", "healthy", "ready", "rolled-out", "delete"
CONDITIONS = (SYNCED, HEALTHY, READY, ROLLED_OUT, DELETE)
COUNTED = (SYNCED, HEALTHY)
"""Those of which a share can be enough."""
UNMET = {
    SYNCED: 'state != "synced"',
    HEALTHY: 'state != "synced" || health != "healthy"',
}
"""The destinations for which it is not so, in CEL over what the tree tells of one."""

Row = Mapping[str, Any]


class Reached(NamedTuple):
    """How many destinations there are, for how many of them it is so, and how many are silent.

    So many lack the newest content, whatever they say of what they have; nobody knows who.
    """

    whole: int
    reached: int
    unreachable: int
    lacking: int = 0


@dataclass(frozen=True, slots=True)
class Goal:
    """Which share of the destinations it has to be so for; all of them without one."""

    at_least: str = ""
    except_unreachable: bool = False

    def is_met(self, found: Reached) -> bool:
        """Whether enough of them are as they should; of none nobody can say it."""
        counted = found.whole - (found.unreachable if self.except_unreachable else 0)
        good = min(found.reached, found.whole - found.lacking)
        return counted > 0 and good >= self.needed(counted)

    def needed(self, counted: int) -> int:
        """How many of so many; a share is rounded up, so that 100% of it is all."""
        return math.ceil(share_of(self.at_least) * counted) if self.at_least else counted

    def may_be_met(self, found: Reached, excepted: int) -> bool:
        """Whether it could be met without so many, whoever of them these are."""
        if not excepted:
            return self.is_met(found)
        whole = max(found.whole - excepted, 0)
        away = min(found.unreachable, max(whole - 1, 0)) if self.except_unreachable else 0
        return self.is_met(Reached(whole, min(found.reached, whole - away), away, found.lacking))


def check_share(text: str) -> str:
    """The text, if it is a share of which one can wait for; raises ValueError with the remedy."""
    try:
        good = bool(share_of(checked_share(text)))
    except Faulty:
        good = False
    if not good:
        raise ValueError(
            f'"{text}" is no share of destinations to wait for; write more than 0% and at most '
            "100%, such as 95%"
        )
    return text


def without(
    found: Reached, unmet: Iterable[Row], excepted: Iterable[str], silent: Iterable[str]
) -> Reached:
    """The same without those that are excepted; who lacks the newest content is none of them.

    `unmet` are the destinations for which it is not so, as far as they are listed; those that are
    not lie below the `silent` nodes.
    """
    out, below = set(excepted), [NodePath.parse(path) for path in silent]
    rows = [*unmet]
    joined = [row for row in rows if row["state"] not in (NEVER_JOINED, MAINTAINED)]
    never = {row["path"] for row in rows} - {row["path"] for row in joined}
    hidden = {path for path in out if any(node.holds(NodePath.parse(path)) for node in below)}
    left = [row for row in joined if row["path"] not in out]
    unlisted = max(found.whole - found.reached - len(joined) - len(hidden), 0) if below else 0
    whole = found.whole - len(out - never)
    away = sum(row["state"] == "unreachable" for row in left) + unlisted
    return Reached(whole, whole - len(left) - unlisted, away, found.lacking)
