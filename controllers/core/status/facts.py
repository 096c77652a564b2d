"""What the centre itself knows of a placement, beside what is counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from controllers.core.status.rollout_holds import Steered
from controllers.core.workloads.missing_references import Lack
from schemas.api.placement_details import Hold
from schemas.api.readiness import Readiness
from schemas.objects.objects import ObjectKey
from schemas.values.faults import Fault


@dataclass(frozen=True, slots=True)
class PlacementFacts:
    """What the centre itself knows of a placement, beside the summary."""

    generation: int
    locations: int
    invalid: str = ""
    in_force: bool = True
    """Whether a good state of it is in force, or about to be."""
    removal_held: str = ""
    """What it lost and keeps until someone accepts that, and why."""
    removal_goes_at: int | None = None
    """When that goes by itself, in ms since 1970."""
    faults: tuple[Fault, ...] = ()
    # Objects whose singleton status is asked for, and how many destinations have them, if not one.
    ambiguous: Mapping[ObjectKey, int] = field(default_factory=dict)
    unreturned: tuple[Fault, ...] = ()
    """Objects whose status is asked for, and that the hub does not take."""
    # How many objects it selects.
    selected: int = 0
    # With one it is neither synced nor healthy, whatever is counted.
    lack: Lack | None = None
    missing_collectors: tuple[str, ...] | None = None
    """StatusCollectors that it names and that are not there; None if it names none."""
    sourceless_collectors: tuple[str, ...] = ()
    """Those that it names of what comes up, and that are not over such."""
    left_out_collectors: tuple[str, ...] = ()
    """Those that it has no room for, why, and what to do."""
    uncombined: str = ""
    """Which CombinedStatus the space does not take, and why."""
    uncustomized: tuple[str, ...] = ()
    """The Customizers that are not there, and what becomes of those who ask for them."""
    undenatured: str = ""
    """What of it acts at the centre, and what to do; "" if nothing does."""
    wide: tuple[int, int] | None = None
    """How many objects it selects of how many, if these are almost all."""
    differing: Mapping[str, Sequence[ObjectKey]] = field(default_factory=dict)
    """Placements that say createOnly otherwise, and of which objects."""
    empty_selectors: tuple[str, ...] = ()
    """Selectors of destinations that match nobody, while others do."""
    is_gone: bool = False
    """Whether nothing steers it any more that steered it."""
    is_policy: bool = False
    """Whether it is a BindingPolicy."""
    absent: tuple[str, ...] = ()
    """Placements that it is to wait for, and that are not there."""
    circle: tuple[str, ...] = ()
    """Placements that are to wait for each other, this one among them."""
    keeping: int = 0
    """How many Locations and SyncTargets keep it until who gains it is healthy."""
    keyless: tuple[str, ...] = ()
    """Its destinations that can open none of the Secrets that it selects."""
    holds: tuple[Hold, ...] = ()
    """What else keeps its newest content from destinations; `since` is not theirs to say."""
    name: str = ""
    """As `schemas.records.placements` has it."""
    steered: Steered | None = None
    """Who gets what of it, and what everyone should, if a Rollout steers it, or did."""
    readiness: Readiness = field(default_factory=Readiness)
    """What may be away, or empty, while it counts as ready."""
    away: tuple[str, ...] = ()
    """Places at or below which destinations cannot be reached, and how many each."""

    @property
    def keeping_text(self) -> str:
        """Who keeps it until who gains it is healthy."""
        if self.keeping == 1:
            return (
                "1 Location or SyncTarget that loses it keeps it until all who gain it are healthy"
            )
        who = f"{self.keeping} Locations and SyncTargets that lose it keep it"
        return f"{who} until all who gain it are healthy"

    @property
    def invalid_text(self) -> str:
        """What is wrong with it, and what holds meanwhile; "" if nothing is."""
        if not self.invalid:
            return ""
        if self.in_force:
            return f"{self.invalid}; its last good state stays in force"
        return f"{self.invalid}; it was never valid, so nothing of it goes out"
