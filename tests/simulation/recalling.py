"""How a run of the centre makes sure of its ledger: children asked, as `controllers.recovery` does.

An ask goes over the link and may be lost; its answer is what the child holds when it arrives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from controllers.core.reading_back import is_content, leads_to, read_index
from controllers.core.recovery import Recalled, read_recalled
from controllers.core.translate import Issued as Known
from controllers.core.translate import withdrawal
from relay.core.effects import SendSession
from relay.core.events import LedgerLost
from relay.core.recalling import records_answer
from schemas.blobs import Reference, open_value, parts_of, store
from schemas.identity import ContentHash, NodePath
from schemas.records import DeltaHead, Record
from schemas.refusals import WireRefused
from schemas.reports import greeting
from tests.simulation.centre import ROOT_KEY, SIGNING_KEY

if TYPE_CHECKING:
    from tests.simulation.desk import Desk
    from tests.simulation.host import Host

VERIFY_SECONDS, LOOK_SECONDS, RETRY_SECONDS = 3.0, 0.05, 0.25
Then = Callable[[Sequence[Record]], None]
Answered = Callable[[str, list[Recalled] | None], None]


class Recall:
    """One start; `then` hears of the records that were read back, once the ledger is sure."""

    def __init__(self, desk: Desk, then: Then) -> None:
        self._desk, self._world, self._then = desk, desk.world, then
        self._until = self._world.now + VERIFY_SECONDS
        self._suspects: list[str] = []
        self._partial: list[str] = []
        self._asked: dict[str, None] = {}

    def begin(self) -> None:
        if self._desk.reading.lost:
            self._read_back()
        else:
            self._verify()

    def _verify(self) -> None:
        if not self._desk.here:
            return
        if self._desk.reading.unheard(self._shown()) and self._world.now < self._until:
            self._world.after(LOOK_SECONDS, self._verify)
            return
        self._suspects = self._desk.reading.suspects(self._shown())
        self._ask_suspects()

    def _ask_suspects(self) -> None:
        if self._suspects:
            self._ask(self._suspects.pop(0), self._suspect_answered, partly=True)
        elif self._desk.reading.lost:
            self._read_back()
        else:
            self._then(())

    def _suspect_answered(self, child: str, shown: list[Recalled] | None) -> None:
        self._desk.reading.believe(shown or ())
        self._ask_suspects()

    def _read_back(self) -> None:
        desk = self._desk
        if not desk.here:
            return
        if not desk.reading.awaited:
            self._partial = sorted(desk.reading.partial)
            self._ask_partial()
            return
        here = desk.reading.awaited & self._shown().keys()
        for name in sorted(desk.reading.awaited - here):
            desk.root._send_session(SendSession(name, greeting(desk.root.incarnation)))
        for name in sorted(here - self._asked.keys()):
            self._asked[name] = None
            self._ask(name, self._answered)
        self._world.after(RETRY_SECONDS, self._read_back)

    def _answered(self, child: str, shown: list[Recalled] | None) -> None:
        self._asked.pop(child, None)
        if shown is not None:
            self._desk.reading.showed(child, shown)

    def _ask_partial(self) -> None:
        """Have those show what they can that nobody waits for, once."""
        if self._partial:
            self._ask(self._partial.pop(0), self._partly_answered, partly=True)
        else:
            self._restore()

    def _partly_answered(self, child: str, shown: list[Recalled] | None) -> None:
        if shown is not None:
            self._desk.reading.showed(child, shown, whole=False)
        self._ask_partial()

    def _restore(self) -> None:
        """Put what the ledger lacks into it, with its content; who shows that is waited for."""
        desk = self._desk
        if not desk.here:
            return
        restored = desk.reading.restored()
        showing = {item.child: None for item in restored if not desk.reading.is_waived(item.child)}
        there = [name for name in showing if NodePath().child(name) in self._world.hosts]
        if any(self._present(name) is None for name in there):
            self._world.after(RETRY_SECONDS, self._restore)
            return
        desk.root.tell(LedgerLost())
        for item in restored:
            desk.put_in_ledger(item.envelope, item.record, self._content(item))
        gone = self._superseded()
        desk.issue([withdrawal(Known(head, None)) for head in gone])
        for item in desk.reading.confirmed():
            if lacked := self._content(item):
                desk.put_in_ledger(item.envelope, item.record, lacked)
        desk.reading.ended()
        self._world.note("centre", f"{len(restored)} records are read back")
        self._then([item.record for item in restored])

    def _superseded(self) -> list[DeltaHead]:
        for index in self._desk.reading.indexes():
            child = self._waited_for(index.child)
            (reference,) = index.record.references
            root = open_blob(child, reference) if child is not None else None
            chunks = [open_blob(child, r) for r in leads_to(reference, root)] if child else []
            listed = read_index(root, chunks)
            if listed is not None:
                return self._desk.reading.superseded(index, listed)
        return []

    # Asks.

    def _shown(self) -> dict[str, int]:
        node = self._desk.root.node
        return node.shown_indexes() if node is not None else {}

    def _present(self, name: str) -> Host | None:
        """The child, if it can answer now."""
        child = self._world.hosts.get(NodePath().child(name))
        return child if child is not None and child.linked and child.node is not None else None

    def _waited_for(self, name: str) -> Host | None:
        """The child once it can answer; None for who cannot now, and someone went on without."""
        waived = self._desk.reading.is_waived(name)
        return self._present(name) if waived else self._world.hosts.get(NodePath().child(name))

    def _ask(self, name: str, answered: Answered, *, partly: bool = False) -> None:
        self._world.after(self._world.delay(), self._reached, name, answered, partly)

    def _reached(self, name: str, answered: Answered, partly: bool) -> None:
        shown: list[Recalled] | None = None
        lost = self._world.random.random() < self._world.faults.loss
        child = self._present(name)
        if child is not None and not lost:
            shown = self._records(name, child, partly)
            self._desk.answered[name] = self._world.now
        self._world.after(self._world.delay(), self._back, name, answered, shown)

    def _back(self, name: str, answered: Answered, shown: list[Recalled] | None) -> None:
        if self._desk.here:
            answered(name, shown)

    def _records(self, name: str, child: Host, partly: bool) -> list[Recalled] | None:
        assert child.node is not None
        found: list[bytes] = []
        after = ""
        while True:
            answer = records_answer(child.node, {"after": after})
            if not answer["ready"] and not partly:
                return None
            found += answer["records"]
            after = answer["next"]
            if not after:
                recalled = [read_recalled(data, name, ROOT_KEY, SIGNING_KEY) for data in found]
                return [item for item in recalled if item is not None]

    def _content(self, item: Recalled) -> dict[ContentHash, bytes]:
        """What the record leads to and the centre lacks, as far as children have it."""
        if not isinstance(item.record, DeltaHead) or item.record.deleted:
            return {}
        named = [self._present(name) for name in self._desk.reading.holders(item)]
        children = [child for child in named if child is not None]
        found: dict[ContentHash, bytes] = {}
        waiting = list(item.record.references)
        while waiting:
            reference = waiting.pop()
            plain = open_blob(self._desk.root, reference)
            for child in children if plain is None else ():
                shown = open_blob(child, reference)
                if plain is None and shown is not None and is_content(reference, shown):
                    plain = shown
                    found |= store(reference.kind, plain).values
            waiting += leads_to(reference, plain)
        return found


def open_blob(host: Host, reference: Reference) -> bytes | None:
    """The plain bytes of a blob that a host keeps; None if it is missing or damaged."""
    value = host.streams.blobs.get(reference.address)
    if value is None:
        return None
    try:
        parts = {p.address: host.streams.blobs[p.address] for p in parts_of(reference, value)}
        return open_value(reference, value, parts)
    except (WireRefused, KeyError):
        return None
