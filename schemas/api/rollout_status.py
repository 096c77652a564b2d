"""Rollout, and its status: what that shows, and all that a restarted centre goes on from."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from schemas.api.placement import Int32
from schemas.api.rollout_spec import RolloutSpec, Wave
from schemas.api.shared import ApiValue, Condition, CountField, ListOf, NamedObject, Selector

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
RolloutOutcome = Literal["", "Complete", "Partial", "Promoted", "Aborted", "Superseded"]


class RolloutStep(ApiValue):
    """A step of a wave: how far its gate is opened, and not before so many seconds of it."""

    below: Number
    """How many of 10000 are admitted."""
    after: Number = 0
    """How many seconds after the wave's first step at the earliest."""


class WaveStatus(ApiValue):
    """One wave of the revision: its gate, and what was counted of its members last."""

    name: str
    """The name of the wave."""
    gate: str
    """Whom it admits, in words."""
    phase: WavePhase = "Pending"
    """What becomes of it now."""
    members: CountField | None = None
    """How many destinations it admitted, without those that never joined."""
    healthy: CountField | None = None
    """How many of them work with the content."""
    synced: CountField | None = None
    """How many of them hold it."""
    failing: CountField | None = None
    """How many of them fail."""
    waiting: CountField | None = None
    """How many of them wait for a window, or for another placement."""
    unreachable: CountField | None = None
    """How many of them are not heard of."""
    steps: ListOf[RolloutStep] = ()
    """How it is opened."""
    step: Int32 = 0
    """How many of the steps are done."""
    soaked: Number = 0
    """How many seconds it was good without a break."""
    lasted: Number = 0
    """How many seconds of its deadline are gone."""
    since: str | None = None
    """When its first step was."""
    approved_before: bool = False
    """Whether a person let it begin."""
    approved_after: bool = False
    """Whether a person let it end."""
    reason: str = ""
    """Why it failed, or why nobody tries what it lets out."""
    definition: Wave
    """The wave as it was when the revision began."""


class Revision(ApiValue):
    """One content that the placement had; `manifest` names it, `size` is of its list of objects."""

    number: Number
    """Its number."""
    manifest: str
    """The address of its list of objects."""
    size: Number
    """How long that is, in bytes."""
    time: str = ""
    """When it began."""
    user: str = ""
    """Who changed it last."""
    cause: str = ""
    """The annotation kubernetes.io/change-cause of the placement."""
    outcome: RolloutOutcome = ""
    """What became of it; empty while it goes out."""


class StatusWindow(ApiValue):
    """A window of a gate: a cron line, seconds, and a zone; no zone is the destination's."""

    cron: str
    """When it opens."""
    duration: Number
    """For how many seconds."""
    zone: str = ""
    """In which time zone; empty for the destination's own."""


class LayerGate(ApiValue):
    """An open gate: who passes it; `below` of 10000."""

    name: str
    """Of which revision and wave it is."""
    below: Number
    """How many of 10000 it admits."""
    salt: str = ""
    """What these are drawn with."""
    over: str = ""
    """Whether the selector is over Locations or SyncTargets."""
    selector: Selector | None = None
    """Whose labels it admits; all if absent."""
    windows: ListOf[StatusWindow] = ()
    """When destinations may begin."""


class Layer(ApiValue):
    """A revision, and the gates that were opened for it; no manifest is nothing at all."""

    revision: Number
    """The number of its content."""
    manifest: str = ""
    """The address of its list of objects; empty if it has none."""
    size: Number = 0
    """How long that is, in bytes."""
    gates: ListOf[LayerGate] = ()
    """Who gets it, the first gate that admits counts."""


class Pin(ApiValue):
    """The revision that is kept at and below a place."""

    path: str
    """At and below which place."""
    revision: Number
    """Which revision is kept there."""


class Freeze(ApiValue):
    """The layers that stay as they were at and below a place."""

    path: str
    """At and below which place."""
    layers: ListOf[Layer] = ()
    """The layers as they were."""


class RejectedObjects(ApiValue):
    """What of the space's wish stays back, as the revision that brought it was taken back."""

    reason: Literal["Aborted", "Undone"]
    """Whether the revision was aborted or undone."""
    revision: Number = 0
    """Which revision; 0 if that is not known any more."""
    since: str | None = None
    """Since when."""
    objects: CountField | None = None
    """How many objects; none until they are counted."""
    names: ListOf[str] = ()
    """Some of them, by kind and name."""


class RequestStatus(ApiValue):
    """What became of the last request."""

    id: str
    """Which request."""
    action: str = ""
    """What was asked."""
    outcome: Literal["Done", "Refused", "Ignored"]
    """Whether it was done."""
    message: str = ""
    """Why not, or what follows."""


class RolloutStatus(ApiValue):
    """How far a Rollout is. `layers` are what the placement's delta says, newest first."""

    observed_generation: Int32 = 0
    """The metadata.generation that this status speaks of."""
    placement: str = ""
    """The placement that all of this is of."""
    revision: Number = 0
    """The number of the content that goes out, or went out last."""
    over_revision: Number | None = None
    """The number of the content that it replaces."""
    phase: Phase = "Waiting"
    """What it does now."""
    paused: bool = False
    """Whether a person, or a failure, made it stand still."""
    wave: Int32 = 0
    """The number of the wave that is under way, from 1."""
    wave_name: str = ""
    """The name of that wave."""
    waves: ListOf[WaveStatus] = ()
    """The waves of this revision."""
    history: ListOf[Revision] = ()
    """The contents that the placement had, the newest last."""
    pins: ListOf[Pin] = ()
    """Where a former content is kept."""
    freezes: ListOf[Freeze] = ()
    """Where nothing new comes."""
    layers: ListOf[Layer] = ()
    """Who has which content: the newest layer first, the last is everyone's."""
    target: str = ""
    """The address of the content that is to go out of what the space wants."""
    target_size: Number = 0
    """How long its list of objects is, in bytes."""
    wish: str = ""
    """The address of what the space wants in fact, if some of it is rejected."""
    wish_size: Number = 0
    """How long its list of objects is, in bytes."""
    rejected: RejectedObjects | None = None
    """Which objects stay as they were, as a revision was aborted or undone."""
    salt: str = ""
    """What the shares are drawn with."""
    waiting_for: str = ""
    """What else keeps its newest content from going out."""
    ungrouped: Int32 = 0
    """How many values of labels found no wave of their own."""
    complete: bool | None = None
    """Whether the counts are exact; if not, each reads 'at least'."""
    late: CountField | None = None
    """How many members fail now of what was rolled out to its end."""
    request: RequestStatus | None = None
    """What became of the last command."""
    conditions: ListOf[Condition] = ()
    """RolledOut, Ready: the newest content is wherever it is meant to be. Reconciling: it goes
    on by itself. Stalled: it waits for a person. Others are there while something is wrong."""
    message: str = ""
    """What it waits for."""
    next: str = ""
    """The command to run, if it waits for a person."""


class Rollout(NamedObject):
    """Lets what changes in a placement out by waves, as far as it proves good."""

    api_version: Literal["leafcast.io/v1alpha1"]
    kind: Literal["Rollout"]
    spec: RolloutSpec
    """How the changes of one placement go out."""
    status: RolloutStatus | None = None
    """How far it is. Leafcast writes it, and goes on from it after a restart."""
