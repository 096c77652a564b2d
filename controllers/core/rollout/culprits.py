"""Which objects keep a wave from being good: what, where and why, as its members report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet

from relay.core.gates import Candidate, wave_of
from schemas.records.records import Gate, LocationRecord, Profile, Record
from schemas.reports.causes import causes_first
from schemas.reports.reports import ExceptionSample
from schemas.values.identity import MailKey
from schemas.values.wording import namespace_first

NAMED_MAX = 3
REASON_CHARACTERS = 120

InWave = Callable[[AbstractSet[str]], AbstractSet[str]]
"""Which of these paths are of destinations that count in a wave."""


def culprits(samples: Iterable[ExceptionSample], in_wave: InWave) -> str:
    """`shop/deployments.apps/web at /region-1/site-1: ImagePullBackOff`, the worst first.

    At most three of them; "" if no member says what is wrong.
    """
    listed = causes_first(samples, lambda it: (it.severity, it.count, it.object, it.reason))
    members = in_wave({sample.path for sample in listed})
    said = [_said(sample) for sample in listed if sample.path in members]
    more = f"; and {len(said) - NAMED_MAX} more" if len(said) > NAMED_MAX else ""
    return "; ".join(said[:NAMED_MAX]) + more


def members_at(
    records: Mapping[MailKey, Record], gates: Iterable[Gate], name: str, paths: AbstractSet[str]
) -> frozenset[str]:
    """Which of these paths are of destinations that count in the wave of a gate."""
    listed, located = tuple(gates), locations_of(records.values())
    profiles = (it for it in records.values() if isinstance(it, Profile))
    return frozenset(
        str(it.path)
        for it in profiles
        if str(it.path) in paths and wave_of(listed, Candidate(it, located)) == name
    )


def locations_of(records: Iterable[Record]) -> Callable[[Profile], Iterable[LocationRecord]]:
    """Says of a destination which of the Locations among these records it belongs to."""
    locations = [it for it in records if isinstance(it, LocationRecord)]

    def located(profile: Profile) -> Iterable[LocationRecord]:
        return (it for it in locations if _holds(it, profile))

    return located


def _holds(location: LocationRecord, profile: Profile) -> bool:
    selector = location.instance_selector
    same = location.source.space == profile.source.space
    return same and selector is not None and selector.matches(profile.labels)


def _said(sample: ExceptionSample) -> str:
    reason = sample.reason
    if len(reason) > REASON_CHARACTERS:
        reason = f"{reason[: REASON_CHARACTERS - 1]}\N{HORIZONTAL ELLIPSIS}"
    what = f"{namespace_first(sample.object)} " if sample.object else ""
    return f"{what}at {sample.path}: {reason}"
