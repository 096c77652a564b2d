"""Which objects wait for others of their placements: a wave begins when the earlier are healthy.

What is taken away goes last, the highest wave first. It is so in placements that name waves; in all
others no object waits for another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from schemas.objects.objects import ObjectKey
from schemas.objects.order import FIRST_WAVE, wave_of
from schemas.values.value import Value


class UnfinishedObject(Value, frozen=True):
    """An object that is not yet as it shall be: not applied, or not healthy; `left`: not gone."""

    placements: tuple[str, ...]
    order: int
    left: bool = False

    @property
    def wave(self) -> int:
        return wave_of(self.order)


@dataclass(slots=True)
class _Placement:
    """One placement's objects that name a wave, and those of all waves that are to come or go."""

    named: set[ObjectKey] = field(default_factory=set)
    coming: dict[int, dict[ObjectKey, None]] = field(default_factory=dict)
    going: dict[int, dict[ObjectKey, None]] = field(default_factory=dict)

    @property
    def front(self) -> tuple[int, int] | None:
        """The first wave that is to come, the last one to go; None if nothing waits in it."""
        if not self.named:
            return None
        return min(self.coming, default=_NEVER), max(self.going, default=-_NEVER)

    @property
    def is_empty(self) -> bool:
        return not (self.named or self.coming or self.going)

    def objects(self) -> Iterator[ObjectKey]:
        """All that may wait."""
        for wave in (*self.coming.values(), *self.going.values()):
            yield from wave


class Waves:
    """The objects of all placements that are not yet as they shall be.

    A change costs what it touches: as many objects as there are to come or go once a wave ends.
    """

    def __init__(self) -> None:
        self._standing: dict[ObjectKey, UnfinishedObject] = {}
        self._named: dict[ObjectKey, tuple[str, ...]] = {}
        self._placements: dict[str, _Placement] = {}

    def put(
        self,
        key: ObjectKey,
        placements: tuple[str, ...],
        order: int,
        standing: UnfinishedObject | None,
    ) -> list[ObjectKey]:
        """Say how an object stands, None: as it shall be; names the others that this concerns.

        `placements` ask for it, or did; `order` tells whether it names a wave.
        """
        named = placements if wave_of(order) not in (0, FIRST_WAVE) else ()
        former, before = self._standing.get(key), self._named.get(key, ())
        if former == standing and before == named:
            return []
        if not (named or self._named):
            # Where no object names a wave none waits for another.
            self._stand(key, former, standing)
            self._forget(former.placements if former is not None else ())
            return []
        touched = dict.fromkeys((*named, *before))
        for each in (former, standing):
            touched |= dict.fromkeys(each.placements if each is not None else ())
        fronts = [(held := self._of(name), held.front) for name in touched]
        if before != named:
            self._name(key, named)
        self._stand(key, former, standing)
        moved = [held for held, front in fronts if held.front != front]
        told = {other: None for held in moved for other in held.objects()}
        self._forget(touched)
        told.pop(key, None)
        return list(told)

    def blocker(self, key: ObjectKey) -> ObjectKey | None:
        """The object that this one waits for; None if it waits for none."""
        standing = self._standing.get(key)
        if standing is None:
            return None
        found = (self._first(name, standing) for name in standing.placements)
        return next(filter(None, found), None)

    def order(self, key: ObjectKey) -> int:
        """The order of one that another waits for."""
        return self._standing[key].order

    def assert_invariants(self) -> None:
        """Assert that what is kept by placement agrees with what is kept by object."""
        for name, held in self._placements.items():
            assert held.named == {key for key, named in self._named.items() if name in named}
            for waves, left in ((held.coming, False), (held.going, True)):
                listed = {(wave, key) for wave, keys in waves.items() for key in keys}
                assert listed == {
                    (it.wave, key)
                    for key, it in self._standing.items()
                    if name in it.placements and it.left == left
                }
                assert all(waves.values())

    def _forget(self, placements: Iterable[str]) -> None:
        """Keep nothing of placements of which no object waits, or names a wave."""
        for name in placements:
            if self._placements[name].is_empty:
                del self._placements[name]

    def _of(self, name: str) -> _Placement:
        return self._placements.setdefault(name, _Placement())

    def _first(self, name: str, standing: UnfinishedObject) -> ObjectKey | None:
        """What of one placement the object waits for."""
        held = self._placements[name]
        if not held.named:
            return None
        coming = min(held.coming, default=_NEVER)
        if not standing.left:
            return next(iter(held.coming[coming])) if coming < standing.wave else None
        if coming < _NEVER:
            return next(iter(held.coming[coming]))
        going = max(held.going, default=-_NEVER)
        return next(iter(held.going[going])) if going > standing.wave else None

    def _name(self, key: ObjectKey, named: tuple[str, ...]) -> None:
        for name in self._named.pop(key, ()):
            self._of(name).named.discard(key)
        for name in named:
            self._of(name).named.add(key)
        if named:
            self._named[key] = named

    def _stand(
        self, key: ObjectKey, former: UnfinishedObject | None, standing: UnfinishedObject | None
    ) -> None:
        self._standing.pop(key, None)
        if former is not None:
            for name in former.placements:
                waves = self._side(name, former)
                del waves[former.wave][key]
                if not waves[former.wave]:
                    del waves[former.wave]
        if standing is not None:
            self._standing[key] = standing
            for name in standing.placements:
                self._side(name, standing).setdefault(standing.wave, {})[key] = None

    def _side(self, name: str, standing: UnfinishedObject) -> dict[int, dict[ObjectKey, None]]:
        held = self._of(name)
        return held.going if standing.left else held.coming


_NEVER = -2 * FIRST_WAVE
