"""What a tree delivers at one moment, as far as a plan looks at it: placements and inventory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol, TypeVar

from controllers.core.translation.stored_arms import Entries
from schemas.content.blobs import Reference
from schemas.content.manifest import TEMPLATE, ManifestEntry
from schemas.objects.objects import ObjectKey
from schemas.records.placements import title
from schemas.records.records import Alternative, LocationRecord, Profile, Record
from schemas.values.faults import Fault
from schemas.values.identity import ContentHash, MailKey

R = TypeVar("R", bound=Record)

Contents = Mapping[ContentHash, bytes]
"""Plain bytes of blobs, by address; what is not there is told of without its fields."""


class ByDestination(Protocol):
    """What of a placement is not the same everywhere."""

    def at(self, profile: Profile, locations: tuple[LocationRecord, ...]) -> Delivery:
        """What one destination has, or is to have."""
        ...

    def contents(self) -> Iterable[Entries]:
        """All that someone has, or is to have."""
        ...


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
    arms: ByDestination | None = None
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
class State:
    """All that is delivered, and the inventory; states share the value of an equal part."""

    placements: Mapping[MailKey, Delivery]
    profiles: Mapping[MailKey, Profile]
    locations: Mapping[MailKey, LocationRecord]
    # Objects that are deleted from their space.
    gone: frozenset[ObjectKey] = frozenset()
    # Objects that are created.
    new: frozenset[ObjectKey] = frozenset()


class RecordsOf(Mapping[MailKey, R]):
    """The records of one kind among all, where they lie."""

    def __init__(self, records: Mapping[MailKey, Record], kind: type[R]) -> None:
        self._records = records
        self._kind = kind

    def __getitem__(self, key: MailKey) -> R:
        record = self._records[key]
        if not isinstance(record, self._kind):
            raise KeyError(key)
        return record

    def __iter__(self) -> Iterator[MailKey]:
        kind = self._kind
        return (key for key, record in self._records.items() if isinstance(record, kind))

    def __len__(self) -> int:
        return sum(1 for _ in self)


NOTHING: Mapping[ObjectKey, ManifestEntry] = MappingProxyType({})
