"""What a change takes of a placement, weighed: so many copies, and whether that is a large part.

What follows from an edit, and nobody named, goes at once if it is little, and otherwise waits for a
person's word: a selector or a label says something else, and much is not meant any more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import NamedTuple

from controllers.core.ledger.destination_counts import SelectedDestinations
from controllers.core.ledger.removal import REMOVALS_MIN, REMOVALS_SHARE
from relay.objects.stored_object import timestamp
from schemas.objects.objects import ObjectKey
from schemas.records.placements import short_title
from schemas.records.records import Alternative
from schemas.values.identity import MailKey
from schemas.values.wording import many


class Delivered(NamedTuple):
    """Which objects go to whom."""

    alternatives: tuple[Alternative, ...]
    objects: AbstractSet[ObjectKey]


NOTHING_DELIVERED = Delivered((), frozenset())


@dataclass(frozen=True, slots=True)
class Loss:
    """What a change takes: copies, at so many `places`; of all destinations, and of all objects."""

    copies: int = 0
    places: int = 0
    # Destinations that lose all of it, and objects that all lose.
    destinations: int = 0
    of_destinations: int = 0
    objects: int = 0
    of_objects: int = 0
    # Copies of these that stay where they are, though nobody wants them then.
    kept: int = 0

    @property
    def is_large(self) -> bool:
        """Whether it is more than ten copies, and a fifth of the destinations or the objects."""
        if self.copies <= REMOVALS_MIN:
            return False
        return (
            self.destinations > self.of_destinations * REMOVALS_SHARE
            or self.objects > self.of_objects * REMOVALS_SHARE
        )

    def __add__(self, other: Loss) -> Loss:
        """Two losses, one soon after the other."""
        return Loss(
            self.copies + other.copies,
            self.places + other.places,
            self.destinations + other.destinations,
            max(self.of_destinations, other.of_destinations),
            self.objects + other.objects,
            max(self.of_objects, other.of_objects),
            self.kept + other.kept,
        )

    def __str__(self) -> str:
        copies = "1 copy" if self.copies == 1 else f"{self.copies:,} copies"
        return f"{copies} at {many(self.places, 'destination')}"


def weigh(
    inventory: tuple[SelectedDestinations, SelectedDestinations],
    before: Delivered,
    after: Delivered,
    others: Iterable[Delivered] = (),
    *,
    moves: bool = False,
) -> Loss:
    """What a placement loses from one moment to the next, in the inventory of each.

    A destination does not lose what `others` give it afterwards. Nobody loses a placement that
    `moves`, as long as anybody has it.
    """
    were = inventory[0].destinations(before.alternatives)
    are = inventory[1].destinations(after.alternatives)
    gone = before.objects - after.objects
    leaving, staying = were - are, were & are if gone else frozenset[MailKey]()
    if moves and are:
        leaving = frozenset()
    taken = before.objects if leaving else gone if staying else frozenset[ObjectKey]()
    covering = [
        (inventory[1].destinations(each.alternatives), objects)
        for each in (others if taken else ())
        if (objects := each.objects & taken)
    ]
    left_copies, left_places = _losing(leaving, before.objects, covering)
    lost_copies, lost_places = _losing(staying, gone, covering)
    return Loss(
        left_copies + lost_copies,
        left_places + lost_places,
        left_places,
        len(were),
        len(gone) if lost_copies else 0,
        len(before.objects),
    )


def _losing(
    destinations: AbstractSet[MailKey],
    objects: AbstractSet[ObjectKey],
    covering: list[tuple[frozenset[MailKey], AbstractSet[ObjectKey]]],
) -> tuple[int, int]:
    """How many copies these destinations lose of these objects, and how many of them lose any."""
    if not covering:
        return len(destinations) * len(objects), len(destinations) if objects else 0
    # Destinations that the same others cover are alike.
    alike = Counter(
        tuple(at for at, (whom, _) in enumerate(covering) if key in whom) for key in destinations
    )
    copies = places = 0
    for by, count in alike.items():
        left = len(frozenset(objects).difference(*(covering[at][1] for at in by)))
        copies += count * left
        places += count if left else 0
    return copies, places


class Confirmations:
    """So many copies of a placement a person let go: for a while, each once."""

    def __init__(self) -> None:
        self._left: dict[MailKey, tuple[int, float]] = {}

    def allow(self, placement: MailKey, copies: int, until: float) -> None:
        """Let so many copies go until a moment."""
        self._left[placement] = (copies, until)

    def covers(self, placement: MailKey, copies: int, now: float) -> bool:
        """Whether so many may go now; then they are used up."""
        left, until = self._left.get(placement, (0, now))
        if now >= until or copies > left:
            return False
        self._left[placement] = (left - copies, until)
        return True


GATHER_MS = 5_000
"""So long after one edit the next counts as part of it: `kubectl label --all` is many."""


@dataclass(slots=True)
class Brake:
    """Which placements hold what an edit takes of them, since when, and for how long.

    Who starts again counts anew: a removal never goes sooner for that. Edits that follow each other
    closely count as one.
    """

    confirmed: Confirmations = field(default_factory=Confirmations)
    # What is held, and since when, in ms since 1970.
    held: dict[MailKey, tuple[Loss, int]] = field(default_factory=dict)
    # When what is held goes by itself.
    due: dict[MailKey, int] = field(default_factory=dict)
    # Holds nothing that was not held before: a change is tried, and is to be told whole.
    tries: bool = False
    _accepted: set[MailKey] = field(default_factory=set)
    # What went at once, as it was little, and when.
    _went: dict[MailKey, tuple[Loss, int]] = field(default_factory=dict)

    def trial(self) -> Brake:
        """The same of its own, to try a change on."""
        return Brake(held=dict(self.held), tries=True)

    def accept(self, placement: MailKey) -> None:
        """Let go what is held of a placement now."""
        if placement in self.held:
            self._accepted.add(placement)

    def let_go(self, placement: MailKey) -> None:
        """Take it that nothing of a placement is to be held."""
        self.held.pop(placement, None)
        self.due.pop(placement, None)
        self._accepted.discard(placement)

    def withholds(self, placement: MailKey, loss: Loss, grace: float | None, now_ms: int) -> bool:
        """Whether a loss waits; `grace` says for how many seconds, None until it is accepted."""
        known = self.held.get(placement)
        if self.tries:
            return known is not None and known[0] == loss
        accepted = placement in self._accepted
        self._accepted.discard(placement)
        grown = known is None or loss.copies > known[0].copies
        # What grows is another removal: nobody knew of it when the time began.
        since = now_ms if known is None or grown else known[1]
        over = grace is not None and now_ms >= since + grace * 1000
        goes = self._is_little(placement, loss, now_ms) or over or (accepted and not grown)
        goes = goes or self.confirmed.covers(placement, loss.copies, now_ms)
        if goes:
            self.let_go(placement)
            return False
        self.held[placement] = loss, since
        self.due.pop(placement, None)
        if grace is not None:
            self.due[placement] = since + int(grace * 1000)
        return True

    def _is_little(self, placement: MailKey, loss: Loss, now_ms: int) -> bool:
        """Whether a loss is no large one, with what went just before."""
        went, at = self._went.get(placement, (Loss(), 0))
        total = loss + went if now_ms < at + GATHER_MS else loss
        if total.is_large:
            return False
        if loss.copies:
            lately = {k: it for k, it in self._went.items() if now_ms < it[1] + GATHER_MS}
            self._went = {**lately, placement: (total, now_ms)}
        return True

    def goes_at(self, placement: MailKey, name: str, said: str) -> int | None:
        """When what is said to be held goes by itself; None if never, or if more is said."""
        due = self.due.get(placement)
        return due if due is not None and said == self.message(placement, name) else None

    def message(self, placement: MailKey, name: str) -> str:
        """What is held of a placement, and what to do."""
        due, (loss, _) = self.due.get(placement), self.held[placement]
        until = f", at {timestamp(due)} by itself" if due is not None else ""
        remedy = f"put the edit back, or let them go with `leafcast accept {short_title(name)}`"
        return f"an edit takes away {loss}{until}; {remedy}"
