"""Selectors by a term they demand, so that a label set finds its selectors without trying all.

Terms are what this index and that of label sets have in common: `key=value` is a label, `key` says
that a key is present, `=space` is the inventory space. One string each is small.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Generic, TypeVar

from schemas.objects.selectors import EXISTS, IN, LabelSelector, Requirement

Item = TypeVar("Item", bound=Hashable)

_ANY = ""
"""The term of selectors that demand no term."""


class SelectorIndex(Generic[Item]):
    """Items that select label sets, each by a selector and an inventory space (`""`: any)."""

    def __init__(self) -> None:
        # Each item's terms: a label set that it selects has one of them.
        self._terms: dict[Item, tuple[str, ...]] = {}
        # Term to items, each with what else it demands: space and requirements.
        self._by_term: dict[str, dict[Item, tuple[str, tuple[Requirement, ...]]]] = {}

    def put(self, item: Item, space: str, selector: LabelSelector) -> None:
        """Set what an item selects."""
        self.discard(item)
        terms, rest = self._split(space, selector)
        self._terms[item] = terms
        for term in terms:
            self._by_term.setdefault(term, {})[item] = rest

    def discard(self, item: Item) -> None:
        """Take an item out, if it is there."""
        for term in self._terms.pop(item, ()):
            posting = self._by_term[term]
            del posting[item]
            if not posting:
                del self._by_term[term]

    def matching(self, space: str, labels: Mapping[str, str]) -> Iterator[Item]:
        """The items that select this label set, each once."""
        labels = selectable(labels)
        terms = [_ANY, space_term(space), *labels]
        terms += [label_term(key, value) for key, value in labels.items()]
        for term in terms:
            for item, (demanded, rest) in self._by_term.get(term, {}).items():
                if demanded in ("", space) and _meets(labels, rest):
                    yield item

    def assert_invariants(self) -> None:
        """Assert that each item stands under its terms, and nothing else does."""
        defined = {(term, item) for item, terms in self._terms.items() for term in terms}
        held = [(term, item) for term, posting in self._by_term.items() for item in posting]
        assert defined == set(held)
        assert all(self._by_term.values())

    def _split(
        self, space: str, selector: LabelSelector
    ) -> tuple[tuple[str, ...], tuple[str, tuple[Requirement, ...]]]:
        """The terms one of which is demanded, as few share them; and what remains to be met."""
        requirements = selector.requirements
        of_equality = [
            (tuple(label_term(item.key, value) for value in item.values), item)
            for item in requirements
            if item.operator == IN
        ]
        if of_equality:
            terms, chosen = min(of_equality, key=lambda pair: self._share(pair[0]))
            return terms, (space, tuple(item for item in requirements if item != chosen))
        if space:
            return (space_term(space),), ("", requirements)
        present = next((item for item in requirements if item.operator == EXISTS), None)
        if present is not None:
            return (present.key,), ("", tuple(item for item in requirements if item != present))
        return (_ANY,), ("", requirements)

    def _share(self, terms: tuple[str, ...]) -> int:
        """How many items stand under the terms, with one more under each."""
        return sum(len(self._by_term.get(term, ())) + 1 for term in terms)


def _meets(labels: Mapping[str, str], requirements: tuple[Requirement, ...]) -> bool:
    # By hand: most have none left, and to make a generator takes as long as to ask it.
    for item in requirements:  # noqa: SIM110
        if not item.matches(labels):
            return False
    return True


def space_term(space: str) -> str:
    return f"={space}"


def label_term(key: str, value: str) -> str:
    return f"{key}={value}"


def selectable(labels: Mapping[str, str]) -> Mapping[str, str]:
    """The labels that a selector can name. The others would read as terms of another meaning."""
    if "" not in labels and "=" not in "".join(labels):
        return labels
    return {key: value for key, value in labels.items() if key and "=" not in key}
