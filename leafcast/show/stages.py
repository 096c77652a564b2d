"""The stages of a copy's way at which it may stop, in their order, and what people call them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from leafcast.show.faults import FaultKind
from schemas.records.hold_reasons import (
    AWAITING_APPROVAL,
    CUSTOMIZATION_FROZEN,
    KIND_UNREADABLE,
    OVERRIDDEN,
    REMOVAL_HELD,
    WAITING,
    WAVE_FAILED,
    WINDOW,
)
from schemas.reports.states import NOT_WORKING


class CopyStage(StrEnum):
    """Where a copy stops; the first one that does is told. Words for programs, which stay."""

    SPACE = "space"
    NOT_SELECTED = "not-selected"
    HELD = "held"
    GATE = "gate"
    APPROVAL = "approval"
    WINDOW = "window"
    MAILBOX = "mailbox"
    STALE = "stale"
    WITHHELD = "withheld"
    CONTENT = "content"
    CLOCK = "clock"
    FROZEN = "frozen"
    OVERRIDDEN = "overridden"
    EARLIER = "earlier"
    REFUSED = "refused"
    UNDER_WAY = "under-way"
    NOT_HEALTHY = "not-healthy"
    LEAVING = "leaving"
    SURPLUS = "surplus"
    UNKNOWN = "unknown"
    AS_MEANT = "as-meant"


LEADS: Mapping[CopyStage, str] = {
    CopyStage.SPACE: "not read",
    CopyStage.NOT_SELECTED: "not selected",
    CopyStage.HELD: "held",
    CopyStage.GATE: "waits for a wave",
    CopyStage.APPROVAL: "waits for approval",
    CopyStage.WINDOW: "waits for a window",
    CopyStage.MAILBOX: "waits for the mailbox",
    CopyStage.STALE: "shown an old view",
    CopyStage.WITHHELD: "withheld",
    CopyStage.CONTENT: "waits for content",
    CopyStage.CLOCK: "a clock is wrong",
    CopyStage.FROZEN: "frozen",
    CopyStage.OVERRIDDEN: "overridden",
    CopyStage.EARLIER: "waits for others",
    CopyStage.REFUSED: "refused",
    CopyStage.UNDER_WAY: "under way",
    CopyStage.NOT_HEALTHY: "applied, and not healthy",
    CopyStage.LEAVING: "should be gone",
    CopyStage.SURPLUS: "there, and nothing wants it",
    CopyStage.UNKNOWN: "it cannot be told",
    CopyStage.AS_MEANT: "as it is meant",
}
"""How a line begins that tells of a stage."""

_OF_FAULTS: Mapping[str, CopyStage] = {
    "OldView": CopyStage.STALE,
    "ContentRefused": CopyStage.CONTENT,
    "Overridden": CopyStage.OVERRIDDEN,
    "Frozen": CopyStage.FROZEN,
    "Clash": CopyStage.FROZEN,
    "NoZone": CopyStage.WINDOW,
    "Sealed": CopyStage.CONTENT,
    "Waiting": CopyStage.EARLIER,
    "Terminating": CopyStage.EARLIER,
    "NotEmpty": CopyStage.LEAVING,
}

_OF_HOLDS: Mapping[str, CopyStage] = {
    AWAITING_APPROVAL: CopyStage.APPROVAL,
    WINDOW: CopyStage.WINDOW,
    WAVE_FAILED: CopyStage.GATE,
    CUSTOMIZATION_FROZEN: CopyStage.FROZEN,
    OVERRIDDEN: CopyStage.OVERRIDDEN,
    WAITING: CopyStage.EARLIER,
    KIND_UNREADABLE: CopyStage.SPACE,
    REMOVAL_HELD: CopyStage.LEAVING,
}


def stage_of_hold(reason: str) -> CopyStage:
    """At which stage something stops that a hold of this reason keeps back."""
    return _OF_HOLDS.get(reason, CopyStage.HELD)


def stage_of(kind: FaultKind, severity: int) -> CopyStage:
    """At which stage something stops that an edge says is wrong."""
    if (found := _OF_FAULTS.get(kind.name)) is not None:
        return found
    return CopyStage.NOT_HEALTHY if severity >= NOT_WORKING else CopyStage.REFUSED
