"""Renaturing: a Denatured stands for the object in its template, under that object's own key.

What would act in a workload description space (roles, webhook configurations, APIServices, quotas)
lies there inert in a Denatured. To placements, and at destinations, it is the plain object.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from schemas.api.denatured import Denatured
from schemas.api.parsing import parse_wish
from schemas.objects.objects import KindTable, Object, ObjectKey, is_terminating
from schemas.values.faults import Fault, InvalidObject
from schemas.values.groups import DENATURED_GROUP

DENATUREDS = (DENATURED_GROUP, "denatureds")
_OWN_METADATA = ("uid", "resourceVersion", "creationTimestamp")


def is_denatured(key: ObjectKey) -> bool:
    return key.group_resource == DENATUREDS


def renature(obj: Object, kinds: KindTable) -> tuple[ObjectKey, Object]:
    """The object that a Denatured holds, and its key; raises InvalidObject.

    Its UID, its version and when it was created are those of the Denatured: with that it came, and
    changes.
    """
    read = parse_wish(obj)
    assert isinstance(read, Denatured)
    template = obj["spec"]["template"]
    key = kinds.key_of(template)
    outer = obj["metadata"]
    own = {field: outer[field] for field in _OWN_METADATA if field in outer}
    metadata = {**template["metadata"], **own}
    if key.namespace:
        metadata["namespace"] = key.namespace
    else:
        metadata.pop("namespace", None)
    return key, {**template, "metadata": metadata}


class Renatured:
    """What the Denatureds of one space hold; of two that hold the same object, the first by name.

    Such an object hides one that lies there plainly under the same key. Each change returns what
    there is now under the keys that it touches, None where there is nothing.
    """

    def __init__(self) -> None:
        self.invalid: dict[str, tuple[str, ...]] = {}
        self.objects: dict[str, Object] = {}
        self._inner: dict[str, ObjectKey] = {}
        self._held: dict[ObjectKey, dict[str, Object]] = {}
        self._plain: dict[ObjectKey, Object] = {}

    def holds(self, key: ObjectKey) -> bool:
        """Whether a Denatured holds the object of this key."""
        return key in self._held

    def put(
        self, name: str, obj: Object, kinds: KindTable, shown: Mapping[ObjectKey, Object]
    ) -> dict[ObjectKey, Object | None]:
        """Take a Denatured's present state; `shown` are the objects that lie there plainly.

        One that is invalid goes on holding what it held last.
        """
        if is_terminating(obj):
            return self.remove(name)
        self.objects[name] = obj
        try:
            key, inner = renature(obj, kinds)
        except InvalidObject as error:
            self.invalid[name] = tuple(map(str, error.faults))
            return {}
        self.invalid.pop(name, None)
        changed = self._let_go(name) if self._inner.get(name, key) != key else {}
        if key not in self._held and key in shown:
            self._plain[key] = shown[key]
        self._inner[name] = key
        self._held.setdefault(key, {})[name] = inner
        return {**changed, key: self._now(key)}

    def remove(self, name: str) -> dict[ObjectKey, Object | None]:
        """Take it that a Denatured is gone."""
        self.invalid.pop(name, None)
        self.objects.pop(name, None)
        return self._let_go(name)

    def _let_go(self, name: str) -> dict[ObjectKey, Object | None]:
        """What there is under its key when a Denatured holds it no more."""
        key = self._inner.pop(name, None)
        if key is None:
            return {}
        held = self._held[key]
        del held[name]
        if held:
            return {key: self._now(key)}
        del self._held[key]
        return {key: self._plain.pop(key, None)}

    def inner(self, name: str) -> ObjectKey | None:
        """The key of the object that a Denatured holds; None if it holds none."""
        return self._inner.get(name)

    def names(self) -> frozenset[str]:
        """The Denatureds that there are."""
        return frozenset({*self._inner, *self.objects})

    def hide(self, key: ObjectKey, obj: Object | None) -> bool:
        """Take what lies plainly under a key, None if nothing does; whether it is hidden."""
        if key not in self._held:
            return False
        if obj is None:
            self._plain.pop(key, None)
        else:
            self._plain[key] = obj
        return True

    def faults(self, keys: Iterable[ObjectKey]) -> tuple[Fault, ...]:
        """Which of these are held by several Denatureds, or lie there plainly besides."""
        found = []
        for key in keys:
            names = sorted(self._held.get(key, ()))
            others = [f"denatured/{name}" for name in names[1:]]
            others += ["the plain object"] if key in self._plain else []
            if others:
                said = f"denatured/{names[0]} counts, and not {', '.join(others)}"
                found.append(Fault(str(key), said, "delete all but one"))
        return tuple(found)

    def _now(self, key: ObjectKey) -> Object | None:
        held = self._held[key]
        return held[min(held)]
