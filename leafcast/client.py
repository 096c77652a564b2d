"""Leafcast from Python: what a running tree holds and tells, typed, and never held whole.

`async with connect() as tree:` opens a session with the tree of a data directory. What cannot be
had whole ends in an error that names what is missing: `CallFailed`, `Unreached`, `NotRunning`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from leafcast.ask.combined import CombinedRows, read_combined
from leafcast.ask.destinations import destinations_of_tree
from leafcast.ask.failures import BadAnswer
from leafcast.ask.resource_names import ResourceKinds
from leafcast.ask.session import CallFailed, NotRunning, Session, open_session
from leafcast.ask.upsynced import (
    CopiesWanted,
    Unreached,
    Upsynced,
    copies_of_edge,
    copies_of_tree,
)
from relay.objects.upsynced_form import version_of
from relay.space_port import Interest, Interests, Object, ObjectChange, ObjectsListed, SpaceEvent
from schemas.objects.objects import CRD_GROUP, ObjectKey
from schemas.objects.selectors import LabelSelector
from schemas.records.placements import bare_name, kind_of, said_placement
from schemas.values.groups import CONTROL_GROUP
from schemas.values.identity import NodePath, mail_key

__all__ = [
    "BadAnswer",
    "CallFailed",
    "CombinedRows",
    "DestinationOutcome",
    "NotRunning",
    "Tree",
    "Unreached",
    "Upsynced",
    "Watched",
    "connect",
]

_WATCHED_MAX = 256
"""So many changes wait for who watches; more of them make the centre's space wait."""


@dataclass(frozen=True, slots=True)
class DestinationOutcome:
    """What became of a placement at one destination."""

    path: NodePath
    state: str
    health: str
    # Whether its parent counts it exactly.
    complete: bool
    # The worst that is wrong.
    object: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Watched:
    """An object of the centre's as it is now; None if it went."""

    kind: Literal["added", "modified", "deleted"]
    key: ObjectKey
    object: Object | None


class Tree:
    """A session with a running tree."""

    def __init__(self, session: Session) -> None:
        self._session = session

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
            yield DestinationOutcome(
                NodePath.parse(form["path"]),
                form["state"],
                form["health"],
                form["complete"],
                form["object"],
                form["reason"],
            )
        if missing:
            raise Unreached(missing)

    async def watch(self, resource: str) -> AsyncIterator[Watched]:
        """Objects of the centre's, first those there are, and then each change, without end.

        After a break the space is listed again: what is still there may be told twice, and what
        went meanwhile is told as deleted.
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

    Raises NotRunning.
    """
    async with open_session(Path(data_dir) if data_dir is not None else None) as session:
        yield Tree(session)


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
