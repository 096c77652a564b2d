"""A batch of objects judged whole before any of it is written: what each is, and would become."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from secrets import token_hex
from time import monotonic
from typing import Any

from leafcast.ask.asked_space import AskedSpace
from leafcast.ask.resource_names import ResourceKind, ResourceKinds
from leafcast.ask.session import USER_MANAGER, CallFailed, Session
from leafcast.cli.apply.circles import circles
from leafcast.cli.apply.namespaces import first_of, is_lacking, lacking_namespaces, lacking_text
from leafcast.cli.apply.placing import PLACING_MANAGER, placement_wanted
from leafcast.cli.apply.rollouts import ROLLOUTS, second_rollouts
from leafcast.cli.options.placing import Placing
from leafcast.manifest_sources import BadManifests
from relay.objects.expressions.programs import program_faults
from relay.objects.health_rules import annotation_fault, rule_faults
from relay.objects.merge import same, wish_of
from relay.objects.serving import (
    DEFINITIONS,
    NAMESPACES,
    NO_KIND,
    Serving,
    needs_namespace,
    no_namespace,
)
from relay.objects.stored_object import INVALID, NOT_FOUND, WriteRefused
from relay.space_errors import SpaceError
from relay.space_port import Object
from schemas.kind_check import check_kind
from schemas.objects.manifests import LoadedObject
from schemas.objects.objects import CRD_GROUP, DEFAULT_NAMESPACE, ObjectKey, apply_order, title_of
from schemas.values.faults import InvalidObject
from schemas.values.groups import GROUP
from schemas.values.wording import namespace_first

HOLD_AGAIN_SECONDS = 2.0
SERVED_SECONDS_MAX, LOOK_SECONDS = 10.0, 0.2
"""How long a definition may take until its kind is served, and how often to look."""


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


VERBS = ("created", "configured", "unchanged")


@dataclass(frozen=True, slots=True)
class Change:
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


async def complete(
    session: Session, loaded: Sequence[LoadedObject], namespace: str | None
) -> list[Wish]:
    """Each object with its key and namespace, in an order in which they can be applied.

    Raises BadManifests with all that is wrong, by file and line.
    """
    return complete_by(await _definitions(session), loaded, namespace)


def complete_by(
    definitions: Iterable[Object], loaded: Sequence[LoadedObject], namespace: str | None
) -> list[Wish]:
    """The same by these definitions, and those that are loaded."""
    wishes, faults = _complete(definitions, loaded, namespace)
    if faults:
        raise BadManifests(list(map(str, faults)))
    return list({wish.key: wish for wish in wishes}.values())


async def judge(
    session: Session,
    loaded: Sequence[LoadedObject],
    namespace: str | None,
    unread: Sequence[str] = (),
    placing: Placing | None = None,
    *,
    create_namespaces: bool = False,
) -> list[Change]:
    """What each object would do, nothing written, in an order in which they can be applied.

    With `placing` the placement that it asks for comes last; Namespaces that are not there come
    first if they are to be made. Raises BadManifests with all that is wrong, by file and line: also
    what is `unread`, and what the spaces refuse.
    """
    definitions = await _definitions(session)
    wishes, faults = _complete(definitions, loaded, namespace)
    wishes, twice = _each_once(wishes)
    faults += twice
    if placing is not None and not (faults or unread):
        wishes.append(await _placement(session, placing, wishes))
    if create_namespaces:
        # Not of the placement: what it brings takes its Namespace along.
        lacking = await lacking_namespaces(session, {wish.key for wish in wishes})
        wishes = [*_complete(definitions, lacking, None)[0], *wishes]
    prerequisites = _Prerequisites.by(wishes, unread=bool(unread))
    changes, refused = await _judge(session, wishes, prerequisites)
    if unread or faults or refused:
        places = {f"{one.origin}:{one.line}": at for at, one in enumerate(loaded)}
        found = sorted([*faults, *refused], key=lambda fault: places.get(fault.place, len(places)))
        raise BadManifests([*unread, *map(str, found)])
    return changes


@dataclass(frozen=True, slots=True)
class _Fault:
    """What is wrong with the object at a place."""

    place: str
    said: str

    def __str__(self) -> str:
        return f"{self.place}: {self.said}"


async def _definitions(session: Session) -> Sequence[Object]:
    return (await session.workloads.list(CRD_GROUP, "customresourcedefinitions")).objects


def _complete(
    definitions: Iterable[Object], loaded: Sequence[LoadedObject], namespace: str | None
) -> tuple[list[Wish], list[_Fault]]:
    kinds = ResourceKinds([*definitions, *(one.object for one in loaded)])
    wishes: list[Wish] = []
    faults: list[_Fault] = []
    for one in loaded:
        place = f"{one.origin}:{one.line}"
        found = [*_faults(one.object), *_wrong_namespace(kinds, one.object, namespace)]
        faults += [_Fault(place, said) for said in found]
        if found:
            continue
        wish = _wish(kinds, one.object, namespace or DEFAULT_NAMESPACE, place)
        wishes.append(replace(wish, notes=one.notes))
    return sorted(wishes, key=_order), faults


async def _placement(session: Session, placing: Placing, wishes: Sequence[Wish]) -> Wish:
    """The placement of these wishes; raises BadManifests."""
    objects = {wish.key: wish.object for wish in wishes}
    wanted = await placement_wanted(session, placing, objects)
    kinds = ResourceKinds()
    return Wish(
        wanted, kinds.table.key_of(wanted), kinds.of(wanted), placing.place, PLACING_MANAGER
    )


def _each_once(wishes: Sequence[Wish]) -> tuple[list[Wish], list[_Fault]]:
    """Each object once; one that is given in two ways is at fault, for only one can be meant."""
    once: dict[ObjectKey, Wish] = {}
    faults: list[_Fault] = []
    for wish in wishes:
        first = once.setdefault(wish.key, wish)
        if not same(first.object, wish.object):
            name = namespace_first(str(wish.key))
            where = "here" if first.place == wish.place else f"first at {first.place}"
            said = f"{name} is given twice, {where}, and not alike; leave one out"
            faults.append(_Fault(wish.place, said))
    return list(once.values()), faults


async def _judge(
    session: Session, wishes: Sequence[Wish], prerequisites: _Prerequisites
) -> tuple[list[Change], list[_Fault]]:
    """What each wish would do, and what is refused."""
    changes: list[Change] = []
    by_key = {wish.key: wish for wish in wishes}
    wished = {key: wish.object for key, wish in by_key.items()}
    refused = await circles(session.workloads, wished)
    refused += await second_rollouts(session.workloads, wished)
    faults = [_refusal(by_key[key], said) for key, said in refused]
    homeless: dict[str, list[Wish]] = {}
    unknown: dict[str, list[Wish]] = {}
    for wish in wishes:
        space = session.space_for(wish.key)
        try:
            before = await space.get(wish.key)
            try:
                after = await space.apply(wish.object, wish.manager, dry_run=True)
            except SpaceError as error:
                if not prerequisites.mends(wish, error):
                    raise
                after = prerequisites.judged(wish)
                # Of a kind that comes with the batch the space says no more than that.
                await prerequisites.require_namespace(space, wish.key)
        except (SpaceError, WriteRefused) as error:
            if is_lacking(wish.key, error):
                homeless.setdefault(wish.key.namespace, []).append(wish)
                continue
            said = error.message.removeprefix(f"{wish.key}: ")
            if NO_KIND in said:
                unknown.setdefault(said, []).append(wish)
                continue
            faults.append(_refusal(wish, f"{said}{_of_another_reading(wish)}"))
        else:
            changes.append(Change(wish, before, after))
    for namespace, alike in homeless.items():
        told = lacking_text(namespace, [wish.title for wish in alike])
        faults.append(_Fault(alike[0].place, told))
    for said, alike in unknown.items():
        told = f"{first_of([wish.title for wish in alike])}: {said}"
        faults.append(_Fault(alike[0].place, told))
    return changes, faults


def _of_another_reading(wish: Wish) -> str:
    """The remedy for a file that says which object, or which version of it, was once read."""
    named = [f"metadata.{name}" for name in ("uid", "resourceVersion") if wish.names(name)]
    return f"; leave {' and '.join(named)} out of the file" if named else ""


def _refusal(wish: Wish, said: str) -> _Fault:
    return _Fault(wish.place, f"{wish.title}: {said}")


@dataclass(frozen=True, slots=True)
class _Prerequisites:
    """What a batch brings that others of it lean on; it is not there yet when they are judged."""

    serving: Serving
    namespaces: frozenset[str]
    # Whether some of it could not be read, which may bring any Namespace.
    unread: bool

    @staticmethod
    def by(wishes: Sequence[Wish], *, unread: bool) -> _Prerequisites:
        namespaces = {wish.key.name for wish in wishes if _kind_of(wish) == NAMESPACES}
        definitions = [wish.object for wish in wishes if _kind_of(wish) == DEFINITIONS]
        return _Prerequisites(Serving().extended_by(definitions), frozenset(namespaces), unread)

    def mends(self, wish: Wish, error: SpaceError) -> bool:
        """Whether what the space lacks or says otherwise comes with the batch."""
        if error.reason == NOT_FOUND and NO_KIND not in error.message:
            return self.unread or wish.key.namespace in self.namespaces
        return error.reason in (NOT_FOUND, INVALID) and self.serving.brings(wish.object)

    async def require_namespace(self, space: AskedSpace, key: ObjectKey) -> None:
        """Raises Refused if an object's Namespace is not there, and does not come."""
        needed = needs_namespace(key)
        comes = self.unread or needed is None or needed.name in self.namespaces
        if needed is not None and not comes and await space.get(needed) is None:
            raise no_namespace(key)

    def judged(self, wish: Wish) -> Object:
        """The object as it would be made, by what the batch defines; raises Refused."""
        if self.serving.brings(wish.object):
            self.serving.admitted(wish.object)
        return self.serving.made_whole(wish.key, self.serving.wished(wish.object))


def _kind_of(wish: Wish) -> tuple[str, str]:
    return wish.key.group, wish.key.resource


@asynccontextmanager
async def held_together(session: Session) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """While objects are written one by one, nothing of them goes out: for a minute at most.

    What it gives is to be called between them. A centre that does not answer keeps nothing from
    being written.
    """
    name, said_at = token_hex(8), monotonic()

    async def go_on() -> None:
        nonlocal said_at
        if monotonic() - said_at > HOLD_AGAIN_SECONDS:
            said_at = monotonic()
            await begin()

    async def begin() -> None:
        with suppress(CallFailed):
            await session.call("apply-begin", name=name)

    await begin()
    try:
        yield go_on
    finally:
        with suppress(CallFailed):
            await session.call("apply-end", name=name)


async def make(session: Session, change: Change, brought: Serving) -> Change:
    """Write one wish; what really came of it. Raises SpaceError.

    What the batch defines is `brought`: an API server serves it somewhat later.
    """
    wish = change.wish
    until = session.clock.now().seconds + SERVED_SECONDS_MAX
    while True:
        try:
            after = await session.space_for(wish.key).apply(wish.object, wish.manager)
        except SpaceError as error:
            may_come = error.reason == NOT_FOUND and brought.brings(wish.object)
            if not may_come or session.clock.now().seconds > until:
                raise
            await session.clock.sleep(LOOK_SECONDS)
        else:
            return Change(wish, change.before, after)


def _faults(obj: Any) -> Iterator[str]:
    try:
        parsed = check_kind(obj)
    except InvalidObject as error:
        yield from str(error).splitlines()
        return
    if parsed is None:
        if fault := annotation_fault(obj):
            yield from str(InvalidObject(*title_of(obj), [fault])).splitlines()
        return
    from schemas.api import HealthRule, StatusCollector  # noqa: PLC0415 # only where one is read

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


def _order(wish: Wish) -> tuple[bool, int]:
    """What others lean on first; what sends objects out when they are there.

    How far they go is known before they change.
    """
    first = wish.key.group_resource == ROLLOUTS
    late = wish.key.group == GROUP
    return late, -1 if first else apply_order(wish.key.group, wish.key.resource)
