"""The verbs that change what lies at the centre: a batch is judged, and what was judged is written.

A command names objects and what it wants of them. What is refused, what goes along, as whom it is
written and in which order is decided here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from leafcast.ask.api import ApiError, verb
from leafcast.ask.asked_space import refusal_form
from leafcast.changes import deletions, forms, writing
from leafcast.changes.batches import Batch, Batches
from leafcast.changes.deletions import AskKeptBack
from leafcast.changes.judge import judge
from leafcast.changes.space_pair import SpacePair
from leafcast.changes.targets import ObjectToDelete, rollouts_of
from leafcast.manifest_sources import BadManifests
from relay.ports import BusBroken, Clock
from relay.space_errors import NOT_FOUND, SpaceError
from relay.space_port import Labels, Object
from relay.waiting import some_at_once
from schemas.objects.objects import ObjectKey
from schemas.values import names
from schemas.values.wire import to_builtins
from schemas.values.wording import namespace_first

LABEL_MANAGER = "leafcast-label"
"""Whose labels are that people set so: no manifest takes them off by leaving them out."""

APPLIES_AT_ONCE = 2
"""So many batches are opened and judged at a time: each may take hundreds of megabytes."""
JUDGED_MAX = 16
"""So many changes are judged, or wait for that: other questions are answered beside them."""

Json = dict[str, Any]
NodesThere = Callable[[], Awaitable[Sequence[str]]]
"""The paths of the nodes in the tree; raises ApiError, BusBroken or SpaceError."""


@dataclass(slots=True)
class ChangeVerbs:
    """Answers about batches of changes in the centre's spaces."""

    _spaces: SpacePair
    batches: Batches
    _clock: Clock
    _nodes_there: NodesThere
    _kept_back: AskKeptBack
    _applies: asyncio.Semaphore = field(
        default_factory=partial(asyncio.Semaphore, APPLIES_AT_ONCE), init=False
    )
    _judged_now: int = field(default=0, init=False)

    @asynccontextmanager
    async def judging(self) -> AsyncIterator[None]:
        """While a change is judged; raises ApiError if too many are."""
        if self._judged_now >= JUDGED_MAX:
            message = f"{JUDGED_MAX} changes are being judged"
            raise ApiError("Busy", message, "try again in a moment")
        self._judged_now += 1
        try:
            yield
        finally:
            self._judged_now -= 1

    @verb(forms.APPLY)
    async def apply(self, batch: Any, *, dry: Any) -> Json:
        """Judge: `{batch, page, more, traced}`, `{faults: [[place, text]]}`, or `{refused}`.

        A page has what would become of them; `batch` is "" if there is nothing to ask for later.
        `traced` says that its traceparent is linked.
        """
        async with self.judging(), self._applies:
            return await self._apply(batch, is_dry=dry is True)

    async def _apply(self, batch: Any, *, is_dry: bool) -> Json:
        try:
            asked = await asyncio.to_thread(forms.read_apply, batch)
            judgement = await judge(self._spaces, asked)
        except (forms.BadBatch, forms.TooLargeBatch) as error:
            raise _no_batch(error) from error
        except BadManifests as error:
            return {"faults": [["", text] for text in error.faults]}
        except SpaceError as error:
            return {"refused": refusal_form(error)}
        if judgement.faults:
            return {"faults": [list(fault) for fault in judgement.faults]}
        made = await asyncio.to_thread(
            writing.batch_of, self._spaces, judgement.writes, self._clock, asked.caller
        )
        more = len(made.pages) > 1
        name = self.batches.keep(made) if more or not is_dry else ""
        page = made.pages[0] if made.pages else ""
        return {"batch": name, "page": page, "more": more, "traced": asked.caller is not None}

    @verb(forms.DELETE)
    async def delete(
        self, objects: Any, fate: Any = "", *, force: Any = False, dry: Any = False
    ) -> Json:
        """Judge a deletion of `[group, resource, namespace, name, uid]`, or `{refused}`.

        `{batch, targets, nodes, unsure, keeping}`: what goes, in order, as `ObjectToDelete`;
        the SyncTargets of nodes that are there, by path; why that cannot be told; what Rollouts
        among these keep back. `batch` is "" if something speaks against it, or it is `dry`.
        """
        if fate not in ("", "freeze", "let-go"):
            raise _invalid(f"the fate {fate!r}", "say freeze or let-go")
        named = dict(_key_and_uid(form) for form in _bounded(objects))
        async with self.judging():
            return await self._delete(named, fate, is_forced=force is True, is_dry=dry is True)

    async def _delete(
        self, named: Mapping[ObjectKey, str], fate: str, *, is_forced: bool, is_dry: bool
    ) -> Json:
        try:
            targets = await deletions.with_contents(self._spaces, named)
        except SpaceError as error:
            return {"refused": refusal_form(error)}
        nodes, unsure = ({}, "") if is_forced else await self._nodes_of(targets)
        keeping = await deletions.kept_back(targets, self._kept_back)
        against = nodes or unsure or not _is_said(fate, keeping, targets)
        name = ""
        if not (is_dry or against):
            name = self.batches.keep(deletions.batch_of(self._spaces, targets, 200 * len(targets)))
        return {
            "batch": name,
            "targets": to_builtins(targets),
            "nodes": nodes,
            "unsure": unsure,
            "keeping": list(keeping),
        }

    @verb(forms.LABEL)
    async def label(self, objects: Any, labels: Any) -> Json:
        """Judge labels, null those that are taken off, of `[group, resource, namespace, name]`.

        `{batch}`, or `{refused}` with what the space says of an object.
        """
        wanted = _labels(labels)
        keys = [_key(form) for form in _bounded(objects)]
        try:
            async with self.judging():
                await some_at_once(keys, self._require)
        except SpaceError as error:
            return {"refused": refusal_form(error)}
        steps = [partial(self._set_labels, key, wanted) for key in keys]
        return {"batch": self.batches.keep(Batch([[step] for step in steps], 200 * len(steps)))}

    @verb(forms.READ)
    async def read(self, batch: Any, page: Any) -> Json:
        """`{page, more}` of what was judged."""
        if type(page) is not int or page < 0:
            raise _invalid(f"the page {page!r}", "say a number")
        text, more = (self.batches.page(batch, number) for number in (page, page + 1))
        return {"page": text, "more": bool(more)}

    @verb(forms.WRITE)
    async def write(self, batch: Any, confirmed: Any = None) -> Json:
        """Write on: `{results, done, warning}`; to be asked for again until it is done.

        `results`, as `forms.pack` has them, are in order `{after}`, `{refused}`, or null of what
        was not begun. `confirmed` are the copies that a person lets go, of each placement.
        """
        copies = {} if confirmed is None else confirmed
        if not isinstance(copies, dict) or not all(map(_is_count, copies.values())):
            raise _invalid("confirmed is no count", "say how many copies of each placement")
        answer = await self.batches.write(batch, copies)
        return {**answer, "results": forms.pack(answer["results"])}

    @verb(forms.END)
    async def end(self, batch: Any) -> Json:
        """Forget a batch, so that nothing more of it is written."""
        self.batches.end(batch)
        return {}

    async def _require(self, key: ObjectKey) -> None:
        """Raises SpaceError if there is no such object."""
        if await self._spaces.space_for(key).get(key) is None:
            raise SpaceError(NOT_FOUND, f"{namespace_first(str(key))} not found")

    async def _set_labels(self, key: ObjectKey, labels: Labels) -> Object:
        return await self._spaces.space_for(key).set_labels(key, labels, LABEL_MANAGER)

    async def _nodes_of(self, targets: Sequence[ObjectToDelete]) -> tuple[dict[str, str], str]:
        """Which SyncTargets are of nodes that are there, by path; or why that cannot be told."""
        by_path = {target.path: target.key.name for target in targets if target.path}
        if not by_path:
            return {}, ""
        try:
            paths = await self._nodes_there()
        except ApiError as error:
            return {}, str(error)
        except (BusBroken, SpaceError) as error:
            return {}, f"{error}; try again in a moment"
        return {path: by_path[path] for path in paths if path in by_path}, ""


def _is_said(fate: str, keeping: Sequence[Any], targets: Sequence[ObjectToDelete]) -> bool:
    """Whether a person said what becomes of placements that Rollouts leave behind."""
    if keeping:
        return bool(fate)
    return fate != "freeze" or not rollouts_of(targets)


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _bounded(objects: Any) -> list[Any]:
    if not isinstance(objects, list):
        raise _invalid("the objects are no list", "say a list of keys")
    if len(objects) > forms.BATCH_OBJECTS_MAX:
        text = f"{len(objects)} objects, at most {forms.BATCH_OBJECTS_MAX} are taken"
        raise ApiError("TooLarge", text, "say less at a time")
    return list(objects)


def _key(form: Any) -> ObjectKey:
    try:
        return forms.read_key(form)
    except forms.BadBatch as error:
        raise _no_batch(error) from error


def _key_and_uid(form: Any) -> tuple[ObjectKey, str]:
    match form:
        case [*key, str(uid)]:
            return _key(key), uid
        case _:
            raise _invalid(f"{form!r}", "say [group, resource, namespace, name, uid]")


def _labels(labels: Any) -> dict[str, str | None]:
    """Labels to set, and those to take off, if they are some."""
    if not isinstance(labels, dict) or not labels:
        raise _invalid("no labels", "say a value, or null, of each")
    for key, value in labels.items():
        if fault := names.label_key_fault(key):
            raise _invalid(f"the label {key!r}: {fault}", "say another one")
        if value is None:
            continue
        if not isinstance(value, str) or names.label_value_fault(value):
            raise _invalid(f"the value {value!r} of the label {key!r}", "say another one")
    return labels


def _no_batch(error: ValueError) -> ApiError:
    if isinstance(error, forms.TooLargeBatch):
        return ApiError("TooLarge", str(error), "say less at a time")
    return _invalid(f"it is no batch: {error}", "use the commands of leafcast")


def _invalid(message: str, remedy: str) -> ApiError:
    return ApiError("Invalid", message, remedy)
