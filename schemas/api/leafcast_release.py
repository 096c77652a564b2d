"""LeafcastRelease: which release of Leafcast the nodes of the tree run, by waves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, model_validator

from schemas.api.placement import Int32
from schemas.api.rollout_spec import (
    WAVES_MAX,
    Failures,
    Offline,
    Success,
    Wave,
    Windows,
    wave_faults,
)
from schemas.api.shared import ApiValue, CountField, ListOf, NamedObject, check_sent
from schemas.releases.release_folder import ATTEMPTS_MAX
from schemas.releases.release_refused import ReleaseRefused
from schemas.releases.release_version import check_version
from schemas.values.faults import Fault, Faulty
from schemas.values.identity import NodePath
from schemas.values.refusals import BadIdentity

MANIFEST_MAX_CHARACTERS = 512 * 1024
ReleasePhase = Literal[
    "Waiting", "Progressing", "Soaking", "Paused", "Failed", "Aborted", "Complete", "Refused"
]
_NOT_YET = ("location_selector", "per_group", "max_concurrent", "rate", "approval", "deadline")


class LeafcastReleaseSpec(ApiValue):
    """Which release, where, and how it goes out."""

    version: str
    """The version that nodes run then, as the manifest says it."""
    manifest: str
    """The signed manifest of the release, in JSON, as its publisher made it."""
    path: str = "/"
    """At and below which place."""
    waves: Annotated[ListOf[Wave], Field(min_length=1)]
    """Whom each wave admits, in order: edges, and before them the relays above these."""
    success: Success = Success()
    """When a wave is good: which share of the members that are heard of, and that are upgraded
    through the tree, runs the release and is healthy."""
    failures: Failures = Failures()
    """How many members of a wave may go back to what they ran, or refuse the release."""
    offline: Offline = Offline()
    """How many members of a wave may not have been heard of when it passes."""
    windows: Windows = ()
    """When nodes may begin. Always if empty."""
    paused: bool = False
    """Whether nothing more begins."""
    aborted: bool = False
    """Whether it goes out no further. Who runs it already goes on with it."""
    attempt: Annotated[int, Field(ge=0, le=ATTEMPTS_MAX)] = 0
    """Who went back or refused the release tries it once more when this is another number. One that
    is complete or aborted begins anew when it is above that of the status, also as a way back."""

    @model_validator(mode="after")
    def _can_go_out(self) -> LeafcastReleaseSpec:
        faults = [*self._faults(), *wave_faults(self.waves)]
        if len(self.waves) == WAVES_MAX:
            said = f"{WAVES_MAX} waves, and one more is the centre's"
            faults.append(Fault("waves", said, f"write at most {WAVES_MAX - 1}"))
        for at, wave in enumerate(self.waves):
            for name in _NOT_YET:
                if getattr(wave, name) is not None:
                    said = f"waves[{at}].{_camel(name)}"
                    faults.append(Fault(said, "a release knows it not yet", "leave it out"))
        if faults:
            raise Faulty(*faults)
        check_sent(wave.selector for wave in self.waves if wave.selector is not None)
        return self

    def _faults(self) -> Iterator[Fault]:
        try:
            check_version(self.version, "version")
        except ReleaseRefused as refused:
            yield Fault("version", refused.why, refused.remedy)
        try:
            NodePath.parse(self.path)
        except BadIdentity:
            yield Fault("path", f'"{self.path}" is not a path in the tree', "write it as in /emea")
        try:
            is_object = isinstance(json.loads(self.manifest), dict)
        except (ValueError, RecursionError):
            is_object = False
        if not is_object or len(self.manifest) > MANIFEST_MAX_CHARACTERS:
            remedy = "write what the publisher's manifest file holds, all of it"
            yield Fault("manifest", "it is no JSON object", remedy)
        if self.success.of != "healthy":
            said = f"{self.success.of} is nothing that a release is counted by"
            yield Fault("success.of", said, "write healthy, or leave it out")


class ReleaseWaveStatus(ApiValue):
    """What was counted of one wave last."""

    name: str
    """The name of the wave."""
    phase: Literal["Pending", "Progressing", "Soaking", "Failed", "Done"] = "Pending"
    """What becomes of it now."""
    members: CountField = 0
    """How many nodes it admits, relays among them."""
    healthy: CountField = 0
    """How many of them run the release and are healthy."""
    failed: CountField = 0
    """How many of them went back to what they ran, or refused it."""
    elsewhere: CountField = 0
    """How many of them are not upgraded through the tree."""
    unheard: CountField = 0
    """How many of those that may begin said nothing of it yet."""


class RunningVersion(ApiValue):
    """How many nodes run a version."""

    version: str
    """The version."""
    nodes: CountField
    """How many nodes run it, as they said last."""


class LeafcastReleaseStatus(ApiValue):
    """How far a release is."""

    observed_generation: Int32 = 0
    """The metadata.generation that this status speaks of."""
    phase: ReleasePhase = "Waiting"
    """What it does now."""
    message: str = ""
    """What it waits for, or what is wrong."""
    attempt: CountField = 0
    """The spec.attempt with which it went out last."""
    centre: str = ""
    """How far the centre itself is; it counts in no wave."""
    wave_name: str = ""
    """The wave that is under way."""
    good_since: str | None = None
    """Since when that wave is good without a break."""
    waves: ListOf[ReleaseWaveStatus] = ()
    """The waves, in order."""
    versions: ListOf[RunningVersion] = ()
    """What the nodes of the whole tree run."""
    failures: ListOf[str] = ()
    """Some of the nodes that could not take it, and why."""


class LeafcastRelease(NamedObject):
    """Has the nodes of the tree run a release of Leafcast, wave by wave."""

    api_version: Literal["leafcast.io/v1alpha1"]
    kind: Literal["LeafcastRelease"]
    spec: LeafcastReleaseSpec
    """Which release, where, and how it goes out."""
    status: LeafcastReleaseStatus | None = None
    """How far it is. Leafcast writes it."""


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.title, rest))
