"""The status of a Rollout: what it shows, and all that a restarted centre goes on from."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from schemas.api.placement import Int32
from schemas.api.rollout_spec import Wave
from schemas.api.shared import Condition, Count, ListOf, Selector, Value

Number = Annotated[int, Field(ge=0, le=2**53 - 1)]
"""An API server checks its bound as a floating-point number, so it has no more bits."""

Phase = Literal[
    "Waiting",
    "Progressing",
    "Soaking",
    "AwaitingApproval",
    "Paused",
    "Held",
    "Aborted",
    "Complete",
    "Partial",
]
WavePhase = Literal[
    "Pending", "AwaitingApproval", "Progressing", "Soaking", "Failed", "Done", "Promoted"
]
Outcome = Literal["", "Complete", "Partial", "Promoted", "Aborted", "Superseded"]


class RolloutStep(Value):
    """A step of a wave: how far its gate is opened, and not before so many seconds of it."""

    below: Number
    after: Number = 0


class WaveStatus(Value):
    """One wave of the revision: its gate, and what was counted of its members last."""

    name: str
    gate: str
    phase: WavePhase = "Pending"
    members: Count | None = None
    healthy: Count | None = None
    synced: Count | None = None
    failing: Count | None = None
    waiting: Count | None = None
    unreachable: Count | None = None
    steps: ListOf[RolloutStep] = ()
    step: Int32 = 0
    # Whole seconds that counted; so is `lasted`.
    soaked: Number = 0
    lasted: Number = 0
    since: str | None = None
    approved_before: bool = False
    approved_after: bool = False
    reason: str = ""
    # As it was when the revision began.
    definition: Wave


class Revision(Value):
    """One content that the placement had; `manifest` names it, `size` is of its list of objects."""

    number: Number
    manifest: str
    size: Number
    time: str = ""
    user: str = ""
    cause: str = ""
    outcome: Outcome = ""


class StatusWindow(Value):
    """A window of a gate: a cron line, seconds, and a zone; no zone is the destination's."""

    cron: str
    duration: Number
    zone: str = ""


class LayerGate(Value):
    """An open gate: who passes it; `below` of 10000."""

    name: str
    below: Number
    salt: str = ""
    over: str = ""
    selector: Selector | None = None
    windows: ListOf[StatusWindow] = ()


class Layer(Value):
    """A revision, and the gates that were opened for it; no manifest is nothing at all."""

    revision: Number
    manifest: str = ""
    size: Number = 0
    gates: ListOf[LayerGate] = ()


class Pin(Value):
    """The revision that is kept at and below a place."""

    path: str
    revision: Number


class Freeze(Value):
    """The layers that stay as they were at and below a place."""

    path: str
    layers: ListOf[Layer] = ()


class RejectedObjects(Value):
    """What of the space's wish stays back, as the revision that brought it was taken back."""

    reason: Literal["Aborted", "Undone"]
    # The one that was aborted or undone; 0 if nobody knows any more.
    revision: Number = 0
    since: str | None = None
    # None until they are counted.
    objects: Count | None = None
    # Some of them.
    names: ListOf[str] = ()


class RequestStatus(Value):
    """What became of the last request."""

    id: str
    action: str = ""
    outcome: Literal["Done", "Refused", "Ignored"]
    message: str = ""


class RolloutStatus(Value):
    """How far a Rollout is. `layers` are what the placement's delta says, newest first."""

    observed_generation: Int32 = 0
    # The one that all of this is of.
    placement: str = ""
    revision: Number = 0
    over_revision: Number | None = None
    phase: Phase = "Waiting"
    paused: bool = False
    wave: Int32 = 0
    wave_name: str = ""
    waves: ListOf[WaveStatus] = ()
    history: ListOf[Revision] = ()
    pins: ListOf[Pin] = ()
    freezes: ListOf[Freeze] = ()
    layers: ListOf[Layer] = ()
    # The content that is to go out of what its space wants, whatever revision is rolled out.
    target: str = ""
    target_size: Number = 0
    # What its space wants in fact, if some of it is rejected.
    wish: str = ""
    wish_size: Number = 0
    rejected: RejectedObjects | None = None
    salt: str = ""
    waiting_for: str = ""
    ungrouped: Int32 = 0
    complete: bool | None = None
    late: Count | None = None
    request: RequestStatus | None = None
    conditions: ListOf[Condition] = ()
    message: str = ""
    next: str = ""
