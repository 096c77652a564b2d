"""A centre decides nothing before it knows what it issued: a lost ledger is read back.

That it is lost is told by the notes beside it, or by a child that holds a newer index. Then each
child is asked for the records that it holds, and waited for until a person goes on without it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Protocol

from controllers.core.recovery import Recalled, highest, missing, newest_index, read_recalled
from controllers.issuing import Issuer
from controllers.keys import CentreKeys
from controllers.ledger_notes import LedgerNotes
from controllers.nodes import enrol_node, node_record, nodes
from controllers.ports import CentreRelay
from relay.ports import Clock
from schemas import blobs, codec
from schemas.blobs import Reference, store
from schemas.chunks import read_manifest_chunk, read_root
from schemas.identity import INDEX_KEY, ContentHash, NodePath
from schemas.records import DeltaHead
from schemas.shape import ShapeError

VERIFY_SECONDS = 3.0
RETRY_SECONDS = 0.25


class ChildAway(Exception):
    """A child does not answer now; says why."""


class Children(Protocol):
    """The centre's children, as far as they show what they hold."""

    def shown(self) -> Mapping[str, int]:
        """Of the children in session with this run, the generation of the index each has."""
        ...

    async def greet(self, child: str) -> None:
        """Tell a child that this run of the centre is new, so that it begins a session."""
        ...

    async def records(self, child: str) -> list[bytes]:
        """All records that a child holds, as they were signed.

        Raises ChildAway, also for one that has no memory of its own yet.
        """
        ...

    async def content(self, child: str, reference: Reference) -> bytes | None:
        """The plain bytes of a blob that a child holds, None if it has none; raises ChildAway."""
        ...


class Recovery:
    """One start of a centre's controllers, until it is sure of its ledger.

    `enrolled` are the public keys of the children that its server knew last, by name. `awaited`
    names the children that it waits for; `lost` says whether the ledger is being read back.
    """

    def __init__(
        self, notes: LedgerNotes, enrolled: Mapping[str, str], children: Children, clock: Clock
    ) -> None:
        self.notes = notes
        self.lost = False
        self.awaited: frozenset[str] = frozenset()
        self.done = asyncio.Event()
        self.noted: Callable[[str, str, str], None] = lambda _reason, _about, _why: None
        self._enrolled = dict(enrolled)
        self._children = children
        self._clock = clock
        self._waived: set[str] = set()

    def looks_lost(self, issuer: Issuer) -> bool:
        """Whether the ledger lacks what the notes say was issued."""
        index = issuer.records.get(INDEX_KEY)
        self.lost = (index.generation if index else 0) < self.notes.generation
        return self.lost

    async def enrol(self, issuer: Issuer) -> None:
        """Let the children in that the server knew, so that they can be asked."""
        for name, nkey in sorted(self._enrolled.items()):
            path = NodePath().child(name)
            if node_record(issuer, issuer.tree, path) is None:
                await enrol_node(issuer, issuer.tree, path, nkey)

    def go_on_without(self, child: str) -> None:
        """Wait for this child no more; what only it holds is not read back."""
        self._waived.add(child)

    async def run(self, issuer: Issuer, relay: CentreRelay, keys: CentreKeys) -> None:
        """Return once the ledger is sure; until cancelled, if a child stays away."""
        if not self.lost:
            await self._verify(issuer, keys)
        if self.lost:
            await self._read_back(issuer, relay, keys)
        self.awaited = frozenset()
        self.lost = False
        self.done.set()

    async def _verify(self, issuer: Issuer, keys: CentreKeys) -> None:
        """Look whether a child that is in session, or soon will be, holds a newer index."""
        held = issuer.records.get(INDEX_KEY)
        known = held.generation if held else 0
        names = _direct(issuer)
        until = self._clock.now().seconds + VERIFY_SECONDS
        while names - self._children.shown().keys() and self._clock.now().seconds < until:
            await self._clock.sleep(0.05)
        for name, generation in sorted(self._children.shown().items()):
            if generation <= known:
                continue
            # What a child says of itself proves nothing: the index that it holds does.
            if newest_index(await self._try(name, keys) or ()) > known:
                self.lost = True

    async def _read_back(self, issuer: Issuer, relay: CentreRelay, keys: CentreKeys) -> None:
        names = _direct(issuer) | self._enrolled.keys()
        self.noted("LedgerLost", "ledger", f"it is read back from {', '.join(sorted(names))}")
        recalled: list[Recalled] = []
        read: set[str] = set()
        while pending := names - read - self._waived:
            self.awaited = frozenset(pending)
            # What was sent to a child in a session of before would lie before what it has read.
            here = pending & self._children.shown().keys()
            for name in pending - here:
                await self._children.greet(name)
            async with asyncio.TaskGroup() as group:
                asked = {n: group.create_task(self._try(n, keys)) for n in sorted(here)}
            for name, task in asked.items():
                if (shown := task.result()) is not None:
                    recalled += shown
                    read.add(name)
            if names - read - self._waived:
                await self._clock.sleep(RETRY_SECONDS)
        restored = missing(recalled, issuer.records)
        self.notes.recover(item.slot for item in restored if item.envelope.kind != "node")
        issuer.raise_to(highest(recalled))
        for item in restored:
            await issuer.restore(item.envelope, await self._content(relay, item))
        self.noted("LedgerReadBack", "ledger", f"{len(restored)} records were read back")

    async def _try(self, child: str, keys: CentreKeys) -> list[Recalled] | None:
        """What a child holds; None if it does not answer now."""
        try:
            return await self._ask(child, keys)
        except ChildAway:
            return None

    async def _ask(self, child: str, keys: CentreKeys) -> list[Recalled]:
        shown = await self._children.records(child)
        found = [read_recalled(data, child, keys.root, keys.signing) for data in shown]
        return [item for item in found if item is not None]

    async def _content(self, relay: CentreRelay, item: Recalled) -> dict[ContentHash, bytes]:
        """What the record leads to and the centre lacks, from the child that showed the record."""
        record = item.record
        if not isinstance(record, DeltaHead) or record.deleted:
            return {}
        found: dict[ContentHash, bytes] = {}
        waiting, seen = list(record.references), set[ContentHash]()
        while waiting:
            reference = waiting.pop()
            if reference.address in seen:
                continue
            seen.add(reference.address)
            plain = await relay.load(reference)
            if plain is None:
                plain = await self._fetch(item.child, reference)
                found |= store(reference.kind, plain).values if plain is not None else {}
            waiting += _leads_to(reference, plain)
        return found

    async def _fetch(self, child: str, reference: Reference) -> bytes | None:
        try:
            plain = await self._children.content(child, reference)
        except ChildAway:
            return None
        if plain is None or codec.address(reference.kind, plain) != reference.address:
            return None
        return plain


def _direct(issuer: Issuer) -> frozenset[str]:
    """The names of the centre's own children, by the ledger."""
    return frozenset(node.path.name for node in nodes(issuer) if len(node.path.names) == 1)


def _leads_to(reference: Reference, plain: bytes | None) -> list[Reference]:
    if plain is None:
        return []
    try:
        if reference.kind == blobs.MANIFEST:
            return list(read_root(plain).chunks)
        if reference.kind == blobs.MANIFEST_CHUNK:
            return [entry.reference for entry in read_manifest_chunk(plain)]
    except (ShapeError, codec.CodecError):
        return []
    return []
