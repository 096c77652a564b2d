"""What one destination has of a placement that goes out by gates, and what keeps it from more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from controllers.core.planning.states import NOTHING, Delivery
from controllers.core.translation.stored_arms import Entries
from controllers.core.translation.translate import Issued
from relay.core.gates import Candidate
from schemas.content.blobs import Reference
from schemas.content.chunks import ManifestEntry
from schemas.identity import NodePath
from schemas.objects import ObjectKey
from schemas.records import LocationRecord, Profile


@dataclass(frozen=True, slots=True)
class Holding:
    """Why news of a placement stays back: everywhere, or at and below a place."""

    everywhere: str = ""
    places: Mapping[NodePath, str] = field(default_factory=dict)
    # Whether it only waits for its turn: then nothing holds it.
    is_going: bool = False

    def at(self, path: NodePath) -> str:
        """Why it stays back at a destination; "" if it does not."""
        if self.everywhere:
            return self.everywhere
        return next((why for place, why in self.places.items() if place.holds(path)), "")


class Arms:
    """Who has which content of a placement; a content is one delivery, whoever has it."""

    def __init__(self, delivery: Delivery, issued: Issued) -> None:
        self._gates = issued.gates
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
        """What a destination has: of closed windows nobody here knows whether it took it before."""
        who = Candidate(profile, lambda _: locations)
        arm = next((gate.arm for gate in self._gates if who.matches(gate)), None)
        if arm not in self._made:
            entries = self._contents.get(arm, NOTHING)
            self._made[arm] = replace(self._plain, entries=entries, arms=None)
        return self._made[arm]


class KeptBack:
    """What stays as it is of a placement where something holds its news."""

    def __init__(self, wanted: Delivery, former: Delivery, holding: Holding) -> None:
        self._wanted, self._former, self._holding = wanted, former, holding
        self._made: dict[tuple[int, str], Delivery] = {}

    def contents(self) -> Iterable[Entries]:
        return (self._wanted.entries,)

    def at(self, profile: Profile, locations: tuple[LocationRecord, ...]) -> Delivery:
        """What a destination is to have."""
        why = self._holding.at(profile.path)
        if not why:
            return self._wanted
        there = self._former.at(profile, locations)
        known = (id(there), why)
        if known not in self._made:
            news = dict.fromkeys(differing(there.entries, self._wanted.entries), why)
            going = news if self._holding.is_going else {}
            self._made[known] = replace(
                there,
                alternatives=self._wanted.alternatives,
                back={**({} if going else news), **self._wanted.back},
                going=going,
            )
        return self._made[known]


def _content(issued: Issued, arm: Reference | None) -> Entries:
    """What a gate gives; of what nobody can read it is taken that it is the newest."""
    if arm is None:
        return NOTHING
    return issued.others.get(arm.address, issued.entries or NOTHING)


def differing(had: Entries, wanted: Entries) -> frozenset[ObjectKey]:
    """The objects of which two contents say something else to a destination."""
    found = set()
    for key in had.keys() | wanted.keys():
        old, new = had.get(key), wanted.get(key)
        if old is None or new is None or _said(old) != _said(new):
            found.add(key)
    return frozenset(found)


def _said(entry: ManifestEntry) -> tuple[object, object]:
    return entry.identity, entry.customizer
