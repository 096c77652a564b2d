"""A batch of objects judged whole before any of it is written: what each is, and would become."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from leafcast.ask.resource_names import ResourceKinds
from leafcast.changes.conflicts import circles, second_rollouts
from leafcast.changes.forms import ApplyBatch, Placing
from leafcast.changes.placing import PLACING_MANAGER, placement_wanted
from leafcast.changes.space_pair import SpacePair
from leafcast.changes.wishes import (
    BatchFault,
    PlannedWrite,
    Wish,
    each_once,
    place_of,
    wishes_of,
)
from relay.objects.serving import NO_KIND, Serving, needs_namespace, no_namespace
from relay.objects.stored_object import INVALID
from relay.space_errors import NOT_FOUND, SpaceError
from relay.space_port import Object, Space
from relay.waiting import some_at_once
from schemas.objects.annotations import annotation_faults
from schemas.objects.manifest_files import LoadedObject
from schemas.objects.objects import (
    CRD_GROUP,
    DEFINITIONS,
    NAMESPACES,
    ObjectKey,
    title_of,
    validate_object,
)
from schemas.values.faults import InvalidObject
from schemas.values.wording import many

CREATE = "--create-namespace"


@dataclass(frozen=True, slots=True)
class BatchJudgement:
    """What a batch would do, in an order to apply it; or all that is wrong with it."""

    writes: Sequence[PlannedWrite] = ()
    faults: Sequence[BatchFault] = ()


async def judge(spaces: SpacePair, batch: ApplyBatch) -> BatchJudgement:
    """What each object would do, nothing written.

    With `placing` the placement that it asks for comes last; Namespaces that are not there come
    first if they are to be made. Raises BadManifests if there can be no such placement, SpaceError
    if the spaces cannot be read.
    """
    loaded, faults = await asyncio.to_thread(_valid, batch.loaded)
    definitions = (await spaces.workloads.list(CRD_GROUP, "customresourcedefinitions")).objects
    wishes, wrong = await asyncio.to_thread(wishes_of, definitions, loaded, batch.namespace)
    wishes, twice = each_once(wishes)
    faults += [*wrong, *twice]
    if batch.placing is not None and not (faults or batch.unread):
        wishes.append(await _placement(spaces, batch.placing, wishes))
    if batch.create_namespaces:
        # Not of the placement: what it brings takes its Namespace along.
        lacking = await lacking_namespaces(spaces, {wish.key for wish in wishes})
        wishes = [*wishes_of(definitions, lacking, None)[0], *wishes]
    judging = _Judging(spaces, _Prerequisites.by(wishes, unread=batch.unread))
    faults += await judging.whole(wishes)
    outcomes = await some_at_once(wishes, judging.write)
    return BatchJudgement([it for it in outcomes if it is not None], [*faults, *judging.faults()])


def _valid(loaded: Iterable[LoadedObject]) -> tuple[list[LoadedObject], list[BatchFault]]:
    """Those that are objects at all, and what is wrong with the others."""
    valid: list[LoadedObject] = []
    faults: list[BatchFault] = []
    for each in loaded:
        try:
            _check(each.object)
        except InvalidObject as error:
            faults += [BatchFault(place_of(each), line) for line in str(error).splitlines()]
        else:
            valid.append(each)
    return valid, faults


def _check(obj: Mapping[str, Any]) -> None:
    """Raises InvalidObject, as reading it from a file does."""
    validate_object(obj)
    if wrong := list(annotation_faults(obj)):
        raise InvalidObject(*title_of(obj), wrong)


async def _placement(spaces: SpacePair, placing: Placing, wishes: Sequence[Wish]) -> Wish:
    """The placement of these wishes; raises BadManifests."""
    objects = {wish.key: wish.object for wish in wishes}
    wanted = await placement_wanted(spaces.workloads, placing, objects)
    kinds = ResourceKinds()
    return Wish(
        wanted, kinds.table.key_of(wanted), kinds.of(wanted), placing.place, PLACING_MANAGER
    )


@dataclass(slots=True)
class _Judging:
    """What is refused of a batch, as its wishes are tried one by one."""

    spaces: SpacePair
    prerequisites: _Prerequisites
    _refused: dict[ObjectKey, BatchFault] = field(default_factory=dict)
    # By what they lack, as each is told once.
    _homeless: dict[ObjectKey, Wish] = field(default_factory=dict)
    _unknown: dict[ObjectKey, tuple[Wish, str]] = field(default_factory=dict)
    _order: list[ObjectKey] = field(default_factory=list)

    async def whole(self, wishes: Sequence[Wish]) -> list[BatchFault]:
        """What is wrong with wishes beside each other."""
        self._order = [wish.key for wish in wishes]
        by_key = {wish.key: wish for wish in wishes}
        wished = {key: wish.object for key, wish in by_key.items()}
        refused = await circles(self.spaces.workloads, wished)
        refused += await second_rollouts(self.spaces.workloads, wished)
        return [_refusal(by_key[key], text) for key, text in refused]

    async def write(self, wish: Wish) -> PlannedWrite | None:
        """What a wish would do; None if it is refused, which is noted."""
        space = self.spaces.space_for(wish.key)
        try:
            before = await space.get(wish.key)
            after = await self._after(space, wish)
        except SpaceError as error:
            self._note(wish, error)
            return None
        return PlannedWrite(wish, before, after)

    async def _after(self, space: Space, wish: Wish) -> Object:
        try:
            return await space.apply(wish.object, wish.manager, dry_run=True)
        except SpaceError as error:
            if not self.prerequisites.mends(wish, error):
                raise
        after = self.prerequisites.judged(wish)
        # Of a kind that comes with the batch the space says no more than that.
        await self.prerequisites.require_namespace(space, wish.key)
        return after

    def _note(self, wish: Wish, error: SpaceError) -> None:
        text = error.message.removeprefix(f"{wish.key}: ")
        if is_lacking(wish.key, error):
            self._homeless[wish.key] = wish
        elif NO_KIND in text:
            self._unknown[wish.key] = wish, text
        else:
            self._refused[wish.key] = _refusal(wish, f"{text}{_of_another_reading(wish)}")

    def faults(self) -> Iterator[BatchFault]:
        """All that was noted: what many lack is told once."""
        yield from (self._refused[key] for key in self._order if key in self._refused)
        homeless: dict[str, list[Wish]] = {}
        unknown: dict[str, list[Wish]] = {}
        for key in self._order:
            if key in self._homeless:
                homeless.setdefault(key.namespace, []).append(self._homeless[key])
            elif key in self._unknown:
                wish, text = self._unknown[key]
                unknown.setdefault(text, []).append(wish)
        for namespace, alike in homeless.items():
            told = lacking_text(namespace, [wish.title for wish in alike])
            yield BatchFault(alike[0].place, told)
        for text, alike in unknown.items():
            told = f"{first_of([wish.title for wish in alike])}: {text}"
            yield BatchFault(alike[0].place, told)


def _of_another_reading(wish: Wish) -> str:
    """The remedy for a file that says which object, or which version of it, was once read."""
    fields = [f"metadata.{name}" for name in ("uid", "resourceVersion") if wish.names(name)]
    return f"; leave {' and '.join(fields)} out of the file" if fields else ""


def _refusal(wish: Wish, text: str) -> BatchFault:
    return BatchFault(wish.place, f"{wish.title}: {text}")


@dataclass(frozen=True, slots=True)
class _Prerequisites:
    """What a batch brings that others of it lean on; it is not there yet when they are judged."""

    serving: Serving
    namespaces: frozenset[str]
    # Whether some of it could not be read, which may bring any Namespace.
    unread: bool

    @staticmethod
    def by(wishes: Sequence[Wish], *, unread: bool) -> _Prerequisites:
        namespaces = {wish.key.name for wish in wishes if wish.key.group_resource == NAMESPACES}
        definitions = [wish.object for wish in wishes if wish.key.group_resource == DEFINITIONS]
        return _Prerequisites(Serving().extended_by(definitions), frozenset(namespaces), unread)

    def mends(self, wish: Wish, error: SpaceError) -> bool:
        """Whether what the space lacks or says otherwise comes with the batch."""
        if error.reason == NOT_FOUND and NO_KIND not in error.message:
            return self.unread or wish.key.namespace in self.namespaces
        return error.reason in (NOT_FOUND, INVALID) and self.serving.brings(wish.object)

    async def require_namespace(self, space: Space, key: ObjectKey) -> None:
        """Raises SpaceError if an object's Namespace is not there, and does not come."""
        needed = needs_namespace(key)
        comes = self.unread or needed is None or needed.name in self.namespaces
        if needed is not None and not comes and await space.get(needed) is None:
            raise no_namespace(key)

    def judged(self, wish: Wish) -> Object:
        """The object as it would be made, by what the batch defines; raises SpaceError."""
        if self.serving.brings(wish.object):
            self.serving.admitted(wish.object)
        return self.serving.made_whole(wish.key, self.serving.wished(wish.object))


def is_lacking(key: ObjectKey, error: SpaceError) -> bool:
    """Whether an object is refused because its Namespace is not there."""
    said = f'namespaces "{key.namespace}" not found'
    return bool(key.namespace) and error.reason == NOT_FOUND and said in error.message


def lacking_text(namespace: str, titles: Sequence[str]) -> str:
    """That a Namespace is not there, of all its objects at once, and what to do."""
    said = f'namespaces "{namespace}" not found'
    return f"{first_of(titles)}: {said}; apply the Namespace first, or add {CREATE}"


def first_of(titles: Sequence[str]) -> str:
    """The first of objects of which all the same is said, and how many they are."""
    return titles[0] if not titles[1:] else f"{many(len(titles), 'object')}, such as {titles[0]}"


async def lacking_namespaces(spaces: SpacePair, keys: Set[ObjectKey]) -> list[LoadedObject]:
    """The Namespaces that these objects need, and that neither are there nor among them."""
    needed = {namespace for key in keys if (namespace := needs_namespace(key)) is not None}
    lacking = [key for key in sorted(needed - keys) if await spaces.space_for(key).get(key) is None]
    return [
        LoadedObject(_namespace(key.name), CREATE, number) for number, key in enumerate(lacking, 1)
    ]


def _namespace(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
