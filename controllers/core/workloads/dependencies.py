"""Which placements wait for which: who is not there, and who waits for itself by way of others."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from graphlib import TopologicalSorter

from schemas.records.placements import kind_of
from schemas.records.placing import dependencies_of, reached


class Dependencies:
    """What placements say that they wait for; each change returns those that it touches.

    Placements in a circle do not wait for each other.
    """

    def __init__(self) -> None:
        self._named: dict[str, tuple[str, ...]] = {}
        self._waiting: dict[str, set[str]] = {}

    def put(self, name: str, annotations: Mapping[str, str]) -> frozenset[str]:
        """Take what a placement says, or that it came."""
        before = self._circle_through(name)
        self._let_go(name)
        kind = kind_of(name)
        named = tuple(kind.named(each) for each in dependencies_of(annotations))
        if named:
            self._named[name] = named
        for other in named:
            self._waiting.setdefault(other, set()).add(name)
        return frozenset({*before, *self._circle_through(name), *self._waiting.get(name, ())})

    def remove(self, name: str) -> frozenset[str]:
        """Take it that a placement is gone."""
        before = self._circle_through(name)
        self._let_go(name)
        return frozenset({*before, *self._waiting.get(name, ())} - {name})

    def of(self, name: str) -> tuple[str, ...]:
        """What a placement waits for."""
        circle = self._circle_through(name)
        return tuple(other for other in self._named.get(name, ()) if other not in circle)

    def absent(self, name: str, known: Container[str]) -> tuple[str, ...]:
        """What of these is not there."""
        return tuple(other for other in self._named.get(name, ()) if other not in known)

    def ordered(self, names: Iterable[str]) -> list[str]:
        """These placements, each after those of them that it waits for."""
        listed = dict.fromkeys(sorted(names))
        graph = {name: [it for it in self.of(name) if it in listed] for name in listed}
        return list(TopologicalSorter(graph).static_order())

    def waiting(self, names: Iterable[str]) -> frozenset[str]:
        """Those that name one of these."""
        return frozenset(each for name in names for each in self._waiting.get(name, ()))

    def circle(self, name: str) -> tuple[str, ...]:
        """The placements that wait for each other, this one among them; empty if there are none."""
        return tuple(sorted(self._circle_through(name)))

    def _let_go(self, name: str) -> None:
        for other in self._named.pop(name, ()):
            waiting = self._waiting[other]
            waiting.discard(name)
            if not waiting:
                del self._waiting[other]

    def _circle_through(self, name: str) -> set[str]:
        if name not in self._named or name not in self._waiting:
            return set()
        return reached(self._named, name) & reached(self._waiting, name)
