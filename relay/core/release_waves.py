"""Which wave of a release admits a node, by signed records alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from schemas.records.records import BUCKETS, Profile, bucket
from schemas.records.release_body import ReleaseWave
from schemas.records.windows import is_open
from schemas.values.identity import NodePath

_WITHOUT_ZONE = {"zone": "UTC"}
"""A relay has no labels: where a window goes by the zone of the destination, it goes by this."""


def wave_of_edge(waves: Iterable[ReleaseWave], profile: Profile) -> ReleaseWave | None:
    """The first wave that admits an edge; None if none does yet."""
    return next((wave for wave in waves if wave.edges and admits(wave, profile)), None)


def wave_of_centre(waves: Iterable[ReleaseWave]) -> ReleaseWave | None:
    """The wave that admits the centre, and nobody else; None if none does."""
    return next((wave for wave in waves if is_of_centre(wave)), None)


def is_of_centre(wave: ReleaseWave) -> bool:
    """Whether a wave is about the centre alone: whoever hangs below it has a name in its path."""
    return not wave.relays and not wave.edges


def wave_of_relay(
    waves: Iterable[ReleaseWave], path: NodePath, below: Collection[Profile]
) -> ReleaseWave | None:
    """The first wave that admits a relay, as it admits somebody below it, or everybody there."""
    for wave in waves:
        if not wave.relays_from <= len(path.names) <= wave.relays:
            continue
        if _admits_all(wave) and (wave.path.holds(path) or path.holds(wave.path)):
            return wave
        if any(admits(wave, profile) for profile in below):
            return wave
    return None


def admits(wave: ReleaseWave, profile: Profile) -> bool:
    """Whether a wave is about an edge, whether it is open for edges or not."""
    if not wave.path.holds(profile.path):
        return False
    if wave.selector is not None and not wave.selector.matches(profile.labels):
        return False
    return wave.below >= BUCKETS or bucket(profile.destination, wave.salt) < wave.below


def may_begin(wave: ReleaseWave, profile: Profile | None, now_ms: int) -> bool:
    """Whether a node that the wave admits may begin at this hour; a relay has no profile."""
    labels = _WITHOUT_ZONE if profile is None else profile.labels
    return not wave.windows or is_open(wave.windows, labels, now_ms)


def _admits_all(wave: ReleaseWave) -> bool:
    return wave.selector is None and wave.below >= BUCKETS
