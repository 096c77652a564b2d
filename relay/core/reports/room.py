"""How much room a node's later parts have at its parent: one rule, which both ends apply.

Who says them lets placements have it in the order of their keys, and tells how much found no room.
Who is told takes a little more, as what comes may overtake what makes room for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import NamedTuple

from relay.core.reports.parts import PartRows, ResultOrRows, counted, split_results
from schemas.reports.collectors import Collected
from schemas.reports.reports import COUNT_MAX, ObjectResult, ReportPart, part_key
from schemas.values.identity import MailKey

ROOM_BYTES = 64 * 1024 * 1024
"""So much memory the later parts of one relay take at its parent, in all placements."""
EDGE_SHARE = 8
"""A node with nothing below it has one part in so many of that."""
SLACK_SHARE = 8
"""A parent takes one part in so many more."""
PART_MIN_BYTES = 1024
"""No part counts as less: it has a slot, too."""
RESULT_BYTES = 400
"""What a result takes besides its status: seven bytes of a message are opened to so many."""


def room_of(below: int) -> int:
    """The room of a node with so much below it: an edge has nothing there."""
    return ROOM_BYTES if below else ROOM_BYTES // EDGE_SHARE


def taken_from(room: int) -> tuple[int, int]:
    """How many slots, and bytes, a parent takes of who has this room.

    Twice as many slots as find room: what is refused is noted in its slot, and what a former run
    said has one until the present run has said all.
    """
    return 2 * room // PART_MIN_BYTES, room + room // SLACK_SHARE


def result_size(item: ObjectResult | Collected) -> int:
    """How many bytes of memory a result or the rows of a collector take, about."""
    if isinstance(item, Collected):
        return RESULT_BYTES + len(item.rows) + len(item.unreached)
    return RESULT_BYTES + len(item.status or b"")


def size_of(part: ReportPart | PartRows) -> int:
    """How many bytes of memory a later part takes, about; it may be a fortieth on the wire."""
    results, collected = map(result_size, part.results), map(result_size, part.collected)
    return max(PART_MIN_BYTES, sum(results) + sum(collected))


class Allotted:
    """What of one placement's results finds room, in parts."""

    def __init__(self, results: Iterable[ObjectResult], collected: Sequence[Collected]) -> None:
        self._results = sorted(results, key=lambda item: item.key)
        self._collected = list(collected)
        self.count, self.parts = split_results(self._results, self._collected)

    @property
    def unsaid(self) -> int:
        """How many results and rows found no room, here or in a part of a message's size."""
        whole = {id(it) for part in self.parts.values() for it in chain(*part)}
        left_out = sum(1 for it in chain(self._results, self._collected) if id(it) not in whole)
        return min(left_out, COUNT_MAX)

    @property
    def size(self) -> int:
        """How many bytes of memory the parts take, also those that nothing fell into."""
        return sum(self.sizes())

    def sizes(self) -> tuple[int, ...]:
        """How many bytes of memory each part takes, from the first one on."""
        return tuple(size_of(self.parts.get(1 + at, PartRows())) for at in range(self.count))

    def fit(self, room: int) -> None:
        """Leave out what finds no room: statuses and rows first, from the end."""
        most, size = room, self.size
        while size > room:
            # Parts are counted as no less than they have a slot for: mostly this turns once.
            self._cut(most)
            size = self.size
            most -= max(size - room, PART_MIN_BYTES)

    def _cut(self, most: int) -> None:
        kept: list[ResultOrRows] = []
        left = most
        for item in chain[ResultOrRows](self._results, self._collected):
            said = counted(item) if result_size(item) > left else item
            if result_size(said) <= left:
                kept.append(said)
                left -= result_size(said)
        self.count, self.parts = split_results(*PartRows.of(kept))


class SenderRoom:
    """Which placements have how much of the room that this node has at its parent."""

    def __init__(self) -> None:
        self.bytes = ROOM_BYTES
        # What each placement would take, and takes, and the most that it was let take.
        self._wanted: dict[MailKey, int] = {}
        self._used: dict[MailKey, int] = {}
        self._limits: dict[MailKey, int] = {}
        self._wanted_sum = self._used_sum = 0
        # What each may have; only what is less than it wants.
        self._short: dict[MailKey, int] = {}

    def limit(self, key: MailKey, wanted: int) -> int:
        """How much a placement may take now that would take so much."""
        self._wanted_sum += wanted - self._wanted.get(key, 0)
        _note(self._wanted, key, wanted)
        free = self.bytes - (self._used_sum - self._used.get(key, 0))
        limit = max(min(wanted, self._short.get(key, wanted), free), 0)
        _note(self._limits, key, limit)
        return limit

    def take(self, key: MailKey, size: int) -> None:
        """A placement takes so much from now on."""
        self._used_sum += size - self._used.get(key, 0)
        _note(self._used, key, size)

    def settle(self) -> list[MailKey]:
        """The placements that are to be said again, first those that make room for others."""
        if self._wanted_sum <= self.bytes:
            self._short = {}
            if self._used_sum == self._wanted_sum:
                return []
        left, short = self.bytes, dict[MailKey, int]()
        smaller: list[MailKey] = []
        larger: list[MailKey] = []
        for key in sorted(self._wanted):
            wanted = self._wanted[key]
            given = min(wanted, left)
            left -= given
            if given < wanted:
                short[key] = given
            limit = self._limits.get(key, 0)
            if limit != given:
                (smaller if given < limit else larger).append(key)
        self._short = short
        return smaller + larger

    def assert_invariants(self) -> None:
        """Assert that the sums are those of the placements, and within the room."""
        assert self._wanted_sum == sum(self._wanted.values())
        assert self._used_sum == sum(self._used.values())
        assert all(self._used[key] <= self._limits[key] for key in self._used)


def _note(sizes: dict[MailKey, int], key: MailKey, size: int) -> None:
    if size:
        sizes[key] = size
    else:
        sizes.pop(key, None)


PartFigures = tuple[int, int, int]
"""Of a slot: run, revision and bytes; where it is only noted that something was said, minus the
bytes that found no room."""


class _Totals(NamedTuple):
    """Of one child."""

    slots: int = 0
    # What is kept of them, and what found no room.
    bytes: int = 0
    refused: int = 0
    # How many are only noted.
    noted: int = 0

    def plus(self, said: PartFigures, slots: int = 1) -> _Totals:
        """With a slot more; or with one less, if `slots` is -1."""
        kept, refused, noted = max(said[2], 0), max(-said[2], 0), said[2] <= 0
        return _Totals(
            self.slots + slots,
            self.bytes + slots * kept,
            self.refused + slots * refused,
            self.noted + slots * noted,
        )


class PartBudget:
    """Which slots of some kind each child has, and how much memory these take."""

    def __init__(self, limits: Callable[[int], tuple[int, int]]) -> None:
        """`limits` are of one child: how many slots, and bytes."""
        self._limits = limits
        # By child and placement: what was said in each part.
        self._parts: dict[int, dict[MailKey, dict[int, PartFigures]]] = {}
        self._totals: dict[int, _Totals] = {}

    def admits(self, place: int, key: MailKey, part: int, size: int) -> bool:
        """Whether a child that says this part says no more than it may."""
        totals, held = self._totals.get(place, _Totals()), self.of(place, key).get(part)
        if held is not None:
            totals = totals.plus(held, -1)
        slots_max, bytes_max = self._limits(place)
        return totals.slots < slots_max and (size <= 0 or totals.bytes + size <= bytes_max)

    def noted(self, place: int) -> int:
        """How many slots of a child are only noted."""
        return self._totals.get(place, _Totals()).noted

    def fits_now(self, place: int, room: int) -> list[tuple[MailKey, int]]:
        """The parts of a child that found no room, if all that it says finds room by now."""
        totals = self._totals.get(place, _Totals())
        if not totals.refused or totals.bytes + totals.refused > room:
            return []
        of_child = self._parts[place].items()
        return [(key, n) for key, parts in of_child for n, said in parts.items() if said[2] < 0]

    def of(self, place: int, key: MailKey) -> dict[int, PartFigures]:
        """A child's parts of a placement: run, revision, and bytes."""
        return self._parts.get(place, {}).get(key, {})

    def placements(self, place: int) -> list[MailKey]:
        """The placements that a child has parts of."""
        return list(self._parts.get(place, ()))

    def all_of(self, place: int) -> Iterable[tuple[str, int, int]]:
        """A child's slots of parts, with run and revision."""
        for key, parts in self._parts.get(place, {}).items():
            for part, (run, revision, _) in parts.items():
                yield part_key(key, part), run, revision

    def put(self, place: int, key: MailKey, part: int, said: PartFigures) -> None:
        """Note a part's run, revision and bytes."""
        self.take(place, key, part)
        self._parts.setdefault(place, {}).setdefault(key, {})[part] = said
        self._totals[place] = self._totals.get(place, _Totals()).plus(said)

    def take(self, place: int, key: MailKey, part: int) -> PartFigures | None:
        """Forget a part; what was noted of it."""
        of_child = self._parts.get(place, {})
        parts = of_child.get(key, {})
        said = parts.pop(part, None)
        if said is not None:
            self._totals[place] = self._totals[place].plus(said, -1)
            if not parts:
                del of_child[key]
        return said

    def forget_child(self, place: int) -> None:
        self._parts.pop(place, None)
        self._totals.pop(place, None)

    def assert_invariants(self) -> None:
        """Assert that the totals are those of the parts."""
        for place, totals in self._totals.items():
            said = [it for each in self._parts.get(place, {}).values() for it in each.values()]
            found = _Totals()
            for each in said:
                found = found.plus(each)
            assert totals == found


class UnsaidCounts:
    """By placement and child, how much found no room in what the child says."""

    def __init__(self) -> None:
        self._counts: dict[MailKey, dict[int, int]] = {}

    def of(self, key: MailKey) -> int:
        """Of a placement, whoever says so."""
        return min(sum(self._counts.get(key, {}).values()), COUNT_MAX)

    def of_child(self, place: int) -> int:
        return sum(said.get(place, 0) for said in self._counts.values())

    def placements(self, place: int) -> list[MailKey]:
        return [key for key, said in self._counts.items() if place in said]

    def put(self, key: MailKey, place: int, count: int) -> bool:
        """Note it; whether it is another than before."""
        said = self._counts.setdefault(key, {})
        former = said.pop(place, 0)
        if count:
            said[place] = count
        if not said:
            del self._counts[key]
        return former != count
