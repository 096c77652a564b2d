"""What a tree delivers at one moment, as far as a plan looks at it: placements and inventory.

Of a placement that goes out by gates destinations have different contents, and some stays back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from controllers.core.translation.stored_arms import Entries, differing
from controllers.core.translation.translate import IssuedDelta
from relay.core.gates import Candidate
from schemas.content.blobs import Reference
from schemas.content.manifest import TEMPLATE, ManifestEntry
from schemas.objects.objects import ObjectKey
from schemas.records.placements import title
from schemas.records.records import Alternative, Gate, LocationRecord, Profile, Record
from schemas.values.faults import Fault
from schemas.values.identity import ContentHash, MailKey, NodePath

R = TypeVar("R", bound=Record)

Contents = Mapping[ContentHash, bytes]
"""Plain bytes of blobs, by address; what is not there is told of without its fields."""


@dataclass(frozen=True, slots=True, eq=False)
class Delivery:
    """What one placement has delivered, and to whom; another delivery is another value."""

    name: str
    key: MailKey
    alternatives: tuple[Alternative, ...]
    entries: Entries
    # What can be customized nowhere, by object: as long as it is so the placement stays as it is.
    faults: Mapping[ObjectKey, tuple[Fault, ...]] = field(default_factory=dict)
    # What is not selected any more and stays until a person lets it go, and why.
    held: frozenset[ObjectKey] = frozenset()
    why_held: str = ""
    # What is another at some destinations; then `entries` are those of most.
    arms: Arms | KeptBack | None = None
    # Objects of which the news stays back, or only waits for its turn, each with why.
    back: Mapping[ObjectKey, str] = field(default_factory=dict)
    going: Mapping[ObjectKey, str] = field(default_factory=dict)

    def at(self, profile: Profile | None, locations: tuple[LocationRecord, ...]) -> Delivery:
        """The same as one destination has it."""
        if self.arms is None or profile is None:
            return self
        return self.arms.at(profile, locations)

    def contents(self) -> Iterator[Entries]:
        """What anyone has of it."""
        yield self.entries
        if self.arms is not None:
            yield from self.arms.contents()

    @property
    def title(self) -> str:
        return title(self.name)

    def sealed(self) -> Iterator[Reference]:
        """What of its content is sealed."""
        for entries in self.contents():
            for entry in entries.values():
                if entry.mark:
                    yield from entry.references

    def templates(self) -> tuple[ManifestEntry, ...]:
        """The objects that are customized."""
        return tuple(entry for entry in self.entries.values() if entry.flags & TEMPLATE)


@dataclass(frozen=True, slots=True)
class PlannedState:
    """All that is delivered, and the inventory; states share the value of an equal part."""

    placements: Mapping[MailKey, Delivery]
    profiles: Mapping[MailKey, Profile]
    locations: Mapping[MailKey, LocationRecord]
    # Objects that are deleted from their space.
    gone: frozenset[ObjectKey] = frozenset()
    # Objects that are created.
    new: frozenset[ObjectKey] = frozenset()


def records_of(records: Mapping[MailKey, Record], kind: type[R]) -> dict[MailKey, R]:
    """The records of one kind among all."""
    return {key: record for key, record in records.items() if isinstance(record, kind)}


NOTHING: Mapping[ObjectKey, ManifestEntry] = MappingProxyType({})


Closed = Callable[[Gate, Profile], bool]
"""Whether a destination cannot have taken what a gate gives: its windows were never open since."""


class HeldBack(NamedTuple):
    """What keeps news back: the reason of its hold, what is so, and the next command."""

    reason: str
    said: str
    remedy: str = ""

    def __str__(self) -> str:
        said = ": ".join(filter(None, (self.reason, self.said)))
        return "; ".join(filter(None, (said, self.remedy)))


Waiting = Callable[[Profile, tuple[LocationRecord, ...]], HeldBack | None]
"""For which window a destination waits; None if for none."""


@dataclass(frozen=True, slots=True)
class HoldReasons:
    """Why news of a placement stays back: at and below a place, until a window opens, or at all."""

    everywhere: HeldBack | None = None
    places: Mapping[NodePath, HeldBack] = field(default_factory=dict)
    waiting: Waiting = field(default=lambda _profile, _locations: None)
    # Whether it only waits for its turn elsewhere: then nothing holds it.
    is_going: bool = False

    def at(self, profile: Profile, locations: tuple[LocationRecord, ...]) -> HeldBack | None:
        """What holds it at a destination; None if nothing does."""
        placed = (why for place, why in self.places.items() if place.holds(profile.path))
        why = next(placed, None) or self.waiting(profile, locations)
        return why or (None if self.is_going else self.everywhere)

    @property
    def going(self) -> HeldBack | None:
        """For what it waits where nothing holds it."""
        return self.everywhere if self.is_going else None


NOTHING_HELD = HoldReasons()


class Arms:
    """Who has which content of a placement; a content is one delivery, whoever has it."""

    def __init__(self, delivery: Delivery, issued: IssuedDelta, closed: Closed) -> None:
        self._gates, self._closed = issued.gates, closed
        self._plain = delivery
        self._made: dict[Reference | None, Delivery] = {}
        self._contents = {arm: _content(issued, arm) for arm in {it.arm for it in issued.gates}}

    @property
    def is_one(self) -> bool:
        """Whether everyone has what the delivery says."""
        return all(entries == self._plain.entries for entries in self._contents.values())

    def contents(self) -> Iterable[Entries]:
        return self._contents.values()

    def at(self, profile: Profile, locations: tuple[LocationRecord, ...]) -> Delivery:
        """What a destination has: of a window that was open it is taken that it was used."""
        who = Candidate(profile, lambda _: locations)
        passed = (it for it in self._gates if who.matches(it) and not self._closed(it, profile))
        arm = next((gate.arm for gate in passed), None)
        if arm not in self._made:
            entries = self._contents.get(arm, NOTHING)
            self._made[arm] = replace(self._plain, entries=entries, arms=None)
        return self._made[arm]


class KeptBack:
    """What stays as it is of a placement where something holds its news."""

    def __init__(self, wanted: Delivery, former: Delivery, holding: HoldReasons) -> None:
        self._wanted, self._former, self._holding = wanted, former, holding
        self._made: dict[tuple[int, str], Delivery] = {}

    def contents(self) -> Iterable[Entries]:
        return (self._wanted.entries,)

    def at(self, profile: Profile, locations: tuple[LocationRecord, ...]) -> Delivery:
        """What a destination is to have."""
        why, going = self._holding.at(profile, locations), self._holding.going
        if why is None and going is None:
            return self._wanted
        there = self._former.at(profile, locations)
        known = (id(there), str(why or going))
        if known not in self._made:
            news = differing(there.entries, self._wanted.entries)
            self._made[known] = replace(
                there,
                alternatives=self._wanted.alternatives,
                back={**dict.fromkeys(news if why else (), str(why)), **self._wanted.back},
                going=dict.fromkeys(news if not why else (), str(going)),
            )
        return self._made[known]


def _content(issued: IssuedDelta, arm: Reference | None) -> Entries:
    """What a gate gives; of what nobody can read it is taken that it is the newest."""
    if arm is None:
        return NOTHING
    return issued.others.get(arm.address, issued.entries or NOTHING)
