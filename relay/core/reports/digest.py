"""What each child's report slots hold, as one sum a child: so one that was lost is missed.

The child says the same sum with its progress. Only slots count whose report says that something is
there: who answered "gone" has nothing more to lose.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import lru_cache

from schemas.records.records import DIGEST_MODULUS, digest_term
from schemas.reports.reports import Report
from schemas.values.wire import encode, replace


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

    def void_until_repeated(self, place: int, run: int) -> None:
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

    def assert_invariants(self, place: int, held: list[tuple[str, int, int]]) -> None:
        """Assert that the child's sum is that of its slots: each slot, its run and revision."""
        child = self._children.get(place, _Child())
        current = [each for each in held if not child.is_void(*each[1:])]
        assert child.void == len(held) - len(current)
        assert sum(each.slots for each in child.runs.values()) == len(current)
        of_run = [each for each in current if each[1] == child.run]
        assert self.of(place) == digest_bytes(sum(report_term(*each) for each in of_run))
