"""What a removal by inference takes of the destinations of each placement, by the ledger.

A Location or a few SyncTargets may be all that one placement selects, however small a share of the
inventory they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet

from controllers.core.removal import Held, removals_max
from schemas.identity import MailKey
from schemas.records import (
    OVER_LOCATION,
    Alternative,
    DeltaHead,
    LocationRecord,
    Profile,
    Record,
)

_Alternatives = tuple[Alternative, ...]


def destinations(records: Iterable[Record], alternatives: Iterable[Alternative]) -> set[MailKey]:
    """The mail keys of the profiles in force that these alternatives select."""
    there = [record for record in records if not record.deleted]
    profiles = [record for record in there if isinstance(record, Profile)]
    locations = [record for record in there if isinstance(record, LocationRecord)]
    return _selected(tuple(alternatives), profiles, locations)


def hold_destinations(records: Collection[Record], unseen: AbstractSet[MailKey]) -> Held[MailKey]:
    """Judge the inferred removals of these destinations and Locations by what placements lose.

    Held is what takes part in a loss of more than a fifth, and more than ten, of the destinations
    of one placement.
    """
    if not unseen:
        return Held(frozenset())
    there = [record for record in records if not record.deleted]
    profiles = [record for record in there if isinstance(record, Profile)]
    locations = [record for record in there if isinstance(record, LocationRecord)]
    lost = [record for record in profiles if record.source.key in unseen]
    left = [record for record in locations if record.source.key in unseen]
    few = len(lost) <= removals_max(0)
    if few and not left:
        return Held(frozenset())
    kept = [record for record in profiles if record.source.key not in unseen]
    still = [record for record in locations if record.source.key not in unseen]
    held: set[MailKey] = set()
    reason = ""
    for alternatives, name in _placements(there).items():
        gone = [record for record in left if _chooses(alternatives, record)]
        if few and not gone:
            continue
        before = _selected(alternatives, profiles, locations)
        after = _selected(alternatives, kept, still)
        if len(before - after) <= removals_max(len(before)):
            continue
        held |= {record.source.key for record in gone}
        held |= {record.source.key for record in lost if record.source.key in before}
        reason = reason or (
            f'placement "{name}" would lose {len(before - after)} of its {len(before)}'
            " destinations at once"
        )
    return Held(frozenset(held), reason)


def _placements(records: Iterable[Record]) -> Mapping[_Alternatives, str]:
    """Whom placements in force mean, each with the name of one that does."""
    return {
        record.alternatives: record.source.name
        for record in records
        if isinstance(record, DeltaHead)
    }


def _selected(
    alternatives: _Alternatives, profiles: Iterable[Profile], locations: Iterable[LocationRecord]
) -> set[MailKey]:
    chosen = [record for record in locations if _chooses(alternatives, record)]
    return {
        profile.source.key
        for profile in profiles
        if _means(alternatives, profile) or any(_holds(record, profile) for record in chosen)
    }


def _chooses(alternatives: _Alternatives, location: LocationRecord) -> bool:
    return any(
        alternative.over == OVER_LOCATION
        and alternative.space in ("", location.source.space)
        and alternative.selector.matches(location.labels)
        for alternative in alternatives
    )


def _means(alternatives: _Alternatives, profile: Profile) -> bool:
    return any(
        alternative.over != OVER_LOCATION
        and alternative.space in ("", profile.source.space)
        and alternative.selector.matches(profile.labels)
        for alternative in alternatives
    )


def _holds(location: LocationRecord, profile: Profile) -> bool:
    selector = location.instance_selector
    same = location.source.space == profile.source.space
    return same and selector is not None and selector.matches(profile.labels)
