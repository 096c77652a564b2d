"""About how many destinations a wave admits, and which values a label has, by the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from controllers.core.ledger.destination_counts import SelectedDestinations
from controllers.core.rollout.waves import labels_of
from schemas.api.rollout_spec import Wave
from schemas.identity import MailKey
from schemas.records import (
    BUCKETS,
    Alternative,
    Profile,
    Record,
    bucket,
)


def matched(records: Mapping[MailKey, Record], meant: tuple[Alternative, ...], wave: Wave) -> int:
    """How many of the destinations that are meant a wave's labels take."""
    reach = SelectedDestinations(records.values())
    return len(_among(reach, reach.destinations(meant), wave))


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
        below = BUCKETS if wave.percent is None else wave.percent * BUCKETS // 100
        among = _among(reach, left, wave)
        admitted = {key for key in among if _bucket(records[key], salt) < below}
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


def _bucket(record: Record, salt: str) -> int:
    assert isinstance(record, Profile)
    return bucket(record.destination, salt)


def label_values(records: Iterable[Record], label: str) -> tuple[str, ...]:
    """The values that a label has among the SyncTargets, sorted."""
    found = {each.labels.get(label) for each in records if isinstance(each, Profile)}
    return tuple(sorted(value for value in found if value is not None))
