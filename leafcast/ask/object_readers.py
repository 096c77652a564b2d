"""Where objects are read: in the centre's spaces, or at an edge, asked through the tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from leafcast.ask.decode import OBJECTS_MAX, read_objects
from leafcast.ask.pages import page_at
from leafcast.ask.resource_names import ResourceKind
from leafcast.ask.session import CallFailed, Session
from leafcast.ask.upsynced import CopiesWanted, Upsynced, copies_of_edge
from schemas.objects.selectors import LabelSelector
from schemas.records.asks import GET
from schemas.values.identity import NodePath

if TYPE_CHECKING:
    from relay.space_port import Object
from schemas.values.groups import AS_OF_ANNOTATION, EDGE_ANNOTATION

_AWAY = frozenset({"NoAnswer", "Restarting", "Unreachable"})


class NotFound(Exception):
    """An object that is not there, in kubectl's words; says where its like can be seen."""

    def __init__(self, kind: ResourceKind, name: str, remedy: str) -> None:
        said = f'Error from server (NotFound): {kind.qualified} "{name}" not found'
        super().__init__(f"{said}; {remedy}" if remedy else said)


@dataclass(frozen=True, slots=True)
class CentreReader:
    """Reads the centre's spaces; `namespace` "" is all of them. A `get` raises NotFound."""

    session: Session

    async def all_of(
        self, kind: ResourceKind, namespace: str, selector: LabelSelector | None
    ) -> Sequence[Object]:
        where = namespace if kind.namespaced else ""
        space = self.session.space_for(kind.key(where, ""))
        listing = await space.list(kind.group, kind.resource, namespace=where, selector=selector)
        return listing.objects

    async def get(self, kind: ResourceKind, namespace: str, name: str) -> Object:
        key = kind.key(namespace, name)
        obj = await self.session.space_for(key).get(key)
        if obj is None:
            raise NotFound(kind, name, await self._remedy(kind, namespace, name))
        return obj

    async def _remedy(self, kind: ResourceKind, namespace: str, name: str) -> str:
        there = await self.all_of(kind, "", None)
        elsewhere = sorted(
            obj["metadata"].get("namespace", "") for obj in there if obj["metadata"]["name"] == name
        )
        if elsewhere:
            return f"it is in namespace {elsewhere[0]}: add -n {elsewhere[0]}"
        where = f" -n {namespace}" if kind.namespaced else ""
        return f"see: leafcast get {kind.resource}{where}"


@dataclass(frozen=True, slots=True)
class EdgeReader:
    """Reads what the edge at `path` holds, by an ask that goes through the tree, hop by hop."""

    session: Session
    path: str
    # What kept the edge from answering: then its copies at its parent are what is read.
    away: list[CallFailed] = field(default_factory=list)
    # Whether only what is kept is meant; of that no copy tells.
    kept: bool = False

    async def all_of(
        self, kind: ResourceKind, namespace: str, selector: LabelSelector | None
    ) -> Sequence[Object]:
        return await self._ask(kind, namespace, "", selector)

    async def get(self, kind: ResourceKind, namespace: str, name: str) -> Object:
        found = await self._ask(kind, namespace, name, None)
        if not found:
            where = f" -n {namespace}" if kind.namespaced else ""
            remedy = f"see: leafcast get {kind.resource}{where} --at {self.path}"
            raise NotFound(kind, name, remedy)
        return found[0]

    async def _ask(
        self, kind: ResourceKind, namespace: str, name: str, selector: LabelSelector | None
    ) -> list[Object]:
        """What the edge answers, or its copies at its parent if it is away; raises CallFailed."""
        wanted = CopiesWanted.of_kind(kind, namespace, name, selector)
        try:
            return await objects_at(self.session, self.path, wanted, kept=self.kept)
        except CallFailed as failed:
            if failed.code not in _AWAY or self.kept:
                raise
            found = await self._copies(wanted, failed)
            self.away.append(failed)
            return found

    async def _copies(self, wanted: CopiesWanted, failed: CallFailed) -> list[Object]:
        """What lies at the parent; if that does not answer either, or has nothing: why not."""
        newest: dict[tuple[str, str], Object] = {}
        try:
            async for copy in copies_of_edge(self.session, NodePath.parse(self.path), wanted):
                shown = as_shown(copy)
                metadata = shown["metadata"]
                newest[str(metadata.get("namespace") or ""), str(metadata["name"])] = shown
        except CallFailed:
            raise failed from None
        if not newest:
            raise failed
        return [newest[place] for place in sorted(newest)]


async def objects_at(
    session: Session, path: str, wanted: CopiesWanted, *, kept: bool = False
) -> list[Object]:
    """All pages of what the edge at a path answers, or `kept` alone; raises CallFailed."""
    found: list[Object] = []
    more = {"kept": "true"} if kept else {}
    asked: dict[str, Any] = {"selector": "", **wanted.arguments(), **more}
    while True:
        read = partial(read_objects, after=asked.get("after", ""), kept=kept)
        page, following = await page_at(session, path, GET, read, **asked)
        found += page
        if not following:
            return found
        if len(found) > OBJECTS_MAX:
            said = f"{path} lists more than {OBJECTS_MAX} objects"
            raise CallFailed("ask", "TooLarge", said, "name a namespace or a selector")
        asked["after"] = following


def with_edge(obj: Object, path: str) -> Object:
    """An object with the annotation that says at which edge it is."""
    metadata = obj["metadata"]
    said = metadata.get("annotations")
    annotations = {**(said if isinstance(said, dict) else {}), EDGE_ANNOTATION: path}
    return {**obj, "metadata": {**metadata, "annotations": annotations}}


def as_shown(copy: Upsynced, *, edge: bool = False) -> Object:
    """A copy's object, with annotations that say of which moment it is, and of which edge."""
    metadata = dict(copy.object["metadata"])
    as_of = copy.as_of.replace(microsecond=0).isoformat().replace("+00:00", "Z")
    said = metadata.get("annotations")
    annotations = {**(said if isinstance(said, dict) else {}), AS_OF_ANNOTATION: as_of}
    if edge:
        annotations[EDGE_ANNOTATION] = str(copy.path)
    return {**copy.object, "metadata": {**metadata, "annotations": annotations}}


Reader: TypeAlias = CentreReader | EdgeReader


def reader_of(session: Session, at: str | None, *, kept: bool = False) -> Reader:
    """The centre's reader, or that of the edge at a path; there also of what is `kept` alone."""
    return CentreReader(session) if at is None else EdgeReader(session, at, kept=kept)
