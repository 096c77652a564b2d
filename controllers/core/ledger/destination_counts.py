"""What a removal by inference takes of the destinations of each placement, by the ledger.

A Location or a few SyncTargets may be all that one placement selects, however small a share of the
inventory they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet

from controllers.core.ledger.removal import HeldRemoval, removals_max
from relay.core.audience import HERE, Audience
from schemas.records.placements import placement_of
from schemas.records.records import Alternative, DeltaHead, LocationRecord, Profile, Record
from schemas.values.identity import MailKey, NodePath

_Alternatives = tuple[Alternative, ...]
_ASKED = MailKey("")
"""Under which what is asked for is in force, in an audience of this question's own."""


def count_destinations(records: Iterable[Record], alternatives: Iterable[Alternative]) -> int:
    """How many destinations in force these alternatives select."""
    return SelectedDestinations(records).count(tuple(alternatives))


def hold_destinations(
    records: Collection[Record], unseen: AbstractSet[MailKey]
) -> HeldRemoval[MailKey]:
    """Judge the inferred removals of these destinations and Locations by what placements lose.

    Held is what takes part in a loss of more than a fifth, and more than ten, of the destinations
    of one placement.
    """
    if not unseen:
        return HeldRemoval(frozenset())
    lost = [item for item in records if isinstance(item, Profile) and item.source.key in unseen]
    left = [
        item for item in records if isinstance(item, LocationRecord) and item.source.key in unseen
    ]
    few = len(lost) <= removals_max(0)
    if few and not left:
        return HeldRemoval(frozenset())
    whole = SelectedDestinations(records)
    still = SelectedDestinations(record for record in records if record.source.key not in unseen)
    held: set[MailKey] = set()
    reason = ""
    for alternatives, name in _placements(records).items():
        before = whole.count(alternatives)
        gone = [record for record in left if whole.bears_on(record)]
        if few and not gone:
            continue
        losses = before - still.count(alternatives)
        if losses <= removals_max(before):
            continue
        held |= {record.source.key for record in gone}
        held |= {record.source.key for record in lost if whole.selects(record)}
        reason = reason or (
            f'placement "{name}" would lose {losses} of its {before} destinations at once'
        )
    return HeldRemoval(frozenset(held), reason)


def _placements(records: Iterable[Record]) -> Mapping[_Alternatives, str]:
    """Whom placements in force mean, each with the name of one that does."""
    return {
        record.alternatives: placement_of(record.source) or record.source.name
        for record in records
        if isinstance(record, DeltaHead)
    }


class SelectedDestinations:
    """Whom one list of alternatives after the other selects of an inventory."""

    def __init__(self, records: Iterable[Record]) -> None:
        centre = NodePath()
        self._audience = Audience(centre)
        self._children = {HERE}
        for record in records:
            if isinstance(record, Profile):
                self._audience.put_profile(record.source.key, record)
                self._children.add(centre.step_towards(record.path) or HERE)
            elif isinstance(record, LocationRecord):
                self._audience.put_location(record.source.key, record)

    def count(self, alternatives: _Alternatives) -> int:
        """How many destinations these select; the other questions are about them from now on."""
        self._audience.put_placement(_ASKED, alternatives)
        return sum(self._audience.expected(_ASKED, child) for child in self._children)

    def destinations(self, alternatives: _Alternatives) -> frozenset[MailKey]:
        """Which destinations these select."""
        self._audience.put_placement(_ASKED, alternatives)
        listed = (self._audience.profiles(_ASKED, child) for child in self._children)
        return frozenset(key for found in listed for key in found)

    def bears_on(self, location: LocationRecord) -> bool:
        return self._audience.bears_on(location, _ASKED)

    def selects(self, profile: Profile) -> bool:
        return _ASKED in self._audience.placements_of(profile.source.key)
