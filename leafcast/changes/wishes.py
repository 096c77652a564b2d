"""Objects as people want them, each complete with its key and namespace; what each would do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from leafcast.ask.resource_names import ResourceKind, ResourceKinds
from leafcast.ask.session import USER_MANAGER
from leafcast.manifest_sources import BadManifests
from relay.objects.merge import same, wish_of
from relay.space_port import Object
from schemas.kind_check import parse_own_kind
from schemas.objects.manifest_files import LoadedObject
from schemas.objects.objects import DEFAULT_NAMESPACE, ObjectKey, apply_order, title_of
from schemas.values.faults import InvalidObject
from schemas.values.groups import GROUP, ROLLOUTS
from schemas.values.wording import namespace_first

VERBS = ("created", "configured", "unchanged")


@dataclass(frozen=True, slots=True)
class Wish:
    """An object as a user wants it, complete with its namespace; `place` is its file and line.

    `notes` say what of it reads otherwise than it is written.
    """

    object: Object
    key: ObjectKey
    kind: ResourceKind
    place: str
    manager: str = USER_MANAGER
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return self.kind.title(self.key.name)

    def names(self, field: str) -> bool:
        """Whether its metadata say anything under this name."""
        return bool(self.object["metadata"].get(field))


@dataclass(frozen=True, slots=True)
class PlannedWrite:
    """What a wish would do: `before` is None for an object that is not there yet."""

    wish: Wish
    before: Object | None
    after: Object

    @property
    def verb(self) -> str:
        """What kubectl says came of it; a status written meanwhile is none of its doing."""
        if self.before is None:
            return "created"
        return "unchanged" if same(wish_of(self.before), wish_of(self.after)) else "configured"


class BatchFault(NamedTuple):
    """What is wrong with the object at a place; "" is the batch."""

    place: str
    text: str

    def __str__(self) -> str:
        return f"{self.place}: {self.text}" if self.place else self.text


def place_of(loaded: LoadedObject) -> str:
    """Its file and line."""
    return f"{loaded.origin}:{loaded.line}"


def complete_by(
    definitions: Iterable[Object], loaded: Sequence[LoadedObject], namespace: str | None
) -> list[Wish]:
    """Each object once with its key and namespace, in an order in which they can be applied.

    Kinds are those of `definitions` and of the objects. Raises BadManifests with all that is wrong,
    by file and line.
    """
    wishes, faults = wishes_of(definitions, loaded, namespace)
    if faults:
        raise BadManifests(list(map(str, faults)))
    return list({wish.key: wish for wish in wishes}.values())


def wishes_of(
    definitions: Iterable[Object], loaded: Sequence[LoadedObject], namespace: str | None
) -> tuple[list[Wish], list[BatchFault]]:
    """The wishes of objects that are right, in an order to apply them, and what is wrong."""
    kinds = ResourceKinds([*definitions, *(each.object for each in loaded)])
    wishes: list[Wish] = []
    faults: list[BatchFault] = []
    for each in loaded:
        place = place_of(each)
        texts = [*_faults(each.object), *_wrong_namespace(kinds, each.object, namespace)]
        faults += [BatchFault(place, text) for text in texts]
        if texts:
            continue
        wish = _wish(kinds, each.object, namespace or DEFAULT_NAMESPACE, place)
        wishes.append(replace(wish, notes=each.notes))
    return sorted(wishes, key=order), faults


def each_once(wishes: Sequence[Wish]) -> tuple[list[Wish], list[BatchFault]]:
    """Each object once; one that is given in two ways is at fault, for only one can be meant."""
    once: dict[ObjectKey, Wish] = {}
    faults: list[BatchFault] = []
    for wish in wishes:
        first = once.setdefault(wish.key, wish)
        if not same(first.object, wish.object):
            name = namespace_first(str(wish.key))
            where = "here" if first.place == wish.place else f"first at {first.place}"
            text = f"{name} is given twice, {where}, and not alike; leave one out"
            faults.append(BatchFault(wish.place, text))
    return list(once.values()), faults


def order(wish: Wish) -> tuple[bool, int]:
    """What others lean on first; what sends objects out when they are there.

    How far they go is known before they change.
    """
    first = wish.key.group_resource == ROLLOUTS
    late = wish.key.group == GROUP
    return late, -1 if first else apply_order(wish.key.group, wish.key.resource)


def _faults(obj: Any) -> Iterator[str]:
    try:
        parsed = parse_own_kind(obj)
    except InvalidObject as error:
        yield from str(error).splitlines()
        return
    if parsed is None:
        # Here, as who only names objects of our kinds needs no rules.
        from relay.objects.health_rules import annotation_fault  # noqa: PLC0415

        if fault := annotation_fault(obj):
            yield from str(InvalidObject(*title_of(obj), [fault])).splitlines()
        return
    from relay.objects.expressions.programs import program_faults  # noqa: PLC0415
    from relay.objects.health_rules import rule_faults  # noqa: PLC0415
    from schemas.api.collectors import StatusCollector  # noqa: PLC0415
    from schemas.api.health_rule import HealthRule  # noqa: PLC0415

    faults = []
    if isinstance(parsed, StatusCollector):
        faults = program_faults(parsed.program)
    elif isinstance(parsed, HealthRule):
        faults = rule_faults(parsed.program)
    if faults:
        yield from str(InvalidObject(parsed.kind, parsed.name, faults)).splitlines()


def _wrong_namespace(kinds: ResourceKinds, obj: Any, namespace: str | None) -> Iterator[str]:
    given = kinds.table.key_of(obj).namespace if obj["metadata"].get("namespace") else ""
    if namespace and given and given != namespace:
        what = f'{obj["kind"]} "{obj["metadata"]["name"]}"'
        yield f"{what}: it says namespace {given}, and -n {namespace} is given; leave -n out"


def _wish(kinds: ResourceKinds, obj: Any, namespace: str, place: str) -> Wish:
    key = kinds.table.key_of(obj, namespace)
    metadata = {name: value for name, value in obj["metadata"].items() if name != "namespace"}
    if key.namespace:
        metadata["namespace"] = key.namespace
    return Wish({**obj, "metadata": metadata}, key, kinds.of(obj), place)
