"""What each child's report slots hold, as one sum a child: so one that was lost is missed.

The child says the same sum with its progress. Only slots count whose report says that something is
there: who answered "gone" has nothing more to lose.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from schemas.identity import MailKey
from schemas.records import DIGEST_MODULUS, digest_term
from schemas.reports import Report, ReportPart, encode, part_key
from schemas.wire import replace

PARTS_OF_CHILD_MAX, PARTS_BYTES_MAX = 4096, 64 * 1024 * 1024
"""So many later parts one child may have in all placements: what it can make its parent hold."""
RESULT_BYTES = 400
"""What a result takes besides its status: seven bytes of a message are opened to so many."""


def report_term(slot: str, run: int, revision: int) -> int:
    """What a report in a slot adds to the digest, modulo DIGEST_MODULUS."""
    return digest_term(slot, run.to_bytes(8, "big") + revision.to_bytes(8, "big"))


@lru_cache(maxsize=4096)
def run_number(run: str) -> int:
    """The first 63 bits of a run's hash: what a row, and the digest, know it by."""
    return int.from_bytes(hashlib.sha256(run.encode()).digest()[:8], "big") >> 1


def digest_bytes(total: int) -> bytes:
    """A sum of terms as it is said: 16 bytes."""
    return (total % DIGEST_MODULUS).to_bytes(16, "big")


def content_of(report: Report, results: object) -> bytes:
    """What makes a report another one; the revision and the oldest receipt alone do not."""
    same = replace(report, revision=0, summary=replace(report.summary, oldest_ms=0))
    return hashlib.sha256(encode(same) + repr(results).encode()).digest()


def size_of(part: ReportPart) -> int:
    """How many bytes of memory a later part takes, about; it may be a fortieth on the wire."""
    statuses = sum(RESULT_BYTES + len(item.status or b"") for item in part.results)
    rows = (RESULT_BYTES + len(item.rows) + len(item.unreached) for item in part.collected)
    return RESULT_BYTES + statuses + sum(rows)


@dataclass(slots=True)
class _Run:
    """The slots that hold reports of one run, those aside that are void."""

    sum: int = 0
    slots: int = 0
    # The highest revision that was taken.
    newest: int = 0


@dataclass(slots=True)
class _Child:
    """What is known of one child's slots."""

    # Of the present run only, once that is known.
    runs: dict[int, _Run] = field(default_factory=dict)
    # The present run; None before it is known.
    run: int | None = None
    # Reports of the present run up to this revision are void: they are to be said again.
    void_through: int = 0
    # Slots whose report is void, by this or as another run's.
    void: int = 0

    def is_void(self, run: int, revision: int) -> bool:
        return self.run is not None and (run != self.run or revision <= self.void_through)


class ReportDigests:
    """The sums of all children, by their places in the fold."""

    def __init__(self) -> None:
        self._children: dict[int, _Child] = {}

    def of(self, place: int) -> bytes:
        """The digest of what the child's present run said: 16 bytes."""
        child = self._children.get(place)
        known = child.runs.get(child.run) if child and child.run is not None else None
        return digest_bytes(known.sum if known else 0)

    def expect_all(self, place: int, run: int) -> None:
        """All is to be said again: by another run than before, or by the same one."""
        child = self._children.setdefault(place, _Child())
        known = child.runs.get(run, _Run())
        child.void += sum(each.slots for each in child.runs.values())
        if run == child.run:
            child.void_through = known.newest
            known.sum = known.slots = 0
        else:
            child.run, child.void_through = run, 0
            child.void -= known.slots
        child.runs = {run: known}

    def is_present(self, place: int, run: int) -> bool:
        """Whether reports of the run are taken: it is the present one, or that is not known."""
        child = self._children.get(place)
        return child is None or child.run in (None, run)

    def counts(self, place: int, run: int, revision: int) -> bool:
        """Whether a report counts: the present run made it, and does not have to say it again."""
        child = self._children.get(place)
        return child is not None and child.run is not None and not child.is_void(run, revision)

    def has_void(self, place: int) -> bool:
        """Whether the child has slots that its present run did not say, or not again."""
        child = self._children.get(place)
        return child is not None and child.void > 0

    def add(self, place: int, slot: str, run: int, revision: int) -> None:
        """A slot holds this report now."""
        child = self._children.setdefault(place, _Child())
        if child.is_void(run, revision):
            child.void += 1
            return
        known = child.runs.setdefault(run, _Run())
        known.sum = (known.sum + report_term(slot, run, revision)) % DIGEST_MODULUS
        known.slots += 1
        known.newest = max(known.newest, revision)

    def remove(self, place: int, slot: str, run: int, revision: int) -> None:
        """A slot holds this report no more."""
        child = self._children[place]
        if child.is_void(run, revision):
            child.void -= 1
            return
        known = child.runs[run]
        known.sum = (known.sum - report_term(slot, run, revision)) % DIGEST_MODULUS
        known.slots -= 1

    def forget_child(self, place: int) -> None:
        """Forget all that a child said."""
        self._children.pop(place, None)

    def check(self, place: int, held: list[tuple[str, int, int]]) -> None:
        """Assert that the child's sum is that of its slots: each slot, its run and revision."""
        child = self._children.get(place, _Child())
        current = [each for each in held if not child.is_void(*each[1:])]
        assert child.void == len(held) - len(current)
        assert sum(each.slots for each in child.runs.values()) == len(current)
        of_run = [each for each in current if each[1] == child.run]
        assert self.of(place) == digest_bytes(sum(report_term(*each) for each in of_run))


class PartBudget:
    """Which parts of some kind each child has, and how much memory these take."""

    def __init__(self, parts_max: int, bytes_max: int) -> None:
        """Both are of one child."""
        self._parts_max, self._bytes_max = parts_max, bytes_max
        # By child and placement: run, revision and bytes of each part.
        self._parts: dict[int, dict[MailKey, dict[int, tuple[int, int, int]]]] = {}
        # By child: how many parts, and bytes, in all.
        self._totals: dict[int, tuple[int, int]] = {}

    def admits(self, place: int, key: MailKey, part: int, size: int) -> bool:
        """Whether a child that says this part says no more than it may."""
        count, total = self._totals.get(place, (0, 0))
        held = self.of(place, key).get(part)
        count, total = count + (held is None), total + size - (held[2] if held else 0)
        return total <= self._bytes_max and count <= self._parts_max

    def of(self, place: int, key: MailKey) -> dict[int, tuple[int, int, int]]:
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

    def put(self, place: int, key: MailKey, part: int, said: tuple[int, int, int]) -> None:
        """Note a part's run, revision and bytes."""
        self.take(place, key, part)
        self._parts.setdefault(place, {}).setdefault(key, {})[part] = said
        count, total = self._totals.get(place, (0, 0))
        self._totals[place] = (count + 1, total + said[2])

    def take(self, place: int, key: MailKey, part: int) -> tuple[int, int, int] | None:
        """Forget a part; what was noted of it."""
        of_child = self._parts.get(place, {})
        parts = of_child.get(key, {})
        said = parts.pop(part, None)
        if said is not None:
            count, total = self._totals[place]
            self._totals[place] = (count - 1, total - said[2])
            if not parts:
                del of_child[key]
        return said

    def forget_child(self, place: int) -> None:
        self._parts.pop(place, None)
        self._totals.pop(place, None)

    def check(self) -> None:
        """Assert that the totals are those of the parts."""
        for place, (count, size) in self._totals.items():
            assert count <= self._parts_max
            assert size <= self._bytes_max
            parts = [said for each in self._parts.get(place, {}).values() for said in each.values()]
            assert (count, size) == (len(parts), sum(said[2] for said in parts))
