"""A centre decides nothing before it knows what it issued: a lost ledger is read back.

That it is lost is told by the notes beside it, or by a child that holds a newer index. Then each
child is asked for the records that it holds, and waited for until a person goes on without it. Who
was gone on without is asked once more for what it can show.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from controllers.core.notes import Notes
from controllers.core.reading_back import ReadingBack, is_content, leads_to, read_index
from controllers.core.recovery import Recalled, read_recalled
from controllers.core.translate import Issued, withdrawal
from controllers.issuing import Issuer
from controllers.keys import CentreKeys
from controllers.nodes import enrol_node, node_record
from controllers.ports import CentreRelay
from relay.ports import Clock
from schemas.blobs import Reference, store
from schemas.identity import ContentHash, NodePath
from schemas.records import DeltaHead

VERIFY_SECONDS = 3.0
RETRY_SECONDS = 0.25


class ChildAway(Exception):
    """A child does not answer now; says why."""


class Children(Protocol):
    """The centre's children, as far as they show what they hold."""

    def shown(self) -> Mapping[str, int]:
        """Of the children in session with this run, the generation of the index each has."""
        ...

    async def doubt(self) -> None:
        """Count on nothing that they said before: the ledger is read back."""
        ...

    async def greet(self, child: str) -> None:
        """Tell a child that this run of the centre is new, so that it begins a session."""
        ...

    async def records(self, child: str, *, partly: bool = False) -> list[bytes]:
        """All records that a child holds, as they were signed.

        Raises ChildAway, also for one that has no memory of its own yet, or has not read its own
        mailbox to its end; if `partly`, such a child shows what it can.
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
        self, notes: Notes, enrolled: Mapping[str, str], children: Children, clock: Clock
    ) -> None:
        self.notes = notes
        self.lost = False
        self.awaited: frozenset[str] = frozenset()
        self.done = asyncio.Event()
        self.noted: Callable[[str, str, str], None] = lambda _reason, _about, _why: None
        self._enrolled = dict(enrolled)
        self._children = children
        self._clock = clock
        self._reading: ReadingBack | None = None

    def looks_lost(self, issuer: Issuer) -> bool:
        """Whether the ledger lacks what the notes say was issued."""
        self._reading = ReadingBack(issuer.ledger, self.notes, self._enrolled)
        self.lost = self._reading.lost
        return self.lost

    async def enrol(self, issuer: Issuer) -> None:
        """Let the children in that the server knew, so that they can be asked."""
        for name, nkey in sorted(self._enrolled.items()):
            path = NodePath().child(name)
            if node_record(issuer, issuer.tree, path) is None:
                await enrol_node(issuer, issuer.tree, path, nkey)

    def go_on_without(self, child: str) -> None:
        """Wait for this child no more; what only it holds and cannot show now is lost."""
        if self._reading is not None:
            self._reading.go_on_without(child)

    async def run(self, issuer: Issuer, relay: CentreRelay, keys: CentreKeys) -> None:
        """Return once the ledger is sure; until cancelled, if a child stays away."""
        reading = self._reading or ReadingBack(issuer.ledger, self.notes, self._enrolled)
        self._reading = reading
        if not reading.lost:
            await self._verify(reading, keys)
        self.lost = reading.lost
        if reading.lost:
            await self._read_back(reading, issuer, relay, keys)
        self.awaited = frozenset()
        self.lost = False
        self.done.set()

    async def _verify(self, reading: ReadingBack, keys: CentreKeys) -> None:
        """Look whether a child that is in session, or soon will be, holds a newer index."""
        until = self._clock.now().seconds + VERIFY_SECONDS
        while reading.unheard(self._children.shown()) and self._clock.now().seconds < until:
            await self._clock.sleep(0.05)
        for name in reading.suspects(self._children.shown()):
            # An index that is newer proves it, whatever else the child has not read yet.
            reading.believe(await self._try(name, keys, partly=True) or ())

    async def _read_back(
        self, reading: ReadingBack, issuer: Issuer, relay: CentreRelay, keys: CentreKeys
    ) -> None:
        names = ", ".join(sorted(reading.asked))
        self.noted("LedgerLost", "ledger", f"it is read back from {names}")
        while awaited := reading.awaited:
            self.awaited = awaited
            # What was sent to a child in a session of before would lie before what it has read.
            here = awaited & self._children.shown().keys()
            for name in awaited - here:
                await self._children.greet(name)
            for name, shown in (await self._ask(here, keys)).items():
                reading.showed(name, shown)
            if reading.awaited:
                await self._clock.sleep(RETRY_SECONDS)
        for name, shown in (await self._ask(reading.partial, keys, partly=True)).items():
            reading.showed(name, shown, whole=False)
        await self._children.doubt()
        restored = reading.restored()
        for item in restored:
            await issuer.restore(item.envelope, await self._content(reading, relay, item))
        if gone := await self._superseded(reading):
            await issuer.issue([withdrawal(Issued(head, None)) for head in gone])
        for item in reading.confirmed():
            # Of a ledger that is there, or in part, the content may be lost all the same.
            if lacked := await self._content(reading, relay, item):
                await issuer.restore(item.envelope, lacked)
        reading.ended()
        self.noted("LedgerReadBack", "ledger", f"records read back: {len(restored)}")

    async def _superseded(self, reading: ReadingBack) -> list[DeltaHead]:
        """What an old ledger holds, and a later index that a child was shown does not."""
        for index in reading.indexes():
            (reference,) = index.record.references
            root = await self._fetch(reading, index.child, reference)
            chunks = [await self._fetch(reading, index.child, r) for r in leads_to(reference, root)]
            listed = read_index(root, chunks)
            if listed is not None:
                return reading.superseded(index, listed)
        return []

    async def _ask(
        self, names: Iterable[str], keys: CentreKeys, *, partly: bool = False
    ) -> dict[str, list[Recalled]]:
        """What those of these children show that answer now."""
        async with asyncio.TaskGroup() as group:
            tries = {
                name: group.create_task(self._try(name, keys, partly=partly))
                for name in sorted(names)
            }
        answers = {name: task.result() for name, task in tries.items()}
        return {name: shown for name, shown in answers.items() if shown is not None}

    async def _try(
        self, child: str, keys: CentreKeys, *, partly: bool = False
    ) -> list[Recalled] | None:
        """What a child holds; None if it does not answer now."""
        try:
            shown = await self._children.records(child, partly=partly)
        except ChildAway:
            return None
        found = [read_recalled(data, child, keys.root, keys.signing) for data in shown]
        return [item for item in found if item is not None]

    async def _content(
        self, reading: ReadingBack, relay: CentreRelay, item: Recalled
    ) -> dict[ContentHash, bytes]:
        """What the record leads to and the centre lacks, first from the child that showed it."""
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
                for child in reading.holders(item):
                    plain = plain or await self._fetch(reading, child, reference)
                found |= store(reference.kind, plain).values if plain is not None else {}
            waiting += leads_to(reference, plain)
        return found

    async def _fetch(self, reading: ReadingBack, child: str, reference: Reference) -> bytes | None:
        """A blob that a child holds; one that is away is waited for, unless someone goes on."""
        while not reading.is_given_up(child):
            try:
                plain = await self._children.content(child, reference)
            except ChildAway:
                reading.was_silent(child)
                if not reading.is_waived(child):
                    self.awaited = frozenset({child})
                    await self._clock.sleep(RETRY_SECONDS)
            else:
                return plain if is_content(reference, plain) else None
        return None
