"""A space of the centre that misbehaves: it lists nothing, too little, or is another for a time.

What users said is in `objects`, whatever a list shows. Watches tell each change in order, until
they break; then what happened meanwhile is known by the next list only.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from schemas.objects import ObjectKey

Object = dict[str, Any]
Told = Callable[[str, ObjectKey, Object], None]

WHOLE, AWAY, ANOTHER, NOTHING, PAGE, KIND = "whole", "away", "another", "nothing", "page", "kind"
BLIND = (NOTHING, NOTHING, PAGE, PAGE, PAGE, KIND, KIND, ANOTHER, AWAY)
_CRDS = "customresourcedefinitions"


class SpaceAway(Exception):
    """The space does not answer."""


class BlindSpace:
    """Objects by key; `other` is what stands in its place while it is another one.

    What is `hidden` is on no list.
    """

    def __init__(self, identity: str, random: Random, other: dict[ObjectKey, Object]) -> None:
        self.objects: dict[ObjectKey, Object] = {}
        self.view = WHOLE
        self.hidden: dict[ObjectKey, None] = {}
        self._own, self._random, self._other = identity, random, other
        self._revision = 0
        self._watcher: Told | None = None
        self._kinds: tuple[str, ...] = ()
        self._from, self._share = 0.0, 0.0

    @property
    def identity(self) -> str:
        return "elsewhere" if self.view == ANOTHER else self._own

    def put(self, key: ObjectKey, obj: Object) -> None:
        """Make or change an object; a new one gets a uid of its own."""
        self._revision += 1
        known = self.objects.get(key)
        uid = known["metadata"]["uid"] if known else f"{self._own}-{self._revision}"
        stamped = {"uid": uid, "resourceVersion": str(self._revision)}
        self.objects[key] = {**obj, "metadata": {**obj["metadata"], **stamped}}
        self._tell("put", key)

    def delete(self, key: ObjectKey) -> None:
        self._revision += 1
        gone = self.objects.pop(key)
        self._tell("deleted", key, gone)

    def misbehave(self) -> None:
        """From now on show less than there is, or something else; whoever watches must list."""
        kinds = sorted({key.resource for key in self.objects})
        self.view = self._random.choice(BLIND)
        self._from, self._share = self._random.random(), self._random.choice((0.3, 0.7, 0.95))
        gone = self._random.choice(kinds) if kinds else ""
        self._kinds = ("widgets", _CRDS) if gone in ("widgets", _CRDS) else (gone,)
        self.break_watch()

    def behave(self) -> None:
        """Show all that there is, to who lists it anew."""
        self.view = WHOLE
        self.break_watch()

    def shown(self) -> dict[ObjectKey, Object]:
        """What a list shows; raises SpaceAway."""
        match self.view:
            case "away":
                raise SpaceAway
            case "another":
                return dict(self._other)
            case "nothing":
                return {}
            case "kind":
                return {k: o for k, o in self.objects.items() if k.resource not in self._kinds}
            case "page":
                return self._without_a_page()
            case _:
                return {k: o for k, o in self.objects.items() if k not in self.hidden}

    def watch(self, told: Told | None) -> None:
        """Tell this one of all changes from now on, and no other."""
        self._watcher = told

    def break_watch(self) -> None:
        """Whoever watches hears nothing more but that."""
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher("broken", ObjectKey("", "", "", ""), {})

    def _without_a_page(self) -> dict[ObjectKey, Object]:
        keys = sorted(self.objects)
        missing = round(len(keys) * self._share)
        begin = round((len(keys) - missing) * self._from)
        lost = set(keys[begin : begin + missing])
        return {key: obj for key, obj in self.objects.items() if key not in lost}

    def _tell(self, what: str, key: ObjectKey, obj: Object | None = None) -> None:
        # Who watches while another space stands here hears of that one.
        if self._watcher is not None and self.view != ANOTHER:
            self._watcher(what, key, self.objects[key] if obj is None else obj)
