"""In which order a release is opened for the nodes that its waves admit. Pure.

In each wave relays go first, from the centre down, then edges. Where the wire has edges go first,
the edges of all waves do, and then the relays of all, up to the centre: a relay has to read what
is said by whoever hangs below it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from schemas.records.release_body import RELAYS_ALL, ReleaseWave
from schemas.values.wire import replace


@dataclass(frozen=True, slots=True)
class ReleaseMembers:
    """Whom a wave admits: how many relays of each depth, and how many edges."""

    relays: Mapping[int, int]
    edges: int

    @property
    def all(self) -> int:
        return sum(self.relays.values()) + self.edges

    def of(self, wave: ReleaseWave) -> int:
        """How many of them the wave admits as far as it is open."""
        depths = range(wave.relays_from, wave.relays + 1)
        relays = sum(count for depth, count in self.relays.items() if depth in depths)
        return relays + (self.edges if wave.edges else 0)

    def opened(self, wave: ReleaseWave, after: int = 0) -> ReleaseWave:
        """The wave, open for the next relays below this depth, or for all once there are none."""
        depth = min((depth for depth in self.relays if depth > after), default=None)
        return wave if depth is None else replace(wave, relays=depth, edges=False)


def first_open(
    waves: Sequence[ReleaseWave], members: Sequence[ReleaseMembers], *, edges_first: bool
) -> tuple[ReleaseWave, ...]:
    """Whom a release is let out for to begin with."""
    return (_edges_of(waves[0]) if edges_first else members[0].opened(waves[0]),)


def waves_open(
    waves: Sequence[ReleaseWave], before: Sequence[ReleaseWave], *, edges_first: bool
) -> tuple[ReleaseWave, ...]:
    """The waves that were open, as the spec has them now."""
    kept = tuple(waves[: len(before)])
    if edges_first:
        return tuple(
            replace(wave, relays=was.relays, relays_from=was.relays_from)
            for wave, was in zip(kept, before, strict=False)
        )
    if not kept or len(before) > len(waves) or before[-1].edges:
        return kept
    return (*kept[:-1], replace(kept[-1], relays=before[-1].relays, edges=False))


def waves_following(
    waves: Sequence[ReleaseWave],
    members: Sequence[ReleaseMembers],
    opened: tuple[ReleaseWave, ...],
    *,
    edges_first: bool,
) -> tuple[ReleaseWave, ...] | None:
    """The waves once the next nodes begin, when all that may have begun are good; None: all did."""
    last = opened[-1]
    if edges_first:
        if len(opened) < len(waves):
            return (*opened, _edges_of(waves[len(opened)]))
        above = last.relays_from if last.relays else RELAYS_ALL + 1
        depths = {depth for whom in members for depth in whom.relays if depth < above}
        if not depths:
            return None
        return tuple(replace(wave, relays_from=max(depths)) for wave in waves)
    if not last.edges:
        whole = waves[last.number - 1]
        return (*opened[:-1], members[last.number - 1].opened(whole, last.relays))
    if last.number == len(waves):
        return None
    return (*opened, members[last.number].opened(waves[last.number]))


def _edges_of(wave: ReleaseWave) -> ReleaseWave:
    return replace(wave, relays=0)
