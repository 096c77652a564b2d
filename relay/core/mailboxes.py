"""The children's mailboxes: what each was sent, what it lacks, and when it gets it.

A relay writes to each child in the order of its own mail. A delta that waits for blobs lets others
pass, except those that take something from this child (wire.md, "Order of writing"). Mail that was
read in one batch lies there in the order of last writing, not of first: so of a batch goes first
what gives, and what takes waits until the batch is read to its end, and goes together (`turns`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from relay.core.book import Held, is_delta
from relay.core.effects import ClearMail, Effect, WriteMail
from relay.core.events import MailSlot
from relay.core.mailbox import Mailbox, Slot
from relay.core.turns import BATCH, Due, Send, Supply, in_turns, placed, same, takes
from schemas.identity import INDEX_KEY, KEYS_KEY, MailKey
from schemas.records import DIGEST_MODULUS, digest_term


class Mailboxes:
    """All children's mailboxes at one node.

    `meant(child, held)` says what a child should have of a record, `content(key)` how far the
    content is that it names. While `paused`, as at the start, nothing is written, nothing that
    takes unless it is `calm`, and nothing to children that are `unheard`. `touched` gathers the
    slots that changed, for the one who empties it.
    """

    def __init__(
        self,
        out: list[Effect],
        meant: Callable[[str, Held], Send],
        content: Callable[[MailKey], Supply],
        lookup: Callable[[MailKey], Held | None],
        stamp: Callable[[], int],
    ) -> None:
        self.boxes: dict[str, Mailbox] = {}
        self.paused = False
        self.unheard: dict[str, None] = {}
        self.calm = True
        # To whom the index may take something: they may have been shown one that is forgotten here.
        self.unproven: Callable[[str], bool] = lambda _child: False
        self.touched: dict[tuple[str, MailKey], None] = {}
        self._having: dict[MailKey, dict[str, None]] = {}
        self._out = out
        self._meant = meant
        self._content = content
        self._lookup = lookup
        self._stamp = stamp

    def restore(self, child: str, kept: MailSlot) -> None:
        """Take in what the stream holds for a child, at the start."""
        box = self.boxes[child]
        term = digest_term(kept.key, kept.generation.to_bytes(8, "big") + kept.payload_hash)
        slot = Slot(kept.sequence, kept.generation, kept.has_body, term)
        self._put(child, kept.key, slot)
        if kept.sequence > box.last_sequence:
            box.last_sequence, box.half = kept.sequence, kept.more
        if slot.content:
            box.digest = (box.digest + term) % DIGEST_MODULUS

    def restored(self) -> None:
        """Let every child answer for all it was sent before the start."""
        for box in self.boxes.values():
            for slot in box.slots.values():
                slot.bearing = box.last_sequence

    def mark(self, child: str, key: MailKey, order: int, bears: Iterable[MailKey] = ()) -> None:
        """Look at a slot at the next flush; `bears` are placements that the record bears on."""
        box = self.boxes.get(child)
        if box is not None:
            self._enqueue(box, key, order)
            self.touched[child, key] = None
            if bears:
                box.bears.setdefault(key, {}).update(dict.fromkeys(bears))

    def flush(self, child: str) -> None:
        """Write what may be written now, in order."""
        box = self.boxes.get(child)
        if box is None or self.paused or child in self.unheard:
            return
        box.fresh.clear()
        self._write_due(child, box, self._due(child, box, list(box.queue)))

    def look(self, child: str) -> None:
        """Write what may be written now of what is fresh.

        The rest of the queue waits for what a flush follows on; only something that takes has to be
        put in order with it.
        """
        box = self.boxes.get(child)
        if box is None or self.paused or child in self.unheard:
            return
        if box.held_back and self.calm:
            self.flush(child)
        elif box.fresh:
            fresh, box.fresh = box.fresh, {}
            due = self._due(child, box, fresh)
            if self.calm and any(d.takes and d.held.key not in box.flying for d in due):
                self.flush(child)
            else:
                held_back = box.held_back
                self._write_due(child, box, due)
                box.held_back = box.held_back or held_back

    def supplied(self, key: MailKey) -> None:
        """Write what waited for the content of a delta, which is here now."""
        for child, box in self.boxes.items():
            if key in box.queue:
                box.fresh[key] = None
                self.look(child)

    def _write_due(self, child: str, box: Mailbox, due: Iterable[Due]) -> None:
        waiting, box.held_back = not self.calm, False
        for turn in in_turns(due):
            ready: list[Due] = []
            for item in turn:
                whole, key = item.wish is Send.WHOLE, item.held.key
                supply = self._content(key) if whole else Supply.HERE
                if supply is Supply.HERE and key not in box.flying:
                    ready.append(item)
                else:
                    # What flies goes once the version before it is confirmed, all that takes after.
                    waiting = waiting or supply is not Supply.REFUSED
                    box.held_back = box.held_back or item.takes
            if turn[0].takes and waiting:
                box.held_back = True
                continue
            last = max((at for at, item in enumerate(ready) if item.gives), default=0)
            if turn[0].takes and ready:
                box.half = False
            for at, item in enumerate(ready):
                self._write(child, box, item, more=box.half or (item.takes and at < last))

    def flush_all(self) -> None:
        """Write to each child what may be written now."""
        for child, box in self.boxes.items():
            if box.queue:
                self.flush(child)

    def _due(self, child: str, box: Mailbox, keys: Iterable[MailKey]) -> list[Due]:
        """What of these in the queue is to be written."""
        due = []
        for key in keys:
            order = box.queue.get(key)
            if order is None:
                continue
            held, slot = self._lookup(key), box.slots.get(key)
            wish = Send.NOTHING if held is None else self._meant(child, held)
            if held is None or wish is Send.NOTHING or same(slot, held, wish):
                if key not in box.flying:
                    self._settle(child, key)
                    if held is None:
                        self.clear(child, key)
                continue
            taking = takes(slot, held, wish)
            if key == INDEX_KEY and self.unproven(child):
                order, taking = BATCH << 32, True  # After what could be judged only by it, too.
            due.append((order, taking, held, wish))
        return placed(due)

    def written(self, child: str, key: MailKey, sequence: int) -> tuple[MailKey, ...]:
        """Take in where the stream put a message; names the placements that it bears on."""
        box = self.boxes.get(child)
        if box is None:
            return ()
        box.last_sequence = max(box.last_sequence, sequence)
        box.listed.pop(key, None)
        if key in box.slots:
            box.slots[key].sequence = sequence
        borne = box.flying.pop(key, ())
        if key in box.queue:
            box.fresh[key] = None
        for placement in borne:
            slot = box.slots.get(placement)
            if slot is not None:
                slot.bearing = max(slot.bearing, sequence)
                slot.flying = max(0, slot.flying - 1)
                self.touched[child, placement] = None
        return borne

    def clear(self, child: str, key: MailKey) -> None:
        """Take a slot out of the mailbox, unless a write to it is on its way."""
        box = self.boxes[child]
        slot = box.slots.get(key)
        if slot is None or key in box.flying or key in box.queue:
            return
        del box.slots[key]
        box.listed.pop(key, None)
        self._drop(child, key)
        self.touched[child, key] = None
        if slot.content:
            box.digest = (box.digest - slot.term) % DIGEST_MODULUS
        if slot.sequence:
            self._out.append(ClearMail(child, key, slot.sequence))

    def digest(self, child: str, *, foreign: bool) -> bytes:
        """The digest of what a child should hold; b"", which is none, if it is to read in full.

        One with a `foreign` cursor may hold half of what goes together, and could not know it.
        """
        if foreign and self.is_open(child):
            return b""
        return self.boxes[child].digest.to_bytes(16, "big")

    def is_open(self, child: str) -> bool:
        """Whether the mailbox ends, or may end, between what goes together."""
        box = self.boxes[child]
        return box.half or bool(box.flying)

    def pending(self, child: str, key: MailKey) -> bool:
        """Whether the child was not sent yet what it should have of this record."""
        box = self.boxes[child]
        slot = box.slots.get(key)
        if key in box.queue or (slot is not None and slot.flying > 0):
            return True
        return any(key in borne for borne in box.bears.values())

    def force(self, child: str, key: MailKey, order: int) -> None:
        """Write a slot again, also if it holds the newest already."""
        box = self.boxes[child]
        if key in box.slots:
            box.slots[key].generation = 0
        self._enqueue(box, key, order)

    def again(self, child: str) -> None:
        """Write once more which placements are gone: the child says so again in its new session.

        The cursor tells that other tombstones were read; written again they would come after what
        they bear on.
        """
        for key, slot in list(self.boxes[child].slots.items()):
            held = self._lookup(key)
            if held is not None and not slot.content and held.kind == "delta":
                self.force(child, key, held.order)
        self.flush(child)

    def rewrite(self, child: str) -> None:
        """Write every slot of a child again: what it holds is not what it was sent."""
        for key in list(self.boxes[child].slots):
            held = self._lookup(key)
            self.force(child, key, held.order if held else 0)
        self.flush(child)

    def owe(self, child: str, key: MailKey) -> None:
        """Write what a child should have of a record that it holds, though no slot here says so.

        If none of the key is here, it will be written once it is.
        """
        self._put(child, key, Slot(0, 0, content=False, term=0))
        self.boxes[child].listed[key] = None
        if (held := self._lookup(key)) is not None:
            self.mark(child, key, held.order)
            self.flush(child)

    def having(self, key: MailKey) -> list[str]:
        """The children that hold something of the key, or were sent it."""
        return list(self._having.get(key, ()))

    def owed(self) -> dict[MailKey, None]:
        """What children hold or were sent, and of which nothing is here."""
        reserved = (INDEX_KEY, KEYS_KEY)
        held = (key for key in self._having if key not in reserved)
        return {key: None for key in held if self._lookup(key) is None}

    def _enqueue(self, box: Mailbox, key: MailKey, order: int) -> None:
        box.queue.setdefault(key, order)
        box.fresh[key] = None
        if not is_delta(self._lookup(key)):
            box.others[key] = None

    def remove(self, child: str) -> None:
        """Forget a child, and what it was sent."""
        box = self.boxes.pop(child, None)
        for key in box.slots if box is not None else ():
            self._drop(child, key)

    def _put(self, child: str, key: MailKey, slot: Slot) -> None:
        self.boxes[child].slots[key] = slot
        self._having.setdefault(key, {})[child] = None

    def _drop(self, child: str, key: MailKey) -> None:
        having = self._having[key]
        having.pop(child, None)
        if not having:
            del self._having[key]

    def _settle(self, child: str, key: MailKey) -> None:
        """Take a slot off the queue: nothing, or nothing more, is to be written to it."""
        box = self.boxes[child]
        del box.queue[key]
        box.fresh.pop(key, None)
        box.others.pop(key, None)
        for placement in (key, *box.bears.pop(key, ())):
            self.touched[child, placement] = None

    def _write(self, child: str, box: Mailbox, item: Due, *, more: bool) -> None:
        held, wish = item.held, item.wish
        key, content = held.key, wish is Send.WHOLE and held.has_content
        former = box.slots.get(key)
        slot = Slot(0, held.generation, content, held.term)
        if former is not None:
            slot = Slot(former.sequence, held.generation, content, held.term, former.bearing)
            slot.flying = former.flying
            box.digest -= former.term if former.content else 0
        box.digest = (box.digest + (held.term if content else 0)) % DIGEST_MODULUS
        self._put(child, key, slot)
        borne = {key: None, **box.bears.get(key, {})}
        for placement in borne:
            if placement in box.slots:
                box.slots[placement].flying += 1
        box.flying[key] = tuple(p for p in borne if p in box.slots)
        self._settle(child, key)
        data = held.data if wish is Send.WHOLE else held.bare_data()
        trace, hashed = held.record.trace, held.payload_hash
        expected, hops = slot.sequence, (*held.hops, self._stamp())
        self._out.append(
            WriteMail(
                child, key, data, held.generation, hashed, content, trace, expected, hops, more
            )
        )
