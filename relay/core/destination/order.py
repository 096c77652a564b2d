"""Which placements wait here for others: their new content, and what the others leave behind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from relay.core.destination.assignment import Assignment
from relay.core.destination.claims import Claim
from relay.core.gates import Candidate
from schemas.objects.objects import ObjectKey
from schemas.records.records import Alternative, DeltaHead, Dependency
from schemas.reports.reports import Done
from schemas.reports.upsync import UpsyncClause
from schemas.values.identity import MailKey


class CompleteContent(NamedTuple):
    """Content that is all here, and what comes up by it."""

    assignment: Assignment
    clauses: tuple[UpsyncClause, ...]


class DependencyOrder:
    """What the placements here say that they wait for; what is `held` waits for it now.

    What a placement named is remembered until nothing of it is left: it goes first.
    """

    def __init__(self, done: Iterable[Done]) -> None:
        """`done` is what was applied before this run: that is no new content."""
        self.held: dict[MailKey, CompleteContent] = {}
        # Whether who is held may go on; whether what is left may go.
        self._held_is_stale = self._left_is_stale = False
        self._after: dict[MailKey, dict[MailKey, Dependency]] = {}
        self._needed_by: dict[MailKey, dict[MailKey, None]] = {}
        self._generations: dict[MailKey, int] = {}
        self._applied = {item.key: item.address for item in done if item.uid}

    def put(self, key: MailKey, head: DeltaHead, after: Iterable[Dependency]) -> None:
        """Take what a placement in force here says."""
        self._generations[key] = head.generation
        named = {each.key(head.source): each for each in after}
        if self._after.get(key, {}) != named:
            self.forget(key)
            if named:
                self._after[key] = named
            for other in named:
                self._needed_by.setdefault(other, {})[key] = None
            self._left_is_stale = True
        self._held_is_stale = bool(self.held)

    def let_go(self, key: MailKey) -> None:
        """The placement is not in force here any more."""
        self._generations.pop(key, None)
        self.held.pop(key, None)
        self._held_is_stale, self._left_is_stale = (
            bool(self.held),
            self._left_is_stale or bool(self._after),
        )

    def forget(self, key: MailKey) -> None:
        """Nothing is left of the placement."""
        for other in self._after.pop(key, ()):
            del self._needed_by[other][key]
            if not self._needed_by[other]:
                del self._needed_by[other]

    def observed(self, claimers: Iterable[MailKey], *, gone: bool) -> None:
        """Something became of an object here, or it is gone; who claimed it."""
        self._held_is_stale = bool(self.held)
        if gone and self._after and any(key in self._after for key in claimers):
            self._left_is_stale = True

    @property
    def is_stale(self) -> bool:
        """Whether who is held may go on, or what is left may go."""
        return self._held_is_stale or self._left_is_stale

    def take_released(self) -> bool:
        """Whether what is left may go that might not when this was asked last."""
        news, self._held_is_stale, self._left_is_stale = self._left_is_stale, False, False
        return news

    def waits_for(
        self, key: MailKey, who: Candidate, is_healthy: Callable[[MailKey], bool]
    ) -> Dependency | None:
        """The first that is meant here, and is not well in the content it has for here."""
        for other, each in self._after.get(key, {}).items():
            if is_meant(each.alternatives, who):
                is_old = self._generations.get(other, -1) < each.generation
                if is_old or not is_healthy(other):
                    return each
        return None

    def needed_by(self, key: MailKey) -> Iterator[tuple[MailKey, Dependency]]:
        """The placements that wait for this one, or did when they were in force."""
        for other in self._needed_by.get(key, ()):
            yield other, self._after[other][key]

    def is_new(self, ready: Assignment, claims: Mapping[ObjectKey, Claim]) -> bool:
        """Whether content brings something that is not here; `claims` are those in force."""
        for entry in ready.entries or ():
            claim, form = claims.get(entry.key), ready.forms.get(entry.key)
            address = entry.identity if form is None else form.address
            there = self._applied.get(entry.key) if claim is None else claim.address
            if there != address:
                return True
        return False

    def took(self, ready: Assignment) -> None:
        """Content is in force: what was there before this run says nothing any more."""
        self._left_is_stale = self._left_is_stale or bool(self._after)
        for entry in ready.entries or ():
            self._applied.pop(entry.key, None)

    def assert_invariants(self) -> None:
        """Assert that both directions agree."""
        pairs = {(key, other) for key, named in self._after.items() for other in named}
        assert pairs == {(key, other) for other, keys in self._needed_by.items() for key in keys}
        assert all(self._needed_by.values())
        assert self.held.keys() <= self._generations.keys()


def is_meant(alternatives: Iterable[Alternative], who: Candidate) -> bool:
    """Whether one of these selects the destination, by itself or by a Location it belongs to."""
    return who.chosen(alternatives) is not None
