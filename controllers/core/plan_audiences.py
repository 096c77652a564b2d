"""Who is meant before a change and after it, asked destination by destination."""

from __future__ import annotations

from collections.abc import Mapping

from controllers.core.plan_states import State
from relay.core.audience.audience import Audience
from schemas.identity import MailKey, NodePath
from schemas.records import LocationRecord, Profile

_LATER = "later/"
"""Marks a placement as it is afterwards, in an audience of both."""

Placements = tuple[MailKey, ...]


class Audiences:
    """The audiences of two states; they are one if the Locations are the same.

    Nobody is in them: each destination is asked about.
    """

    def __init__(self, before: State, after: State) -> None:
        self._before, self._after = before, after
        self._shared = before.locations is after.locations
        self._former = self._later = _audience(before.locations)
        if not self._shared:
            self._later = _audience(after.locations)
        # By what placements go afterwards in the audience of both: None if it is not meant.
        self._names: dict[MailKey, MailKey] = {}
        self._only_former: set[MailKey] = set()
        for key, delivery in before.placements.items():
            self._former.put_placement(key, delivery.alternatives)
        for key, delivery in after.placements.items():
            if not self._shared:
                self._later.put_placement(key, delivery.alternatives)
                continue
            held = before.placements.get(key)
            if held is None or held.alternatives != delivery.alternatives:
                alias = MailKey(f"{_LATER}{key}")
                self._names[alias] = key
                self._later.put_placement(alias, delivery.alternatives)
                self._only_former.add(key)
        if self._shared:
            self._only_former |= before.placements.keys() - after.placements.keys()

    def meant(self, was: Profile | None, now: Profile | None) -> tuple[Placements, Placements]:
        """The placements that are meant for a destination, before and after."""
        found = () if was is None else tuple(self._former.meant_for(was))
        if not self._shared:
            return found, () if now is None else tuple(self._later.meant_for(now))
        before = tuple(key for key in found if key not in self._names)
        if now is not was:
            found = () if now is None else tuple(self._later.meant_for(now))
        if not self._names and not self._only_former:
            return before, found
        after = (self._names.get(key, key) for key in found if key not in self._only_former)
        return before, tuple(after)

    def located(
        self, was: Profile | None, now: Profile | None
    ) -> tuple[tuple[LocationRecord, ...], tuple[LocationRecord, ...]]:
        """The Locations that a destination belongs to, before and after, by name."""
        return (
            _located(self._former, self._before.locations, was),
            _located(self._later, self._after.locations, now),
        )


def _audience(locations: Mapping[MailKey, LocationRecord]) -> Audience:
    audience = Audience(NodePath())
    for key, location in locations.items():
        audience.put_location(key, location)
    return audience


def _located(
    audience: Audience, locations: Mapping[MailKey, LocationRecord], profile: Profile | None
) -> tuple[LocationRecord, ...]:
    if profile is None:
        return ()
    found = (locations[key] for key in audience.located_at(profile))
    return tuple(sorted(found, key=lambda location: location.source.name))
