"""About how many destinations a wave admits, and which values a label has, by the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from controllers.core.ledger.destination_counts import SelectedDestinations
from controllers.core.rollout.waves import end_of, labels_of
from schemas.api.rollout_spec import Wave
from schemas.records.records import (
    OVER_LOCATION,
    OVER_SYNC_TARGET,
    Alternative,
    LocationRecord,
    Profile,
    Record,
    bucket,
)
from schemas.values.identity import MailKey


def matched(records: Mapping[MailKey, Record], meant: tuple[Alternative, ...], wave: Wave) -> int:
    """How many of the destinations that are meant a wave's labels take."""
    reach = SelectedDestinations(records.values())
    return len(_among(reach, reach.destinations(meant), wave))


def takes_any(records: Iterable[Record], meant: Iterable[Alternative], wave: Wave) -> bool:
    """Whether a wave's labels take any of the destinations that are meant; ends at the first.

    It is asked of each wave whenever the inventory changes, so nothing is built for it.
    """
    profiles, locations = list[Profile](), list[LocationRecord]()
    for record in records:
        if isinstance(record, Profile):
            profiles.append(record)
        elif isinstance(record, LocationRecord):
            locations.append(record)
    over, selector = labels_of(wave)
    asked = [Alternative(over, selector)] if selector is not None else []
    by_label, by_placement = _Taken(locations, asked), _Taken(locations, meant)
    return any(
        (selector is None or by_label.has(profile)) and by_placement.has(profile)
        for profile in profiles
    )


class _Taken:
    """Whom alternatives take, one destination at a time."""

    def __init__(
        self, locations: Iterable[LocationRecord], alternatives: Iterable[Alternative]
    ) -> None:
        listed = list(alternatives)
        self._targets = [it for it in listed if it.over == OVER_SYNC_TARGET]
        over_locations = [it for it in listed if it.over == OVER_LOCATION]
        # As Locations may be many, each selector of theirs once.
        self._instances = dict.fromkeys(
            (location.source.space, location.instance_selector)
            for location in locations
            if location.instance_selector is not None
            and any(
                it.space in ("", location.source.space) and it.selector.matches(location.labels)
                for it in over_locations
            )
        )

    def has(self, profile: Profile) -> bool:
        space, labels = profile.source.space, profile.labels
        return any(
            it.space in ("", space) and it.selector.matches(labels) for it in self._targets
        ) or any(home == space and selector.matches(labels) for home, selector in self._instances)


def wave_members(
    records: Mapping[MailKey, Record],
    meant: tuple[Alternative, ...],
    waves: Iterable[Wave],
    salt: str,
) -> tuple[int, ...]:
    """How many destinations each wave admits: the first that does counts."""
    reach = SelectedDestinations(records.values())
    left = reach.destinations(meant)
    found = []
    for wave in waves:
        below = end_of(wave)
        among = _among(reach, left, wave)
        profiles = {key: it for key in among if isinstance(it := records[key], Profile)}
        admitted = {k for k, it in profiles.items() if bucket(it.destination, salt) < below}
        left -= admitted
        found.append(len(admitted))
    return tuple(found)


def _among(
    reach: SelectedDestinations, destinations: frozenset[MailKey], wave: Wave
) -> frozenset[MailKey]:
    """Those that the wave's labels take."""
    over, selector = labels_of(wave)
    if selector is None:
        return destinations
    return destinations & reach.destinations((Alternative(over, selector),))


def label_values(records: Iterable[Record], label: str) -> tuple[str, ...]:
    """The values that a label has among the SyncTargets, sorted."""
    found = {each.labels.get(label) for each in records if isinstance(each, Profile)}
    return tuple(sorted(value for value in found if value is not None))
