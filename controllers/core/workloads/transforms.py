"""CustomTransforms: what is taken off all objects of a kind, at the centre, before they are hashed.

One that cannot be read holds the objects of its kind as they went out last: what it was to take off
must not go out for a slip of the pen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from schemas.api import CONTROL_GROUP, CustomTransform, parse_wish
from schemas.api.transform import check_identity
from schemas.objects.json_paths import JsonPath, StepBudget
from schemas.objects.objects import ObjectKey, identity_of
from schemas.values.faults import Faulty, InvalidObject
from schemas.values.fields import Steps

TRANSFORMS = (CONTROL_GROUP, "customtransforms")
ERRORS_MAX = 20
Object = Mapping[str, Any]
Kind = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Transform:
    """One CustomTransform as it is now; with errors nothing of its kind goes out anew."""

    name: str
    remove: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    # The same, read once: a kind may have many objects.
    paths: tuple[JsonPath, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "paths", tuple(map(JsonPath, self.remove)))


class TransformFailed(ValueError):
    """An object that cannot go out for a CustomTransform; says why, and what to do."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(f"{message}; {remedy}")
        self.message = message
        self.remedy = remedy


class Transforms:
    """The CustomTransforms of one space; each change returns the kinds of objects it touches."""

    def __init__(self) -> None:
        self.objects: dict[str, Object] = {}
        self._kinds: dict[str, Kind] = {}
        self._all: dict[str, Transform] = {}
        self._of_kind: dict[Kind, tuple[Transform, ...]] = {}

    @property
    def invalid(self) -> Mapping[str, str]:
        """What is wrong, by name."""
        return {name: "; ".join(it.errors) for name, it in self._all.items() if it.errors}

    def put(self, name: str, obj: Object) -> frozenset[Kind]:
        """Take the present state of one."""
        if obj["metadata"].get("deletionTimestamp"):
            return self.remove(name)
        was_there = self.objects.get(name)
        if was_there is not None and was_there.get("spec") == obj.get("spec"):
            # A list shows it again, or its status is new: to read its paths takes a while.
            self.objects[name] = obj
            return frozenset()
        kind, read = _read(name, obj)
        same = self._all.get(name) == read and self._kinds.get(name) == kind
        touched = frozenset[Kind]() if same else self.remove(name)
        self.objects[name] = obj
        if same:
            return touched
        self._all[name] = read
        if kind is None:
            return touched
        self._kinds[name] = kind
        self._gather(kind)
        return touched | {kind}

    def remove(self, name: str) -> frozenset[Kind]:
        """Take it that one is gone."""
        self._all.pop(name, None)
        self.objects.pop(name, None)
        kind = self._kinds.pop(name, None)
        if kind is None:
            return frozenset()
        self._gather(kind)
        return frozenset({kind})

    def of(self, key: ObjectKey) -> tuple[Transform, ...]:
        """Those that concern an object, in the order of their names."""
        return self._of_kind.get(key.group_resource, ())

    def errors(self, name: str) -> tuple[str, ...]:
        """What is wrong with one."""
        return self._all[name].errors

    def warnings(self, name: str, served: AbstractSet[Kind] | None) -> Iterator[str]:
        """What else is to be known; `served` are the kinds that there are, if that is known."""
        kind = self._kinds.get(name)
        if kind is None:
            return
        what = f"{kind[1]}.{kind[0]}" if kind[0] else kind[1]
        others = [f"customtransform/{it.name}" for it in self._of_kind[kind] if it.name != name]
        if others:
            listed = ", ".join(others[:ERRORS_MAX])
            yield f"{listed}: there for {what}, too; all of them apply"
        if served is not None and kind not in served:
            remedy = "correct it, or apply its definition"
            yield f'spec.resource: the server doesn\'t have a resource type "{what}"; {remedy}'

    def _gather(self, kind: Kind) -> None:
        names = sorted(name for name, known in self._kinds.items() if known == kind)
        self._of_kind[kind] = tuple(self._all[name] for name in names)
        if not names:
            del self._of_kind[kind]


def transform(obj: dict[str, Any], transforms: tuple[Transform, ...]) -> None:
    """Take off an object, in place, what these say; raises TransformFailed."""
    for _ in take_off(obj, transforms):
        pass


def take_off(
    obj: dict[str, Any], transforms: tuple[Transform, ...]
) -> Iterator[tuple[Steps, Transform]]:
    """The same, telling of each part that goes, and for whom; raises TransformFailed."""
    steps = StepBudget()
    for one in transforms:
        about = f"customtransform/{one.name}"
        if one.errors:
            remedy = f"correct {about}; the object stays as it went out last"
            raise TransformFailed(f"{about}: {one.errors[0]}", remedy)
        before = identity_of(obj)
        for path in one.paths:
            try:
                places = path.remove(obj, steps)
                check_identity(path.text, before, obj)
            except Faulty as error:
                fault = error.faults[0]
                said = f"{about}: spec.remove: {fault.message}"
                raise TransformFailed(said, fault.remedy) from error
            yield from ((place, one) for place in reversed(places))


def _read(name: str, obj: Object) -> tuple[Kind | None, Transform]:
    try:
        read = parse_wish(obj)
    except InvalidObject as error:
        return _meant(obj), Transform(name, errors=tuple(map(str, error.faults)))
    assert isinstance(read, CustomTransform)
    return (read.spec.api_group, read.spec.resource), Transform(name, read.spec.remove)


def _meant(obj: Object) -> Kind | None:
    """The kind that one is about which cannot be read, if it says as much."""
    match obj.get("spec"):
        case {"apiGroup": str(group), "resource": str(resource)}:
            return (group, resource)
        case _:
            return None
