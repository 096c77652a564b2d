"""Destinations of which no key is known: nothing that is sealed opens there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from controllers.core.ledger.destination_counts import SelectedDestinations
from schemas.records.records import Alternative, LocationRecord, Profile, Record
from schemas.values.identity import MailKey


class UnsealableDestinations:
    """Those of a tree that seals; a change costs what changed."""

    def __init__(self, records: Mapping[MailKey, Record]) -> None:
        self._records = records
        self._profiles: dict[MailKey, Profile] = {}
        self._locations: dict[MailKey, LocationRecord] = {}
        self.changed(records.values())

    def changed(self, records: Iterable[Record]) -> None:
        """Take records that came into force, or left it."""
        for record in list(records):
            key = record.source.key
            self._profiles.pop(key, None)
            self._locations.pop(key, None)
            if self._records.get(key) is not record:
                continue
            if isinstance(record, Profile) and not record.fleet_key:
                self._profiles[key] = record
            elif isinstance(record, LocationRecord):
                self._locations[key] = record

    def of(self, alternatives: tuple[Alternative, ...]) -> tuple[str, ...]:
        """The names of those that these select, in order."""
        if not self._profiles:
            return ()
        found = SelectedDestinations([*self._profiles.values(), *self._locations.values()])
        chosen = found.destinations(alternatives)
        return tuple(sorted(self._profiles[key].source.name for key in chosen))
