"""Labels in bulk: which selectors match these labels, and whether a set of labels may match one.

"May" is never wrongly "no": of many destinations only the values per key are known, not who has
which together; of a single one the answer is exact (design.md, §4, "Where").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from schemas.reports import (
    LABEL_DIGEST_MAX_BYTES,
    LABEL_VALUES_MAX,
    KeyValues,
    SpaceLabels,
    encode,
)
from schemas.selectors import LabelSelector, Requirement

Id = TypeVar("Id")


class SelectorIndex(Generic[Id]):
    """Selectors by a label pair they demand, so that labels find theirs without trying all."""

    def __init__(self) -> None:
        self._selectors: dict[Id, LabelSelector] = {}
        self._by_pair: dict[tuple[str, str] | None, dict[Id, None]] = {}

    def put(self, item: Id, selector: LabelSelector | None) -> None:
        """Set an item's selector; None (selects nothing) takes the item out."""
        held = self._selectors.pop(item, None)
        if held is not None:
            for pair in _pairs(held):
                posting = self._by_pair[pair]
                del posting[item]
                if not posting:
                    del self._by_pair[pair]
        if selector is not None:
            self._selectors[item] = selector
            for pair in _pairs(selector):
                self._by_pair.setdefault(pair, {})[item] = None

    def matching(self, labels: Mapping[str, str]) -> Iterator[Id]:
        """The items whose selector the labels meet, each once."""
        for pair in (None, *labels.items()):
            for item in self._by_pair.get(pair, ()):
                if self._selectors[item].matches(labels):
                    yield item


class LabelCount:
    """How many of a changing set of labelled things have which value of which key."""

    def __init__(self) -> None:
        self.total = 0
        self._counts: dict[str, dict[str, int]] = {}

    def add(self, labels: Mapping[str, str]) -> None:
        self.total += 1
        for key, value in labels.items():
            values = self._counts.setdefault(key, {})
            values[value] = values.get(value, 0) + 1

    def remove(self, labels: Mapping[str, str]) -> None:
        self.total -= 1
        for key, value in labels.items():
            values = self._counts[key]
            values[value] -= 1
            if not values[value]:
                del values[value]
            if not values:
                del self._counts[key]

    def may_match(self, selector: LabelSelector) -> bool:
        """Whether one of the things may match; exact if there is only one."""
        return self.total > 0 and all(map(self._may_meet, selector.requirements))

    def summary(self) -> SpaceLabels:
        """The digest that goes up: values per key up to a bound, else any."""
        keys = {}
        for key, values in sorted(self._counts.items()):
            named = tuple(sorted(values)) if len(values) <= LABEL_VALUES_MAX else None
            keys[key] = KeyValues(named, sum(values.values()) < self.total)
        return SpaceLabels(keys)

    def _may_meet(self, requirement: Requirement) -> bool:
        values = self._counts.get(requirement.key, {})
        match requirement.operator:
            case "In":
                return any(value in values for value in requirement.values)
            case "NotIn":
                excluded = sum(values.get(value, 0) for value in requirement.values)
                return excluded < self.total
            case "Exists":
                return bool(values)
            case _:
                return sum(values.values()) < self.total


def digest_may_match(labels: SpaceLabels, selector: LabelSelector) -> bool:
    """Whether a destination of a subtree may match, by the digest that came from there."""
    return all(_digest_may_meet(labels.keys, item) for item in selector.requirements)


def merge_digests(digests: Iterable[SpaceLabels]) -> SpaceLabels:
    """The digest of several subtrees together."""
    parts = list(digests)
    keys = sorted({key for part in parts for key in part.keys})
    merged = {}
    for key in keys:
        held = [part.keys.get(key) for part in parts]
        lacking = any(item is None or item.lacking for item in held)
        known = [item.values for item in held if item is not None]
        values: set[str] = set()
        for item in known:
            values.update(item or ())
        anything = any(item is None for item in known) or len(values) > LABEL_VALUES_MAX
        merged[key] = KeyValues(None if anything else tuple(sorted(values)), lacking)
    return SpaceLabels(merged)


def fit_digests(digests: Mapping[str, SpaceLabels]) -> dict[str, SpaceLabels]:
    """The digests of a subtree's spaces within LABEL_DIGEST_MAX_BYTES, if any values fill it.

    The keys with most values become any, first those that need most room among equals.
    """
    over = sum(map(len, map(encode, digests.values()))) - LABEL_DIGEST_MAX_BYTES
    if over <= 0:
        return dict(digests)
    spaces = {space: dict(labels.keys) for space, labels in digests.items()}
    ranked = sorted(
        ((len(held.values or ()), len(encode(held)), space, key), held)
        for space, keys in spaces.items()
        for key, held in keys.items()
        if held.values
    )
    while over > 0 and ranked:
        (_, size, space, key), held = ranked.pop()
        spaces[space][key] = KeyValues(None, held.lacking)
        over -= size - len(encode(spaces[space][key]))
    return {space: SpaceLabels(keys) for space, keys in spaces.items()}


def _pairs(selector: LabelSelector) -> tuple[tuple[str, str] | None, ...]:
    return selector.equality_pairs or (None,)


def _digest_may_meet(keys: Mapping[str, KeyValues], requirement: Requirement) -> bool:
    held = keys.get(requirement.key)
    absent = held is None or held.lacking
    match requirement.operator:
        case "In":
            if held is None:
                return False
            return held.values is None or any(v in held.values for v in requirement.values)
        case "NotIn":
            if absent or held is None or held.values is None:
                return True
            return any(value not in requirement.values for value in held.values)
        case "Exists":
            return held is not None
        case _:
            return absent
