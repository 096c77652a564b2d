"""The label sets of very many numbered things, and which of them a selector selects.

Per term (`selector_index.py`) the set of numbers that have it: one, or several (`numbers.py`).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping

from relay.core.audience.numbers import FEW, FEW_MAX, MakeNumbers, Numbers, many, union
from relay.core.audience.selector_index import label_term, selectable, space_term
from schemas.objects.selectors import LabelSelector


class LabelSets:
    """Label sets and inventory spaces by number. Numbers it returns must not be changed."""

    def __init__(self) -> None:
        # Makes sets of numbers, of the kind that all have here.
        self.numbers: MakeNumbers = FEW
        # Every number that has a label set.
        self._all = self.numbers()
        # Of each number its term ids, 4 bytes each: its space's, then its labels'.
        self._sets: list[bytes] = []
        # Term to term id.
        self._ids: dict[str, int] = {}
        # Term id to term; "" if the id is free.
        self._terms: list[str] = []
        # Term id to the numbers that have the term: most terms are of one thing only.
        self._members: list[int | Numbers] = []
        self._free_ids: list[int] = []

    def __len__(self) -> int:
        return len(self._all)

    def __contains__(self, number: int) -> bool:
        return number in self._all

    def put(self, number: int, space: str, labels: Mapping[str, str]) -> None:
        """Set the label set of a number."""
        self.discard(number)
        labels = selectable(labels)
        ids = array("I", (self._add(space_term(space), number),))
        for key, value in labels.items():
            self._add(key, number)
            ids.append(self._add(label_term(key, value), number))
        if number >= len(self._sets):
            self._sets.extend([b""] * (number + 1 - len(self._sets)))
        self._sets[number] = ids.tobytes()
        self._all.add(number)
        if len(self._all) > FEW_MAX and self.numbers is FEW:
            self._become_many()

    def discard(self, number: int) -> None:
        """Take a number out, if it is there."""
        if number not in self._all:
            return
        space, *labels = self._terms_of(number)
        self._remove(space, number)
        for term in labels:
            self._remove(term.partition("=")[0], number)
            self._remove(term, number)
        self._sets[number] = b""
        self._all.discard(number)

    def renumber(self, old: int, new: int) -> None:
        """Give a label set another number, which is free."""
        space, labels = self.space(old), self.labels(old)
        self.discard(old)
        self.put(new, space, labels)

    def space(self, number: int) -> str:
        """The inventory space of a number that is there."""
        return self._terms_of(number)[0][1:]

    def labels(self, number: int) -> dict[str, str]:
        """The labels of a number that is there, as far as a selector can name them."""
        found = {}
        for term in self._terms_of(number)[1:]:
            key, _, value = term.partition("=")
            found[key] = value
        return found

    def select(self, space: str, selector: LabelSelector) -> Numbers:
        """The numbers in the space (`""`: any) that the selector selects."""
        demanded = [self._having((space_term(space),))] if space else []
        excluded = []
        for item in selector.requirements:
            match item.operator:
                case "In":
                    demanded.append(self._having(label_term(item.key, v) for v in item.values))
                case "NotIn":
                    excluded.append(self._having(label_term(item.key, v) for v in item.values))
                case "Exists":
                    demanded.append(self._having((item.key,)))
                case _:
                    excluded.append(self._having((item.key,)))
        demanded.sort(key=len)
        found = demanded[0] if demanded else self._all
        for members in demanded[1:]:
            found = found & members
        for members in excluded:
            found = found - members
        return found

    def assert_invariants(self) -> None:
        """Assert that each set of numbers is what the label sets say."""
        defined: dict[str, Numbers] = {}
        for number, ids in enumerate(self._sets):
            assert bool(ids) == (number in self._all)
            if ids:
                terms = {space_term(self.space(number))}
                for key, value in self.labels(number).items():
                    terms |= {key, label_term(key, value)}
                for term in terms:
                    defined.setdefault(term, self.numbers()).add(number)
        assert max(self._all, default=-1) < len(self._sets)
        assert defined == {term: self._having((term,)) for term in self._ids}
        for at, (term, members) in enumerate(zip(self._terms, self._members, strict=True)):
            assert self._ids.get(term) == at if term else at in self._free_ids
            assert isinstance(members, int) or len(members) > 1
        assert len(self._ids) + len(self._free_ids) == len(self._terms)

    def _terms_of(self, number: int) -> list[str]:
        return [self._terms[at] for at in array("I", self._sets[number])]

    def _become_many(self) -> None:
        self.numbers = make = many()
        self._all = make(self._all)
        self._members = [it if isinstance(it, int) else make(it) for it in self._members]

    def _having(self, terms: Iterable[str]) -> Numbers:
        """The numbers that have one of the terms."""
        parts = []
        for term in terms:
            at = self._ids.get(term)
            if at is not None:
                members = self._members[at]
                parts.append(self.numbers((members,)) if isinstance(members, int) else members)
        return union(parts) if parts else self.numbers()

    def _add(self, term: str, number: int) -> int:
        """Note that a number has a term; returns the term's id."""
        at = self._ids.get(term)
        if at is not None:
            members = self._members[at]
            if isinstance(members, int):
                self._members[at] = self.numbers((members, number))
            else:
                members.add(number)
            return at
        if self._free_ids:
            at = self._free_ids.pop()
            self._terms[at], self._members[at] = term, number
        else:
            at = len(self._terms)
            self._terms.append(term)
            self._members.append(number)
        self._ids[term] = at
        return at

    def _remove(self, term: str, number: int) -> None:
        at = self._ids[term]
        members = self._members[at]
        if isinstance(members, int):
            del self._ids[term]
            self._terms[at], self._members[at] = "", 0
            self._free_ids.append(at)
            return
        members.discard(number)
        if len(members) == 1:
            self._members[at] = next(iter(members))
