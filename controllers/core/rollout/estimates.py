"""About how many destinations a wave admits, and which values a label has, by the ledger."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from controllers.core.reach import destinations_of
from schemas.api.rollout_spec import Wave
from schemas.identity import MailKey
from schemas.records import (
    BUCKETS,
    OVER_LOCATION,
    OVER_SYNC_TARGET,
    Alternative,
    DeltaHead,
    Profile,
    Record,
    bucket,
)


def members(records: Mapping[MailKey, Record], placement: MailKey, wave: Wave) -> int:
    """How many destinations of a placement a wave admits, waves before it not being asked."""
    head = records.get(placement)
    if not isinstance(head, DeltaHead):
        return 0
    meant = destinations_of(records.values(), head.alternatives)
    selector, over = wave.selector, OVER_SYNC_TARGET
    if wave.location_selector is not None:
        selector, over = wave.location_selector, OVER_LOCATION
    if selector is not None:
        meant &= destinations_of(records.values(), (Alternative(over, selector),))
    share = 100 if wave.percent is None else wave.percent
    return len(meant) * share // 100


def wave_members(
    records: Mapping[MailKey, Record],
    meant: Iterable[Alternative],
    waves: Iterable[Wave],
    salt: str,
) -> tuple[int, ...]:
    """How many destinations each wave admits: the first that does counts."""
    left = set(destinations_of(records.values(), meant))
    found = []
    for wave in waves:
        among: Collection[MailKey] = left
        selector, over = wave.selector, OVER_SYNC_TARGET
        if wave.location_selector is not None:
            selector, over = wave.location_selector, OVER_LOCATION
        if selector is not None:
            among = left & destinations_of(records.values(), (Alternative(over, selector),))
        below = BUCKETS if wave.percent is None else wave.percent * BUCKETS // 100
        admitted = {key for key in among if _bucket(records[key], salt) < below}
        left -= admitted
        found.append(len(admitted))
    return tuple(found)


def _bucket(record: Record, salt: str) -> int:
    assert isinstance(record, Profile)
    return bucket(record.destination, salt)


def label_values(records: Iterable[Record], label: str) -> tuple[str, ...]:
    """The values that a label has among the SyncTargets, sorted."""
    found = {each.labels.get(label) for each in records if isinstance(each, Profile)}
    return tuple(sorted(value for value in found if value is not None))
