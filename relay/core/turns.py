"""Whose turn it is in a mailbox: in which order what is due is written, and what goes together.

Of a batch goes first what gives. What takes may give, too, as a new version does that lost one
object and gained another; of several such no order need be right for all objects. So what takes
from one batch goes as one, and the child takes nothing away before it has read it to its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import groupby

from relay.core.book import Held
from relay.core.mailbox import Slot
from schemas.records import DeltaHead

BATCH = 1 << 32
"""How many records a batch may hold; the order of a record counts batches in its high part."""


TOGETHER_MAX = 64
"""So many profiles and Locations go together at most: each that comes has all of them looked at."""


class Send(Enum):
    """What a child's slot should hold of a record."""

    NOTHING = "nothing"
    BARE = "bare"
    WHOLE = "whole"


class Supply(Enum):
    """How far the content is that a record names; what takes waits for what is coming."""

    HERE = "here"
    COMING = "coming"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Due:
    """A record to be written: it waited from `since` on, in whatever version, and stands `at`.

    What `gives` may bring the child something that another record takes.
    """

    held: Held
    wish: Send
    takes: bool
    since: int
    at: int

    @property
    def gives(self) -> bool:
        in_force = not self.held.record.deleted
        return _brings(self.held, self.wish) or (in_force and self.held.kind in _MATCHING)


_MATCHING = ("profile", "location")
"""What makes placements match that are here already."""


def placed(found: Iterable[tuple[int, bool, Held, Send]]) -> list[Due]:
    """Where each of these stands; of each the order from which it waits, and whether it takes.

    What takes waits for all before it. If it brings content, too, it waits for no more than for
    what does so as well: else it might wait for ever for what waits for it.
    """
    known = list(found)
    givers = [order for order, _, held, wish in known if _brings(held, wish)]
    due = []
    for order, takes_, held, wish in known:
        at = order
        if takes_ and not _brings(held, wish):
            at = max(order, held.order)
        elif takes_:
            at = max((giver for giver in givers if order <= giver <= held.order), default=order)
        due.append(Due(held, wish, takes_, order, at))
    return due


def in_turns(due: Iterable[Due]) -> list[list[Due]]:
    """What is written one after the other: each turn all gives only, or takes and goes as one.

    What takes and waited over several batches is taken together with all that takes in these: it
    may bring what those before it take, and take what those after it bring.
    """
    known = list(due)
    ends: dict[int, list[int]] = {}
    end = [-1]
    for first, last in sorted((d.since // BATCH, d.at // BATCH) for d in known if d.takes):
        end = end if first <= end[0] else [last]
        end[0] = max(end[0], last)
        ends[first] = end

    def turn(item: Due) -> tuple[int, bool]:
        batch = item.since // BATCH
        return (ends[batch][0] if item.takes else batch, item.takes)

    ordered = sorted(known, key=lambda item: (turn(item), item.at // BATCH, item.at))
    return [list(items) for _, items in groupby(ordered, key=turn)]


def together(kinds: Sequence[str]) -> list[bool]:
    """Of records published at once, in their order, which of them go together with the next one.

    Of those that say who is meant and what they get: one may take what another one gives again.
    """
    last = len(kinds) - 1
    return [
        at < last and (kind == "delta" or (kind in _MATCHING and (at + 1) % TOGETHER_MAX != 0))
        for at, kind in enumerate(kinds)
    ]


def next_batch(order: int) -> int:
    """The order from which the next batch counts; the same while nothing came since the last."""
    return -(-order // BATCH) * BATCH


def same(slot: Slot | None, held: Held, wish: Send) -> bool:
    """Whether the slot holds what it should hold of a record."""
    content = wish is Send.WHOLE and held.has_content
    return slot is not None and slot.generation == held.generation and slot.content == content


def takes(slot: Slot | None, held: Held, wish: Send) -> bool:
    """Whether writing this may take something from the child, so that it waits for what gives.

    A child without a slot may have been sent one before this node lost its memory.
    """
    if held.kind in ("keys", "node"):
        return False
    if held.kind == "index":
        # What it does not list goes; a child that was never shown one has nothing to lose by it.
        return slot is not None
    if wish is Send.BARE or held.record.deleted or held.kind in _MATCHING:
        return True
    generation = slot.generation if slot is not None else 0
    if not isinstance(held.record, DeltaHead):
        return False
    return max(held.record.last_loss, held.regrouped) > generation


def _brings(held: Held, wish: Send) -> bool:
    return wish is Send.WHOLE and held.kind == "delta" and held.has_content
