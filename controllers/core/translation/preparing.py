"""What takes long of a translation, done beforehand: in small steps, and each of them once.

A translation is made at one moment, and nothing else goes on meanwhile. So objects are cleaned, and
what blank rows are made of is said, before that; what is remembered of it is found then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet

from controllers.core.translation.clean_objects import BLANK_STEPS_MAX
from controllers.core.translation.placements import Placements
from schemas.objects.objects import ObjectKey

KNOWN_AT_ONCE = 256
"""So many objects that nothing is to be done for are passed in one step."""


def prepare(placements: Placements, name: str, is_sealed: Callable[[str], bool]) -> Iterator[None]:
    """Prepare the translation of a placement, as everything is when each step is made."""
    placement = placements.workloads.placements.get(name)
    if placement is None or not placements.known:
        return
    resolver = placements.workloads.resolver
    cleaned = placements.cleaned[placement.spec.cleaning]
    collecting = placements.workloads.collecting(name) if is_sealed(name) else {}
    room = BLANK_STEPS_MAX
    for at, key in enumerate(sorted(resolver.selection(name)), 1):
        if at % KNOWN_AT_ONCE == 0:
            yield
        programs = collecting.get(key, ()) if room > 0 else ()
        obj = resolver.objects.get(key)
        if obj is None:
            continue
        for steps in cleaned.prepare(key, obj, programs):
            room -= steps
            yield
            if resolver.objects.get(key) is not obj or room < 0:
                break


def unread(placements: Placements, names: Iterable[str]) -> dict[str, frozenset[ObjectKey]]:
    """What these select with only its metadata known, by name; none of the others."""
    found = {name: placements.workloads.partial(name) for name in names}
    return {name: keys for name, keys in found.items() if keys}


def waiting(
    placements: Placements, unprepared: Iterable[str], names: AbstractSet[str]
) -> frozenset[str]:
    """Those of these that wait for what is not prepared yet.

    So does who shares an object with it, or gives it one: that is to go out at once. And so does
    who says that it waits for it.
    """
    found, news = set[str](), set(unprepared)
    depends_on = placements.workloads.dependencies.of
    objects = {name: _objects(placements, name) for name in names}
    while news:
        found |= news
        theirs = set[ObjectKey]().union(*(objects.get(name, ()) for name in news))
        news = {
            name
            for name in names - found
            if not theirs.isdisjoint(objects[name]) or not news.isdisjoint(depends_on(name))
        }
    return frozenset(found)


def _objects(placements: Placements, name: str) -> AbstractSet[ObjectKey]:
    """What a placement selects, and what the ledger has of it."""
    selected = placements.workloads.resolver.selection(name)
    return selected.keys() | placements.entries(name).keys()
