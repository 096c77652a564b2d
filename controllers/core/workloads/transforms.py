"""CustomTransforms: what is taken off all objects of a kind, at the centre, before they are hashed.

One that cannot be read holds the objects of its kind as they went out last: what it was to take off
must not go out for a slip of the pen.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from controllers.core.workloads.read_objects import ReadObjects
from schemas.api.parsing import parse_wish
from schemas.api.transform import CustomTransform, check_identity
from schemas.objects.json_paths import JsonPath, StepBudget
from schemas.objects.objects import GroupResource, Object, ObjectKey, identity_of, kind_name
from schemas.values.faults import Faulty
from schemas.values.fields import Steps
from schemas.values.groups import CONTROL_GROUP

TRANSFORMS = (CONTROL_GROUP, "customtransforms")
ERRORS_MAX = 20


@dataclass(frozen=True, slots=True)
class Transform:
    """One CustomTransform as it is now; with errors nothing of its kind goes out anew."""

    name: str
    # The kind that it is about, if it says as much.
    kind: GroupResource | None
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


class Transforms(ReadObjects[Transform, GroupResource]):
    """The CustomTransforms of one space; each change returns the kinds of objects it touches."""

    def __init__(self) -> None:
        super().__init__()
        self._of_kind: dict[GroupResource, tuple[Transform, ...]] = {}

    def of(self, key: ObjectKey) -> tuple[Transform, ...]:
        """Those that concern an object, in the order of their names."""
        return self._of_kind.get(key.group_resource, ())

    def warnings(self, name: str, served: AbstractSet[GroupResource] | None) -> tuple[str, ...]:
        """What else is to be known; `served` are the kinds that there are, if that is known."""
        kind, found = self.values[name].kind, list[str]()
        if kind is None:
            return ()
        what = kind_name(*kind)
        others = [f"customtransform/{it.name}" for it in self._of_kind[kind] if it.name != name]
        if others:
            listed = ", ".join(others[:ERRORS_MAX])
            found.append(f"{listed}: there for {what}, too; all of them apply")
        if served is not None and kind not in served:
            remedy = "correct it, or apply its definition"
            said = f'the server doesn\'t have a resource type "{what}"'
            found.append(f"spec.resource: {said}; {remedy}")
        return tuple(found)

    def _read(self, name: str, obj: Object) -> Transform:
        read = parse_wish(obj)
        assert isinstance(read, CustomTransform)
        return Transform(name, (read.spec.api_group, read.spec.resource), read.spec.remove)

    def _unreadable(self, name: str, obj: Object) -> Transform:
        return Transform(name, _meant(obj), errors=self.invalid[name])

    def _touched(
        self, _name: str, before: Transform | None, after: Transform | None
    ) -> frozenset[GroupResource]:
        kinds = frozenset(it.kind for it in (before, after) if it is not None and it.kind)
        for kind in kinds:
            named = sorted(name for name, it in self.values.items() if it.kind == kind)
            self._of_kind[kind] = tuple(self.values[name] for name in named)
        return kinds


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


def _meant(obj: Object) -> GroupResource | None:
    """The kind that one is about which cannot be read, if it says as much."""
    match obj.get("spec"):
        case {"apiGroup": str(group), "resource": str(resource)}:
            return (group, resource)
        case _:
            return None
