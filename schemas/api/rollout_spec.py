"""The spec of a Rollout: how far and how fast a placement's changes go out, and what stops it.

The waves are gone through in order. A destination belongs to the first that admits it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, PlainValidator, WithJsonSchema, model_validator

from schemas.api.readiness import Amount, Share
from schemas.api.shared import ApiValue, ListOf, Selector, check_sent, checked
from schemas.records.placements import KINDS
from schemas.records.records import WINDOWS_MAX
from schemas.records.shares import checked_amount, share_of
from schemas.records.windows import Window, window_fault
from schemas.values import names
from schemas.values.durations import BadDuration, read_duration
from schemas.values.faults import Fault, Faulty

WAVES_MAX = 20
STEPS_MAX = 20
DIFFERENT_WINDOWS_MAX = 64
"""Of one Rollout: for each, and each zone, it is looked up when it opens next."""
HISTORY_DEFAULT, HISTORY_MAX = 10, 50
SPAN_MAX_SECONDS = 30 * 24 * 3600
OF_DESTINATION = "destination"

_DURATION_REMEDY = "write it as in 90s, 30m or 1h30m"


def _duration(text: str) -> str:
    try:
        seconds = read_duration(text)
    except BadDuration:
        raise Faulty(Fault("", f'"{text}" is not a duration', _DURATION_REMEDY)) from None
    if seconds > SPAN_MAX_SECONDS:
        raise Faulty(Fault("", f'"{text}" is over 30 days', "write at most 720h"))
    return text


def _some(form: object) -> int | str:
    amount = checked_amount(form)
    if amount == 0 or (isinstance(amount, str) and not share_of(amount)):
        raise Faulty(Fault("", f"{form} lets nobody begin", "write at least 1, or a share"))
    return amount


def seconds_of(text: str | None) -> float | None:
    """A duration of a Rollout that was checked, in seconds."""
    return None if text is None else read_duration(text)


Duration = Annotated[str, AfterValidator(_duration)]
SomeAmount = Annotated[Any, PlainValidator(_some), WithJsonSchema({})]
_WaveName = Annotated[str, checked(names.dns_label_fault, names.DNS_LABEL_RULE)]
_LabelKey = Annotated[str, checked(names.label_key_fault, names.QUALIFIED_RULE)]


class RolledPlacement(ApiValue):
    """The placement that is rolled out."""

    kind: Literal["EdgePlacement", "BindingPolicy"] = "EdgePlacement"
    """EdgePlacement or BindingPolicy."""
    name: str
    """The name of the placement."""

    @property
    def placement(self) -> str:
        """Its name as `schemas.records.placements` has it."""
        return next(kind.named(self.name) for kind in KINDS if kind.kind == self.kind)


class RolloutWindow(ApiValue):
    """When destinations may begin: from each time of the cron line on, for so long."""

    cron: str
    """When it opens: minute, hour, day of month, month, day of week."""
    duration: Duration
    """How long it is open. A span such as 90s, 30m or 1h30m, at most 720h."""
    zone: str = OF_DESTINATION
    """A time zone such as Europe/Berlin; or destination: the one that the label zone of the
    SyncTarget names."""

    @model_validator(mode="after")
    def _opens(self) -> RolloutWindow:
        if fault := window_fault(self.window):
            said, _, remedy = fault.partition("; ")
            raise Faulty(Fault("", said, remedy))
        return self

    @property
    def window(self) -> Window:
        """The window as gates have it."""
        zone = "" if self.zone == OF_DESTINATION else self.zone
        return Window(self.cron, int(read_duration(self.duration)), zone)


Windows = Annotated[ListOf[RolloutWindow], Field(max_length=WINDOWS_MAX)]


class Rate(ApiValue):
    """How many destinations begin in a minute: always so many, or more with each minute."""

    per_minute: Annotated[int, Field(ge=1, le=10**9)] | None = None
    """How many begin in each minute."""
    base: Annotated[int, Field(ge=1, le=10**9)] | None = None
    """How many begin in the first minute."""
    factor: Annotated[float, Field(gt=1, le=100)] | None = None
    """How many times as many begin in each minute as in the one before."""
    max: Annotated[int, Field(ge=1, le=10**9)] | None = None
    """How many begin in a minute at most."""

    @model_validator(mode="after")
    def _is_one_of_two(self) -> Rate:
        exponential = (self.base, self.factor)
        if self.per_minute is not None and (*exponential, self.max) != (None, None, None):
            raise Faulty(Fault("", "both constant and exponential", "keep perMinute or base"))
        if self.per_minute is None and None in exponential:
            raise Faulty(Fault("", "not complete", "write perMinute, or base and factor"))
        if self.max is not None and self.base is not None and self.max < self.base:
            raise Faulty(Fault("max", f"{self.max} is below base", "write at least base"))
        return self


class PerGroup(ApiValue):
    """One wave for each value that a label of SyncTargets has, in order."""

    label: _LabelKey
    """The key of a label of SyncTargets."""


class Wave(ApiValue):
    """Whom the wave admits, how fast, and what must be so before the next one begins."""

    name: _WaveName
    """The name of the wave, as commands take it."""
    selector: Selector | None = None
    """Admits the SyncTargets whose labels it matches."""
    location_selector: Selector | None = None
    """Admits the SyncTargets at Locations whose labels it matches."""
    percent: Annotated[int, Field(ge=1, le=100)] | None = None
    """Admits so many percent of them, always the same ones first: about so many, as each is
    drawn by its own name."""
    per_group: PerGroup | None = None
    """Makes a wave for each value of a label, in order."""
    max_concurrent: SomeAmount | None = None
    """How many begin at a time: a number, or a share such as 25%. The next begin when these are
    done."""
    rate: Rate | None = None
    """How many begin in a minute."""
    approval: Literal["before", "after"] | None = None
    """Whether a person lets the wave begin (before), or lets it end (after)."""
    soak: Duration | None = None
    """How long it must stay good without a break. A span such as 90s, 30m or 1h30m, at most
    720h."""
    deadline: Duration | None = None
    """How long a wave may take to be good, from its first step on; its soak and waiting for
    windows are not counted. A span such as 90s, 30m or 1h30m, at most 720h."""
    windows: Windows = ()
    """When destinations may begin; who began goes on when a window closes. Always if empty."""
    allow_empty: bool = False
    """Whether the rollout goes on if the wave admits nobody. Else it waits for a person, for
    nobody has tried then what goes out."""

    @model_validator(mode="after")
    def _admits_someone(self) -> Wave:
        if self.selector is not None and self.location_selector is not None:
            message = "a wave goes by labels of SyncTargets or of Locations"
            raise Faulty(Fault("locationSelector", message, "leave one selector out"))
        if self.per_group is not None and self.location_selector is not None:
            message = "perGroup goes by labels of SyncTargets"
            raise Faulty(Fault("perGroup", message, "leave locationSelector out"))
        by = (self.selector, self.location_selector, self.percent, self.per_group)
        if by == (None,) * 4:
            remedy = "write selector, locationSelector, percent or perGroup; percent: 100 for all"
            raise Faulty(Fault("", "it does not say whom it admits", remedy))
        return self


class Success(ApiValue):
    """What a wave must reach: such a share of its reachable members is synced, or healthy."""

    of: Literal["healthy", "synced"] = "healthy"
    """What counts: members that are healthy, or that are synced."""
    minimum: Share = "95%"
    """Which share of the reachable members must be so."""


class Failures(ApiValue):
    """How many members of a wave may fail; from `atLeast` failures on it counts."""

    maximum: Amount = "5%"
    """How many may fail: a number, or a share of the members."""
    at_least: Annotated[int, Field(ge=1, le=10**9)] = 1
    """From how many failures on they count."""


class Offline(ApiValue):
    """Which share of a wave's members may be unreachable when it passes."""

    maximum: Share = "20%"
    """Which share of the members."""


class RolloutSpec(ApiValue):
    """How a placement's changes go out."""

    placement: RolledPlacement
    """The placement whose changes go out by waves."""
    waves: Annotated[ListOf[Wave], Field(min_length=1)]
    """Whom each wave admits, in order. A destination is of the first that admits it."""
    success: Success = Success()
    """When a wave is good."""
    failures: Failures = Failures()
    """How many members of a wave may fail."""
    deadline: Duration | None = None
    """How long a wave may take to be good, from its first step on; its soak and waiting for
    windows are not counted. A span such as 90s, 30m or 1h30m, at most 720h."""
    on_failure: Literal["pause", "abort"] = "pause"
    """What becomes of a wave that failed: pause, and wait for a person; or abort, and give all
    who have it the former content."""
    offline: Offline = Offline()
    """How many members of a wave may be unreachable when it passes."""
    windows: Windows = ()
    """When destinations may begin; who began goes on when a window closes. Always if empty."""
    history: Annotated[int, Field(ge=1, le=HISTORY_MAX)] = HISTORY_DEFAULT
    """How many former contents are kept, to be gone back to."""

    @model_validator(mode="after")
    def _waves_go_on(self) -> RolloutSpec:
        faults = list(wave_faults(self.waves))
        lists = (self.windows, *(wave.windows for wave in self.waves))
        windows = {item.window for listed in lists for item in listed}
        if len(windows) > DIFFERENT_WINDOWS_MAX:
            said = f"{len(windows)} different windows in all waves"
            remedy = f"write at most {DIFFERENT_WINDOWS_MAX}, such as the same ones in each wave"
            faults.append(Fault("waves", said, remedy))
        if faults:
            raise Faulty(*faults)
        check_sent(
            it for wave in self.waves for it in (wave.selector, wave.location_selector) if it
        )
        return self


def wave_faults(waves: tuple[Wave, ...]) -> Iterator[Fault]:
    """What is wrong with waves that follow each other."""
    if len(waves) > WAVES_MAX:
        yield Fault("waves", f"{len(waves)} waves", f"write at most {WAVES_MAX}")
    known: set[str] = set()
    shares: dict[object, int] = {}
    for at, wave in enumerate(waves):
        if wave.name in known:
            yield Fault(f"waves[{at}].name", f'a second wave "{wave.name}"', "rename one")
        known.add(wave.name)
        whom = (wave.selector, wave.location_selector, wave.per_group)
        share = 100 if wave.percent is None else wave.percent
        before = shares.get(whom, 0)
        if share <= before and at:
            said = f"{share} is not above the {before} of an earlier wave"
            yield Fault(f"waves[{at}].percent", said, "let percentages rise")
        shares[whom] = max(share, before)
