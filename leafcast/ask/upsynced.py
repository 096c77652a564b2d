"""Copies of what arises at edges, asked of the edges' parents: one edge's, or all of the tree's.

Of the tree they come relay by relay and page by page, and are never held whole. A page that is not
answered is asked for again; a relay that stays silent is named at the end, by an error.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leafcast.ask.decode import CopyForm, read_copies
from leafcast.ask.pages import WRONG_QUESTION, asked_page
from leafcast.ask.resource_names import ResourceKind
from leafcast.ask.session import CallFailed, Session
from schemas.objects.selectors import LabelSelector
from schemas.records.asks import UPSYNCED
from schemas.values.identity import NodePath

if TYPE_CHECKING:
    from relay.space_port import Object

RELAYS_MAX = 100_000


class Unreached(Exception):
    """Relays that did not answer: what lies there, and below, is missing. `paths` names them."""

    def __init__(self, reasons: Mapping[NodePath, str]) -> None:
        named = "; ".join(f"{path}: {reason}" for path, reason in sorted(reasons.items()))
        super().__init__(f"not all of the tree answered: {named}")
        self.paths = tuple(sorted(reasons))
        self.reasons = dict(reasons)


@dataclass(frozen=True, slots=True)
class Upsynced:
    """An object of the edge at `path`, as it was there at `as_of`."""

    path: NodePath
    as_of: dt.datetime
    object: Object


@dataclass(frozen=True, slots=True)
class CopiesWanted:
    """Which copies are asked for; `namespace` and `name` "" are all of them."""

    group: str
    resource: str
    namespace: str = ""
    name: str = ""
    selector: LabelSelector | None = None
    filter: str = ""
    """A CEL expression over `returned`, the object; "" takes all."""

    @classmethod
    def of_kind(
        cls, kind: ResourceKind, namespace: str, name: str, selector: LabelSelector | None
    ) -> CopiesWanted:
        """The namespace counts only if the kind lives in namespaces."""
        within = namespace if kind.namespaced else ""
        return cls(kind.group, kind.resource, within, name, selector)

    def arguments(self) -> dict[str, str]:
        said = {"group": self.group, "resource": self.resource}
        said |= {"namespace": self.namespace, "name": self.name}
        if self.selector is not None:
            said["selector"] = json.dumps(self.selector.to_kubernetes())
        if self.filter:
            said["filter"] = self.filter
        return said


async def copies_of_edge(
    session: Session, path: NodePath, wanted: CopiesWanted
) -> AsyncIterator[Upsynced]:
    """What one edge brought up; raises CallFailed."""
    if path.is_root:
        raise CallFailed("ask", "NoCopies", "the centre brings up nothing", "name an edge")
    after = ""
    while True:
        copies, relays, after = await _page(session, path.parent, wanted, path.name, after)
        if path.name in relays:
            said = f"{path} is a relay, and brings up nothing itself"
            raise CallFailed("ask", "NoCopies", said, "name an edge, or ask all of them")
        for copy in copies:
            yield _upsynced(copy)
        if not after:
            return


async def copies_of_tree(session: Session, wanted: CopiesWanted) -> AsyncIterator[Upsynced]:
    """What all edges brought up; after all that could be had, raises Unreached.

    Raises CallFailed of a question that nobody can answer.
    """
    waiting, missing = [NodePath()], dict[NodePath, str]()
    seen = 1
    while waiting:
        path, after = waiting.pop(), ""
        while True:
            try:
                copies, relays, after = await _page(session, path, wanted, "", after)
            except CallFailed as failed:
                if failed.code == WRONG_QUESTION:
                    raise
                missing[path] = failed.message
                break
            for copy in copies:
                yield _upsynced(copy)
            seen += len(relays)
            if seen <= RELAYS_MAX:
                waiting += [path.child(name) for name in reversed(relays)]
            if not after:
                break
    if seen > RELAYS_MAX:
        missing[NodePath()] = f"more than {RELAYS_MAX} relays are named"
    if missing:
        raise Unreached(missing)


async def _page(
    session: Session, path: NodePath, wanted: CopiesWanted, child: str, after: str
) -> tuple[list[CopyForm], list[str], str]:
    """A page of what a relay has, by edge, namespace and name; raises CallFailed.

    A relay keeps copies in the order of their last change.
    """
    arguments: dict[str, Any] = {**wanted.arguments(), "child": child, "after": after}
    copies, relays, later = await asked_page(
        session, path, UPSYNCED, lambda answer: read_copies(answer, path, after), **arguments
    )
    return sorted(copies, key=_place), relays, later


def _place(copy: CopyForm) -> tuple[NodePath, str, str]:
    metadata = copy.object.get("metadata", {})
    return copy.path, str(metadata.get("namespace", "")), str(metadata.get("name", ""))


def _upsynced(copy: CopyForm) -> Upsynced:
    as_of = dt.datetime.fromtimestamp(copy.as_of_ms / 1000, dt.UTC)
    return Upsynced(copy.path, as_of, copy.object)
