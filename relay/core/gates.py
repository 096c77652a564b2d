"""Whether a destination is meant, which content it gets by the first gate, and its wave.

Who decides it is the destination itself. A parent asks the same of signed profiles where it has to
speak for destinations that do not.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from schemas.content.blobs import Reference
from schemas.objects.selectors import Requirement
from schemas.records.records import (
    BUCKETS,
    OVER_LOCATION,
    Alternative,
    Gate,
    LocationRecord,
    Profile,
    bucket,
)
from schemas.records.windows import Window, is_open
from schemas.reports.reports import ARM_NOTHING


class GateMatch(NamedTuple):
    """What the gates say of one destination now."""

    arm: Reference | None
    # The gate with a name in whose wave it counts; "" in none.
    wave: str = ""
    # It would have other content, but for these windows.
    awaits: tuple[Window, ...] = ()


class SelectedBy(NamedTuple):
    """By which alternative a destination is meant, and whose labels match."""

    alternative: Alternative
    by: Profile | LocationRecord


class Unmet(NamedTuple):
    """Why an alternative does not select a destination."""

    alternative: Alternative
    # Whose labels do not match; None if there is none of its kind, or of its space.
    judged: Profile | LocationRecord | None
    requirement: Requirement | None


class Candidate(NamedTuple):
    """A destination before the gates."""

    profile: Profile
    # The Locations that it belongs to; asked only where a gate selects by them.
    locations: Callable[[Profile], Iterable[LocationRecord]]

    def chosen(self, alternatives: Iterable[Alternative]) -> SelectedBy | None:
        """The first alternative that selects it, by itself or by a Location it belongs to."""
        for each in alternatives:
            for one in self._judged(each):
                if each.selects(one.source.space, one.labels):
                    return SelectedBy(each, one)
        return None

    def unmet(self, alternatives: Iterable[Alternative]) -> Iterator[Unmet]:
        """Why each of these alternatives does not select it, if none does."""
        for each in alternatives:
            judged = [one for one in self._judged(each) if each.admits_space(one.source.space)]
            for one in judged:
                yield Unmet(each, one, each.selector.unmet(one.labels))
            if not judged:
                yield Unmet(each, None, None)

    def _judged(self, alternative: Alternative) -> Iterable[Profile | LocationRecord]:
        """Whose labels an alternative is about."""
        over_location = alternative.over == OVER_LOCATION
        return self.locations(self.profile) if over_location else (self.profile,)

    def matches(self, gate: Gate) -> bool:
        """Whether a gate is meant for it, at whatever hour."""
        profile, selector = self.profile, gate.selector
        if not gate.path.holds(profile.path):
            return False
        if gate.below < BUCKETS and bucket(profile.destination, gate.salt) >= gate.below:
            return False
        if selector is None:
            return True
        if gate.over != OVER_LOCATION:
            return selector.matches(profile.labels)
        return any(selector.matches(each.labels) for each in self.locations(profile))


def admit(gates: Sequence[Gate], who: Candidate, taken: Container[str], now_ms: int) -> GateMatch:
    """What a destination gets that has, or had, the arms of these names.

    A gate outside its windows admits only who took its arm: a window that closes stops nobody, and
    an abort takes back the newest alone. Who waits for one has what a later gate gives it, and
    counts where it waits. The last gate of a delta admits all.
    """
    first: Gate | None = None
    for gate in gates:
        if not who.matches(gate):
            continue
        first = first or gate
        open_now = not gate.windows or is_open(gate.windows, who.profile.labels, now_ms)
        if open_now or arm_name(gate.arm) in taken:
            break
    else:
        raise ValueError("the last gate does not admit all")
    assert first is not None
    waits = first.arm != gate.arm
    return GateMatch(gate.arm, first.name, first.windows if waits else ())


def wave_of(gates: Iterable[Gate], who: Candidate) -> str:
    """The gate with a name in whose wave a destination counts; "" in none."""
    return next((gate.name for gate in gates if who.matches(gate)), "")


def arm_name(arm: Reference | None) -> str:
    """How an arm is named in counts and notes."""
    return ARM_NOTHING if arm is None else arm.address


class GateNames(NamedTuple):
    """What may be counted of a placement."""

    arms: frozenset[str]
    # The gates with a name.
    waves: frozenset[str]


def names_in(gates: Iterable[Gate]) -> GateNames:
    """The names that these gates use."""
    listed = list(gates)
    arms = frozenset(gate.arm.address for gate in listed if gate.arm is not None)
    return GateNames(arms, frozenset(gate.name for gate in listed if gate.name))


WaveNumbers = Mapping[str, int]
"""Numbers of destinations by wave; "" are those in none."""
