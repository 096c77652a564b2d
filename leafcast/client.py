"""Leafcast from Python: what a running tree holds and tells, typed; and what it is to do.

`async with connect() as tree:` opens a session with the tree of a data directory. Each method asks
as the command of its name asks, by the same functions. `leafcast` has all names of this module.

Paths are those of nodes, as `/region-1/site-1`; "" as a namespace or a placement is all of them.
Resources go by any name that commands take: `deploy`, `deployments.apps`. So do placements: `shop`,
`epl/shop`, `bp/shop`. Times are seconds, moments are in UTC. Objects are mappings of JSON types.

Besides the errors that a method names, each raises NotRunning if no tree runs, CallFailed with a
`code` and a `remedy` if the tree refuses or does not answer, and SpaceError if a space does. What
cannot be had whole ends in an error that names what is missing, as Unreached does.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from leafcast.ask.asked_space import key_form
from leafcast.ask.combined import CombinedRows, read_combined
from leafcast.ask.destinations import destinations_of_tree, status_by_node
from leafcast.ask.failures import BadAnswer
from leafcast.ask.object_readers import NotFound, reader_of
from leafcast.ask.resource_names import ResourceKind, ResourceKinds, UnknownKind
from leafcast.ask.session import CallFailed, NotRunning, Session, open_session
from leafcast.ask.trace import asked_trace
from leafcast.ask.upsynced import (
    CopiesWanted,
    Unreached,
    Upsynced,
    copies_of_edge,
    copies_of_tree,
)
from leafcast.ask.wait_goals import Goal
from leafcast.ask.waits import SLICE_SECONDS, Wait, asked_to_wait
from leafcast.ask.why import asked_why
from leafcast.changes.asked_batches import PlannedBatch, judged
from leafcast.changes.asked_plans import losses, planned_writes
from leafcast.changes.forms import ApplyBatch, Placing
from leafcast.changes.removals import Removals, changes_that_may_remove
from leafcast.client_plans import ChangePlan, CopyChange
from leafcast.client_values import (
    Applied,
    Cause,
    ChangeTrace,
    CopyStop,
    DestinationOutcome,
    Difference,
    NotApplied,
    PlacementCounts,
    RemovalsUnconfirmed,
    TimeUp,
    TraceStep,
    Watched,
)
from leafcast.data_dir import DataDirUnusable
from leafcast.doctor.asking import asked_facts
from leafcast.doctor.checks import checks
from leafcast.doctor.findings import Check
from leafcast.doctor.space_checks import look_at_spaces
from leafcast.manifest_sources import BadManifests, read_manifests
from leafcast.show.causes import causes
from relay.adapters.clock import SystemDice
from relay.objects.upsynced_form import version_of
from relay.space_errors import SpaceError
from relay.space_port import Interest, Interests, Object, ObjectChange, ObjectsListed, SpaceEvent
from schemas.objects.manifest_files import LoadedObject, read_objects
from schemas.objects.objects import CRD_GROUP, DEFAULT_NAMESPACE, ObjectKey
from schemas.objects.selectors import LabelSelector
from schemas.records.placements import bare_name, kind_of, said_placement
from schemas.values.groups import CONTROL_GROUP
from schemas.values.identity import NodePath, mail_key

__all__ = [
    "Applied",
    "BadAnswer",
    "BadManifests",
    "CallFailed",
    "Cause",
    "ChangePlan",
    "ChangeTrace",
    "Check",
    "CombinedRows",
    "CopyChange",
    "CopyStop",
    "DataDirUnusable",
    "DestinationOutcome",
    "Difference",
    "LabelSelector",
    "NotApplied",
    "NotFound",
    "NotRunning",
    "ObjectKey",
    "PlacementCounts",
    "Placing",
    "RemovalsUnconfirmed",
    "SpaceError",
    "TimeUp",
    "TraceStep",
    "Tree",
    "UnknownKind",
    "Unreached",
    "Upsynced",
    "Watched",
    "connect",
]

_WATCHED_MAX = 256
"""So many changes wait for who watches; more of them make the centre's space wait."""


class Tree:
    """A session with a running tree."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def apply(
        self,
        *manifests: Path | Object,
        namespace: str | None = None,
        placing: Placing | None = None,
        create_namespaces: bool = False,
        confirm_removals: bool = False,
        dry_run: bool = False,
        traceparent: str = "",
    ) -> list[Applied]:
        """Create or update objects at the centre, and a placement of just these if `placing` asks.

        Manifests are files, folders, or objects. All are checked before anything is written: what
        is wrong raises BadManifests, by file and line. RemovalsUnconfirmed is raised, and nothing
        written, if that takes much off edges; NotApplied if the space refuses some of it after all.

        The spans of what changes link to the span that `traceparent` names, in W3C's form; a centre
        of an older release links none. Raises ValueError if it is of another form.
        """
        asked = ApplyBatch(
            _loaded(manifests),
            namespace,
            placing=placing,
            create_namespaces=create_namespaces,
            traceparent=traceparent,
        )
        async with judged(self._session, asked, dry=dry_run) as batch:
            if dry_run:
                return list(map(Applied.of, batch.writes))
            removals = await self._removals(batch)
            gives_up = placing is not None and placing.prune_all and removals.are_of(placing.name)
            if removals.are_large and not (confirm_removals or gives_up):
                raise RemovalsUnconfirmed(removals)
            made, refused = list[Applied](), dict[ObjectKey, str]()
            async for write, error in batch.written(removals.confirmed):
                if error is None:
                    made.append(Applied.of(write))
                else:
                    refused[write.wish.key] = self._session.why(error)
            if refused:
                raise NotApplied(made, refused, len(batch.writes))
            return made

    async def diff(
        self,
        *manifests: Path | Object,
        namespace: str | None = None,
        create_namespaces: bool = False,
    ) -> list[Difference]:
        """What `apply` would change at the centre; [] if nothing. Raises BadManifests."""
        asked = ApplyBatch(_loaded(manifests), namespace, create_namespaces=create_namespaces)
        async with judged(self._session, asked) as batch:
            return [Difference.of(it) for it in batch.writes if it.verb != "unchanged"]

    @asynccontextmanager
    async def plan(
        self,
        *manifests: Path | Object,
        namespace: str | None = None,
        placing: Placing | None = None,
        create_namespaces: bool = False,
    ) -> AsyncIterator[ChangePlan]:
        """What `apply` of these would do at every destination: `async with tree.plan(...) as plan`.

        Raises BadManifests.
        """
        asked = ApplyBatch(
            _loaded(manifests), namespace, placing=placing, create_namespaces=create_namespaces
        )
        async with judged(self._session, asked) as batch:
            writes = batch.writes
        async with planned_writes(self._session, writes) as made:
            yield ChangePlan(made, writes)

    async def wait(
        self,
        *placements: str,
        condition: str = "synced",
        at_least: str = "",
        except_unreachable: bool = False,
        seconds: float = 60.0,
    ) -> list[PlacementCounts]:
        """Wait until placements, or all, are as `condition` says: how they stand then.

        Conditions are `synced`, `healthy`, `ready`, `rolledout` and `delete`; `at_least` is a share
        of the destinations, as 95%. What was applied before counts. Raises TimeUp after so many
        seconds, and CallFailed at once if it cannot come without a person.
        """
        clock = self._session.clock
        until = clock.now().seconds + seconds
        goal, named = Goal(at_least, except_unreachable), list(map(said_placement, placements))
        asked = Wait(named, (condition,), goal, (), seconds)
        while True:
            left = max(0.0, until - clock.now().seconds)
            answer = await asked_to_wait(self._session, asked, min(left, SLICE_SECONDS))
            forms, met = answer["placements"], answer["met"]
            found = list(map(PlacementCounts.of, forms))
            if len(met) == len(forms):
                return found
            if clock.now().seconds >= until:
                pairs = zip(forms, found, strict=True)
                late = [each.name for form, each in pairs if form["name"] not in met]
                raise TimeUp(found, late, condition)

    async def status(self, placement: str = "") -> list[PlacementCounts]:
        """How many destinations are in which state, of one placement or of each."""
        told = await self._session.call("status", placement=said_placement(placement))
        return list(map(PlacementCounts.of, told["placements"]))

    async def causes(self, placement: str = "") -> list[Cause]:
        """What is wrong with a placement, or with any, by cause, the worst first; [] if nothing."""
        found, _ = await status_by_node(self._session, said_placement(placement))
        return list(map(Cause.of, causes(found["placements"])))

    async def why(
        self,
        at: str,
        placement: str = "",
        *,
        resource: str = "",
        name: str = "",
        namespace: str = DEFAULT_NAMESPACE,
    ) -> list[CopyStop]:
        """Why a placement, or one object, is not as it is meant at the destination `at`.

        One CopyStop for each placement that brings the object, or nearly does. Raises ValueError
        unless a placement is named, or a resource and a name.
        """
        if bool(placement) == bool(resource and name):
            raise ValueError("why: name a placement, or a resource and a name, and not both")
        if placement:
            answer = await asked_why(self._session, at, placement=said_placement(placement))
        else:
            key = (await self._resource(resource)).key(namespace, name)
            answer = await asked_why(self._session, at, object=key_form(key))
        return list(map(CopyStop.of, answer["explanations"]))

    async def trace(self, placement: str, *, generation: int = 0, at: str = "") -> ChangeTrace:
        """Where the time of a change of a placement went, the newest unless a generation is named.

        On the way to the node `at`, or on the slowest way.
        """
        return ChangeTrace.of(await asked_trace(self._session, placement, generation, at))

    async def doctor(self) -> list[Check]:
        """What is well with the tree, and what is wrong, why, and what to do."""
        facts = await asked_facts(self._session.call, self._session.data_dir)
        spaces = self._session.data_dir.spaces()
        seen = await look_at_spaces(spaces, self._session.clock, SystemDice())
        return checks(replace(facts, spaces=seen))

    async def get(
        self,
        resource: str,
        name: str,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        at: str | None = None,
    ) -> Object:
        """An object as it lies at the centre, or at the edge `at`.

        Of an edge that is away it is the copy that it brought up, and the annotation
        `leafcast.io/as-of` says of when. Raises NotFound, UnknownKind.
        """
        kind = await self._resource(resource)
        return await reader_of(self._session, at).get(kind, namespace, name)

    async def objects(
        self,
        resource: str,
        *,
        namespace: str = "",
        selector: LabelSelector | None = None,
        at: str | None = None,
    ) -> Sequence[Object]:
        """The objects of a resource in a namespace, or in all, at the centre or at the edge `at`.

        All of them at once; of an edge that is away as `get` says. Raises UnknownKind.
        """
        kind = await self._resource(resource)
        return await reader_of(self._session, at).all_of(kind, namespace, selector)

    async def upsynced(
        self,
        resource: str,
        *,
        at: str | None = None,
        namespace: str = "",
        name: str = "",
        selector: LabelSelector | None = None,
        filter: str = "",  # noqa: A002 - the word that users know
    ) -> AsyncIterator[Upsynced]:
        """What edges brought up of a resource (`plural.group`): of the edge `at`, or of all.

        `filter` is CEL over `returned`, the object, and runs where the copies lie; an object of
        which it says neither true nor false is left out. What changes meanwhile may come twice,
        and nothing is left out. Raises CallFailed of one edge; of all, after what could be had,
        Unreached with the relays that did not answer.
        """
        group, plural = await self._kind(resource)
        wanted = CopiesWanted(group, plural, namespace, name, selector, filter)
        if at is None:
            copies = copies_of_tree(self._session, wanted)
        else:
            copies = copies_of_edge(self._session, NodePath.parse(at), wanted)
        async for copy in copies:
            yield copy

    async def combined_status(self, namespace: str = "") -> AsyncIterator[CombinedRows]:
        """What collectors say of the objects of a namespace, or of all; one for each collector.

        Raises BadAnswer.
        """
        listing = await self._session.workloads.list(
            CONTROL_GROUP, "combinedstatuses", namespace=namespace
        )
        for obj in listing.objects:
            for rows in read_combined(obj):
                yield rows

    async def destinations(
        self,
        placement: str,
        filter: str = "",  # noqa: A002 - the word that users know
    ) -> AsyncIterator[DestinationOutcome]:
        """What became of a placement at each destination, relay by relay.

        It is named as commands name it: `shop`, `epl/shop`, `bp/shop`. `filter` is CEL over `path`,
        `state`, `health`, `wave`, `complete`, `object`, `reason`. Raises CallFailed if there is no
        such placement or the filter is wrong, and Unreached after what could be had.
        """
        told = await self._session.call("status", placement=said_placement(placement))
        # A name alone may be of either kind.
        name = str(told["placements"][0]["name"])
        space = await self._session.workloads.identity()
        key, missing = (
            mail_key(kind_of(name).api, space, "", bare_name(name)),
            dict[NodePath, str](),
        )
        async for form in destinations_of_tree(self._session, key, missing, filter):
            yield DestinationOutcome.of(form)
        if missing:
            raise Unreached(missing)

    async def watch(self, resource: str) -> AsyncGenerator[Watched]:
        """Objects of the centre's, first those there are, and then each change, without end.

        After a break the space is listed again: what is still there may be told twice, and what
        went meanwhile is told as deleted. Whoever stops before the tree does closes it, as by
        `contextlib.aclosing`.
        """
        kind = await self._kind(resource)
        space = self._session.space_for(ObjectKey(*kind, "", ""))
        waiting = asyncio.Queue[Watched](_WATCHED_MAX)
        known: dict[ObjectKey, str] = {}

        async def tell(event: SpaceEvent) -> None:
            for watched in _news(event, known):
                await waiting.put(watched)

        # Owned by the generator, which no `async with` of it can span.
        loop = asyncio.get_running_loop()
        following = loop.create_task(space.follow(Interests([Interest(*kind)]), tell))
        try:
            while True:
                getting = loop.create_task(waiting.get())
                await asyncio.wait((getting, following), return_when=asyncio.FIRST_COMPLETED)
                if not getting.done():
                    getting.cancel()
                    following.result()
                    return
                yield getting.result()
        finally:
            following.cancel()
            await asyncio.wait([following])

    async def _removals(self, batch: PlannedBatch) -> Removals:
        """What a batch takes off edges; raises CallFailed if the centre cannot tell now."""
        written = changes_that_may_remove(batch.writes)
        return Removals(await losses(self._session, written)) if written else Removals()

    async def _resource(self, resource: str) -> ResourceKind:
        """What a word means, also a `plural.group` that only edges know; raises UnknownKind."""
        definitions = await self._session.workloads.list(CRD_GROUP, "customresourcedefinitions")
        return ResourceKinds(definitions.objects).resolve(resource, guess=True)

    async def _kind(self, resource: str) -> tuple[str, str]:
        plural, _, group = resource.partition(".")
        if group:
            return group, plural
        definitions = await self._session.workloads.list(CRD_GROUP, "customresourcedefinitions")
        kind = ResourceKinds(definitions.objects).resolve(resource)
        return kind.group, kind.resource


@asynccontextmanager
async def connect(data_dir: Path | str | None = None) -> AsyncIterator[Tree]:
    """A session with the tree that runs on a data directory, or on the default one.

    Raises NotRunning, or DataDirUnusable if the folder is another user's.
    """
    async with open_session(Path(data_dir) if data_dir is not None else None) as session:
        yield Tree(session)


def _loaded(manifests: Iterable[Path | Object]) -> list[LoadedObject]:
    """All objects that are given; raises BadManifests with all that is wrong."""
    loaded, faults = list[LoadedObject](), list[str]()
    for number, given in enumerate(manifests, 1):
        if isinstance(given, Path):
            try:
                loaded += read_manifests([str(given)], lambda: "", recursive=False)
            except BadManifests as bad:
                faults += bad.faults
        else:
            objects, problems = read_objects(json.dumps(given), f"object {number}")
            loaded += objects
            faults += map(str, problems)
    if faults:
        raise BadManifests(faults)
    return loaded


def _news(event: SpaceEvent, known: dict[ObjectKey, str]) -> Iterator[Watched]:
    """What an event says that was not told; keeps in `known` which versions were."""
    match event:
        case ObjectsListed(_, objects):
            for key in known.keys() - objects:
                del known[key]
                yield Watched("deleted", key, None)
            for key, obj in objects.items():
                if known.get(key) != version_of(obj):
                    yield Watched("modified" if key in known else "added", key, obj)
                    known[key] = version_of(obj)
        case ObjectChange("deleted", key):
            known.pop(key, None)
            yield Watched("deleted", key, None)
        case ObjectChange(kind, key, obj):
            known[key] = version_of(obj)
            yield Watched(kind, key, obj)
        case _:
            return
