"""What a removal by inference takes of the destinations of each placement, by the ledger.

A Location or a few SyncTargets may be all that one placement selects, however small a share of the
inventory they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet

from controllers.core.removal import Held, removals_max
from relay.core.where import Where
from schemas.identity import MailKey, NodePath
from schemas.records import Alternative, DeltaHead, LocationRecord, Profile, Record

_Alternatives = tuple[Alternative, ...]
_ASKED = MailKey("")
"""Under which what is asked for is in force, in a `Where` of this question's own."""


def destinations(records: Iterable[Record], alternatives: Iterable[Alternative]) -> set[MailKey]:
    """The mail keys of the profiles in force that these alternatives select."""
    there = [record for record in records if not record.deleted]
    profiles = [record for record in there if isinstance(record, Profile)]
    return _selected(_located(there), tuple(alternatives), profiles)


def hold_destinations(records: Collection[Record], unseen: AbstractSet[MailKey]) -> Held[MailKey]:
    """Judge the inferred removals of these destinations and Locations by what placements lose.

    Held is what takes part in a loss of more than a fifth, and more than ten, of the destinations
    of one placement.
    """
    if not unseen:
        return Held(frozenset())
    there = [record for record in records if not record.deleted]
    profiles = [record for record in there if isinstance(record, Profile)]
    lost = [record for record in profiles if record.source.key in unseen]
    left = [
        record
        for record in there
        if isinstance(record, LocationRecord) and record.source.key in unseen
    ]
    few = len(lost) <= removals_max(0)
    if few and not left:
        return Held(frozenset())
    kept = [record for record in profiles if record.source.key not in unseen]
    whole = _located(there)
    still = _located(record for record in there if record.source.key not in unseen)
    held: set[MailKey] = set()
    reason = ""
    for alternatives, name in _placements(there).items():
        whole.set_delta(_ASKED, alternatives)
        gone = [record for record in left if whole.bears_on(record, _ASKED)]
        if few and not gone:
            continue
        before = _selected(whole, alternatives, profiles)
        after = _selected(still, alternatives, kept)
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


def _located(records: Iterable[Record]) -> Where:
    """These Locations in force, and nothing else yet."""
    where = Where(NodePath())
    for record in records:
        if isinstance(record, LocationRecord):
            where.set_location(record.source.key, record)
    return where


def _selected(
    where: Where, alternatives: _Alternatives, profiles: Iterable[Profile]
) -> set[MailKey]:
    where.set_delta(_ASKED, alternatives)
    return {profile.source.key for profile in profiles if where.matches(_ASKED, profile)}
