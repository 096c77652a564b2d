"""Which records a person means by labels: of what they say, or of whom they are for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum, auto

from controllers.core.ledger.destination_counts import SelectedDestinations
from schemas.objects.selectors import LabelSelector
from schemas.records.records import DeltaHead, LocationRecord, Profile, Record


class Chosen(Enum):
    """What a selector means of one record."""

    WHOLE = auto()
    # Of a placement: some of its destinations, and others too. It is decided as one.
    PARTLY = auto()
    NOT = auto()


class ChosenRecords:
    """What a selector chooses of the records in force.

    A destination and a Location are chosen by their labels; a placement by those of its object, or
    if all that it is for are destinations that are chosen. A label that a placement lacks says
    nothing of it: `region!=eu` does not choose one that is for eu alone.
    """

    def __init__(self, records: Iterable[Record], selector: LabelSelector) -> None:
        listed = list(records)
        self._selector = selector
        self._destinations = SelectedDestinations(listed)
        profiles = (record for record in listed if isinstance(record, Profile))
        self._chosen = {it.source.key for it in profiles if selector.matches(it.labels)}

    def judge(self, record: Record, labels: Mapping[str, str] | None = None) -> Chosen:
        """Whether a record is chosen; `labels` are those of a placement's object, if it is there.

        Nodes and keys never are.
        """
        if isinstance(record, Profile | LocationRecord):
            return Chosen.WHOLE if self._selector.matches(record.labels) else Chosen.NOT
        if not isinstance(record, DeltaHead):
            return Chosen.NOT
        if labels is not None and self._is_said_by(labels):
            return Chosen.WHOLE
        meant = self._destinations.destinations(record.alternatives)
        if not meant & self._chosen:
            return Chosen.NOT
        return Chosen.WHOLE if meant <= self._chosen else Chosen.PARTLY

    def _is_said_by(self, labels: Mapping[str, str]) -> bool:
        """Whether labels that are there meet each requirement."""
        requirements = self._selector.requirements
        return self._selector.matches(labels) and all(it.key in labels for it in requirements)
