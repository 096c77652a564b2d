"""Who is meant before a change and after it, asked destination by destination."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from controllers.core.planning.states import Delivery, PlannedState
from relay.core.audience.audience import Audience
from schemas.records.records import LocationRecord, Profile
from schemas.values.identity import MailKey, NodePath

_LATER = "later/"
"""Marks a placement as it is afterwards, in an audience of both."""

MailKeys = tuple[MailKey, ...]


class AudienceChange(NamedTuple):
    """The placements that are meant for a destination; whether it and its Locations are as ever."""

    before: MailKeys
    after: MailKeys
    same_place: bool


class Audiences:
    """The audiences of two states. Nobody is in them: each destination is asked about.

    Whose Locations stay as they are is looked for in the first one only, which knows the placements
    of both states.
    """

    def __init__(self, before: PlannedState, after: PlannedState) -> None:
        self._before, self._after = before, after
        # How placements that are not the same afterwards are named in the audience of both.
        self._later_names: dict[MailKey, MailKey] = {}
        self._former_only = {
            key
            for key, delivery in before.placements.items()
            if (held := after.placements.get(key)) is None
            or held.alternatives != delivery.alternatives
        }
        self._former = _audience(before.locations, before.placements)
        for key, delivery in after.placements.items():
            if key in self._former_only or key not in before.placements:
                alias = MailKey(f"{_LATER}{key}")
                self._later_names[alias] = key
                self._former.put_placement(alias, delivery.alternatives)
        self._changed = frozenset[MailKey]()
        self._later, self._moved = self._former, _audience({}, {})
        if before.locations is not after.locations:
            former = before.locations
            news = {key: it for key, it in after.locations.items() if former.get(key) != it}
            self._changed = frozenset(news) | (former.keys() - after.locations.keys())
            self._later = _audience(after.locations, after.placements)
            self._moved = _audience(news, {})

    def meant(self, was: Profile | None, now: Profile | None) -> AudienceChange:
        """What is meant for a destination before and after."""
        found = () if was is None else tuple(self._former.meant_for(was))
        same = was is now and self._is_untouched(was)
        before = tuple(key for key in found if key not in self._later_names)
        if same:
            return AudienceChange(before, self._as_later(found), same_place=True)
        if now is None:
            return AudienceChange(before, (), same_place=False)
        if not self._changed:
            return AudienceChange(
                before, self._as_later(self._former.meant_for(now)), same_place=False
            )
        return AudienceChange(before, tuple(self._later.meant_for(now)), same_place=False)

    def located(
        self, was: Profile | None, now: Profile | None
    ) -> tuple[tuple[LocationRecord, ...], tuple[LocationRecord, ...]]:
        """The Locations that a destination belongs to, before and after, by name."""
        found = _located(self._former, self._before.locations, was)
        if was is now and self._is_untouched(was):
            return found, found
        return found, _located(self._later, self._after.locations, now)

    def _is_untouched(self, profile: Profile | None) -> bool:
        """Whether the Locations of a destination stay as they are."""
        if not self._changed or profile is None:
            return True
        if any(key in self._changed for key in self._former.located_at(profile)):
            return False
        return not any(True for _ in self._moved.located_at(profile))

    def _as_later(self, found: Iterable[MailKey]) -> MailKeys:
        if not self._later_names and not self._former_only:
            return tuple(found)
        names = self._later_names
        return tuple(names.get(key, key) for key in found if key not in self._former_only)


def _audience(
    locations: Mapping[MailKey, LocationRecord], placements: Mapping[MailKey, Delivery]
) -> Audience:
    audience = Audience(NodePath())
    for key, location in locations.items():
        audience.put_location(key, location)
    for key, delivery in placements.items():
        audience.put_placement(key, delivery.alternatives)
    return audience


def _located(
    audience: Audience, locations: Mapping[MailKey, LocationRecord], profile: Profile | None
) -> tuple[LocationRecord, ...]:
    if profile is None:
        return ()
    found = (locations[key] for key in audience.located_at(profile))
    return tuple(sorted(found, key=lambda location: location.source.name))
