"""Selectors by a term they demand, so that a label set finds its selectors without trying all."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Generic, TypeVar

from relay.core.audience.terms import label_term, selectable, space_term
from schemas.selectors import EXISTS, IN, LabelSelector, Requirement

Item = TypeVar("Item", bound=Hashable)

_ANY = ""
"""The term of selectors that demand no term."""


class SelectorIndex(Generic[Item]):
    """Items that select label sets, each by a selector and an inventory space (`""`: any)."""

    def __init__(self) -> None:
        self._scopes: dict[Item, tuple[str, LabelSelector]] = {}
        # Term to items, each with what else it demands: space and requirements.
        self._by_term: dict[str, dict[Item, tuple[str, tuple[Requirement, ...]]]] = {}

    def put(self, item: Item, space: str, selector: LabelSelector) -> None:
        """Set what an item selects."""
        self.discard(item)
        self._scopes[item] = (space, selector)
        terms, rest = _split(space, selector)
        for term in terms:
            self._by_term.setdefault(term, {})[item] = rest

    def discard(self, item: Item) -> None:
        """Take an item out, if it is there."""
        held = self._scopes.pop(item, None)
        for term in _split(*held)[0] if held is not None else ():
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

    def check(self) -> None:
        """Assert that each item stands under its terms, and nothing else does."""
        defined: dict[str, dict[Item, tuple[str, tuple[Requirement, ...]]]] = {}
        for item, scope in self._scopes.items():
            terms, rest = _split(*scope)
            for term in terms:
                defined.setdefault(term, {})[item] = rest
        assert self._by_term == defined


def _split(
    space: str, selector: LabelSelector
) -> tuple[tuple[str, ...], tuple[str, tuple[Requirement, ...]]]:
    """The terms one of which is demanded, the rarest kind there is; and what remains to be met."""
    requirements = selector.requirements
    equalities = [item for item in requirements if item.operator == IN]
    if equalities:
        narrowest = min(equalities, key=lambda item: len(item.values))
        terms = tuple(label_term(narrowest.key, value) for value in narrowest.values)
        return terms, (space, tuple(item for item in requirements if item != narrowest))
    if space:
        return (space_term(space),), ("", requirements)
    present = next((item for item in requirements if item.operator == EXISTS), None)
    if present is not None:
        return (present.key,), ("", tuple(item for item in requirements if item != present))
    return (_ANY,), ("", requirements)


def _meets(labels: Mapping[str, str], requirements: tuple[Requirement, ...]) -> bool:
    # By hand: most have none left, and to make a generator takes as long as to ask it.
    for item in requirements:  # noqa: SIM110
        if not item.matches(labels):
            return False
    return True
