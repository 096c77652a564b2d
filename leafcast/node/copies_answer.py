"""What a node answers when it is asked for the copies that its edges brought up.

Page by page in the order of edges, and of each edge in the order of writing: a copy that changes
meanwhile may come twice, and none is left out. What children sent is read with care.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from relay.core.asks.answers import PAGE_BYTES_MAX, PAGE_MAX, BadAskArguments, redacted
from relay.core.view import NodeView
from relay.objects.expressions.filters import Filter
from relay.ports import CopiesPage, StoredCopy
from schemas.objects.selectors import LabelSelector
from schemas.reports.link import Hello, copies_as_of
from schemas.reports.reports import PART_MAX_BYTES
from schemas.reports.upsync import Copy, open_copy, read_copy
from schemas.values import codec
from schemas.values.identity import NodePath
from schemas.values.refusals import RecordRefused
from schemas.values.wire import decode

EDGES_READ_MAX = 64
"""Of how many edges one answer reads, so that none takes long."""
READ_MAX_BYTES = 8 * 1024 * 1024
"""Of copies as they lie there, and of objects as they are once opened: a few bytes may say much."""
FILTERED_BYTES = 2048
"""To filter one object takes about as long as to read so much, so an answer ends sooner."""

Read = Callable[[str, int], Awaitable[CopiesPage]]
"""Reads copies of a child, from a place on."""


@dataclass(frozen=True, slots=True)
class CopyQuery:
    """Which copies are asked for; what is "" says nothing."""

    group: str
    resource: str
    namespace: str = ""
    name: str = ""
    selector: LabelSelector | None = None
    filter: Filter | None = None

    def meets(self, copy: Copy) -> bool:
        key = copy.key
        return (
            key.group_resource == (self.group, self.resource)
            # Who asks may not know that the kind lives in no namespace: only edges know some kinds.
            and (not key.namespace or self.namespace in ("", key.namespace))
            and self.name in ("", key.name)
        )

    def matches(self, obj: Mapping[str, Any]) -> bool:
        labels = (obj.get("metadata") or {}).get("labels")
        if self.selector is not None and not self.selector.matches(
            labels if isinstance(labels, Mapping) else {}
        ):
            return False
        return self.filter is None or self.filter.matches({"returned": obj})


class _Page:
    """What one answer holds so far."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.read = 0
        self._size = 0

    def put(self, row: dict[str, Any]) -> None:
        self.rows.append(row)
        self._size += len(codec.pack(row))

    @property
    def full(self) -> bool:
        too_long = len(self.rows) >= PAGE_MAX or self._size >= PAGE_BYTES_MAX
        return too_long or self.read >= READ_MAX_BYTES


async def copies_answer(
    node: NodeView,
    read: Read,
    path: NodePath,
    wanted: CopyQuery,
    *,
    child: str = "",
    after: str = "",
) -> dict[str, Any]:
    """`{copies: [{path, asOfMs, object}], relays: [name], next}`.

    Of one child, or of all that are edges; the first page names those that are none. `asOfMs` is a
    moment at which the edge held the object just so, by this node's clock.
    """
    name, sequence = read_after(after)
    edges = [it for it in sorted(node.children()) if it == child or not child]
    edges = [it for it in edges if it >= name and node.destination_of(it)]
    page = _Page()
    following = ""
    for at, edge in enumerate(edges):
        first = sequence if edge == name else 1
        if page.full or at >= EDGES_READ_MAX:
            following = f"{edge}/{first}"
            break
        if rest := await _read_child(page, read, path.child(edge), first, wanted):
            following = f"{edge}/{rest}"
            break
    others = [] if after else [it for it in node.children() if not node.destination_of(it)]
    relays = [it for it in others if not child or it == child]
    return {"copies": page.rows, "relays": sorted(relays), "next": following}


async def _read_child(
    page: _Page, read: Read, path: NodePath, first: int, wanted: CopyQuery
) -> int:
    """Take what is wanted of a child's copies; where to go on if the page is full, else 0."""
    while first:
        stored = await read(path.name, first)
        known_ms = _known_ms(stored)
        for copy in stored.copies:
            if page.full:
                return copy.sequence
            page.read += len(copy.data)
            meant = _meant(copy, wanted)
            if meant is None:
                continue
            page.read += meant.size
            if wanted.filter is not None:
                page.read += FILTERED_BYTES
            # To open it, and to ask an expression, may take a while, and the node has other work.
            await asyncio.sleep(0)  # noqa: TID251 - no time passes
            for obj in _objects(meant, wanted):
                as_of = max(copy.written_ms, known_ms)
                page.put({"path": str(path), "asOfMs": as_of, "object": obj})
        first = stored.next
    return 0


def _meant(stored: StoredCopy, wanted: CopyQuery) -> Copy | None:
    """The copy, if its key is one of those that are asked for; None of what is no copy."""
    try:
        copy = read_copy(stored.data, stored.key)
    except RecordRefused:
        return None
    return copy if wanted.meets(copy) else None


def _objects(copy: Copy, wanted: CopyQuery) -> Iterator[dict[str, Any]]:
    """The object of a copy if it is wanted; none of one that has no object."""
    try:
        if wanted.matches(obj := open_copy(copy)):
            yield redacted(obj)
    except RecordRefused:
        return


def _known_ms(page: CopiesPage) -> int:
    """The moment of all of the child's copies, as its last hello says; 0 if it does not."""
    try:
        hello = decode(Hello, page.hello, PART_MAX_BYTES) if page.hello else None
    except RecordRefused:
        return 0
    return copies_as_of(hello.copies, page.heard_ms) if hello is not None else 0


def read_after(after: str) -> tuple[str, int]:
    """The edge and the place at which a page begins; raises BadAskArguments."""
    name, _, sequence = after.rpartition("/")
    if not after:
        return "", 1
    if not name or not sequence.isdecimal() or len(sequence) > len(str(2**63)):
        raise BadAskArguments(f"after: {after!r} is no place; name the `next` of the page before")
    return name, int(sequence)
