"""A batch of manifests as `apply`, `diff` and `plan` have it judged by the centre."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace

from leafcast.ask.resource_names import ResourceKinds
from leafcast.ask.session import Session
from leafcast.changes.forms import (
    APPLY,
    READ,
    ApplyBatch,
    apply_text,
    unpack,
)
from leafcast.changes.judged_batch import JudgedBatch, asked_to_judge
from leafcast.changes.wishes import BatchFault, PlannedWrite, Wish, complete_by, place_of
from leafcast.manifest_sources import BadManifests
from relay.space_errors import SpaceError
from schemas.objects.manifest_files import LoadedObject
from schemas.objects.objects import CRD_GROUP
from schemas.values.codec import from_json, to_json
from schemas.values.refusals import CodecError
from schemas.values.wire import convert


async def complete(
    session: Session, loaded: Sequence[LoadedObject], namespace: str | None
) -> list[Wish]:
    """Each object with its key and namespace, in an order in which they can be applied.

    Raises BadManifests with all that is wrong, by file and line.
    """
    definitions = await session.workloads.list(CRD_GROUP, "customresourcedefinitions")
    return complete_by(definitions.objects, loaded, namespace)


@dataclass(frozen=True, slots=True)
class PlannedBatch:
    """What each object of a batch would do, in the order in which they are applied."""

    writes: Sequence[PlannedWrite]
    batch: JudgedBatch
    # Whether a trace of who asked is linked: a centre of an older release links none.
    is_traced: bool

    async def written(
        self, confirmed: Mapping[str, int]
    ) -> AsyncIterator[tuple[PlannedWrite, SpaceError | None]]:
        """Have them written: what really came of each, or why it was refused; raises CallFailed."""
        async for number, outcome in self.batch.written(confirmed):
            planned = self.writes[number]
            if isinstance(outcome, SpaceError):
                yield planned, outcome
            elif outcome is not None:
                yield PlannedWrite(planned.wish, planned.before, outcome), None


@asynccontextmanager
async def judged(
    session: Session, asked: ApplyBatch, unread: Sequence[str] = (), *, dry: bool = True
) -> AsyncIterator[PlannedBatch]:
    """What each object would do, nothing written; unless it is `dry` it can be written then.

    The placement that it asks for comes last; Namespaces that are not there come
    first if they are to be made. Raises BadManifests with all that is wrong, by file and line: also
    what is `unread`, and what the spaces refuse.
    """
    loaded, faults = asked.loaded, [*_unsayable(asked.loaded)]
    told = [each for each in loaded if place_of(each) not in {fault.place for fault in faults}]
    text = apply_text(replace(asked, loaded=told, unread=bool(unread or faults)))
    answer = await asked_to_judge(session, APPLY, batch=text, dry=dry)
    faults += [BatchFault(*fault) for fault in answer.get("faults", ())]
    if unread or faults:
        places = {place_of(each): at for at, each in enumerate(loaded)}
        faults.sort(key=lambda fault: places.get(fault.place, len(places)))
        raise BadManifests([*unread, *map(str, faults)])
    async with aclosing(JudgedBatch(session, answer["batch"])) as batch:
        forms = unpack(answer["page"])
        page, is_traced = 1, answer.get("traced") is True
        while answer["more"]:
            answer = await session.call(READ, batch=batch.name, page=page)
            forms += unpack(answer["page"])
            page += 1
        writes = [convert(PlannedWrite, form, "a write") for form in forms]
        yield PlannedBatch(writes, batch, is_traced)


def _unsayable(loaded: Sequence[LoadedObject]) -> list[BatchFault]:
    """What no question to the centre can hold, such as half a character."""
    faults = []
    for each in loaded:
        try:
            from_json(to_json(each.object))
        except CodecError as error:
            title = ResourceKinds().of(each.object).title(each.object["metadata"]["name"])
            faults.append(BatchFault(place_of(each), f"{title}: {error}"))
    return faults
