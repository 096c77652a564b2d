"""observedGeneration at the hub: which of the hub's generations the edges have in force.

A generation is a number of one API server. An edge counts the changes of its copy, and the hub
those of its own object. So a number that an edge returns says nothing at the hub; whether the copy
holds the hub's present content, and its controllers looked at that, does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from controllers.core.conditions import by_type
from controllers.core.status.aggregated import aggregated
from relay.core.collectors.aggregates import Aggregate, AggregateAlgebra
from relay.objects.returned_generations import CONTENT, COPIES, FIELD, OBSERVED, OBSERVED_BY, WHOLE
from relay.objects.shortfalls import SHORT, with_shortfalls
from schemas.objects.objects import ObjectKey
from schemas.reports.reports import Count, ObjectResult
from schemas.values.merging import CONDITIONS, FIELDS

_REFERENCE = frozenset({"kind", "name"})


@dataclass(frozen=True, slots=True)
class HubContent:
    """What the hub has of an object now: its generation, and how edges name its content.

    No edge has the content of an object that cannot be sent as it is.
    """

    # 0 if the object has none.
    generation: int
    ids: frozenset[bytes] = frozenset()

    def observed(self, *, in_force: bool) -> int:
        """The generation to be said at the hub."""
        return self.generation if in_force else max(self.generation - 1, 0)


def of_one_copy(status: Mapping[str, Any], copy: ObjectResult, hub: HubContent) -> dict[str, Any]:
    """The status of the only copy as the hub's object says it."""
    holds = copy.content in hub.ids
    if not hub.generation:
        return dict(status)
    return observed_at(
        status, lambda seen: hub.observed(in_force=holds and seen >= copy.generation)
    )


def observed_at(status: Mapping[str, Any], at_hub: Callable[[int], int]) -> dict[str, Any]:
    """The status with each observedGeneration put as the hub counts, in conditions, too.

    One of another object, which the status names, stays.
    """
    return {name: _observed_in(name, value, at_hub) for name, value in status.items()}


def _observed_in(name: str, value: Any, at_hub: Callable[[int], int]) -> Any:
    match value:
        case bool():
            return value
        case int() if name == OBSERVED:
            return at_hub(value)
        case str() if name == OBSERVED and value.isascii() and value.isdecimal():
            # As kinds say it whose numbers are written as Protocol Buffers have it.
            return str(at_hub(int(value)))
        case Mapping():
            return value if value.keys() >= _REFERENCE else observed_at(value, at_hub)
        case list() | tuple():
            return [_observed_in("", item, at_hub) for item in value]
        case _:
            return value


def of_all_copies(
    key: ObjectKey,
    rows: Iterable[Aggregate],
    hub: HubContent,
    expected: int | None,
    before: object,
) -> dict[str, Any]:
    """The merge of what all copies say, as the hub's object says it.

    Its present generation is observed once so many copies as are `expected` hold its content, and
    their controllers looked at that. While nobody knows how many those are, what the object said
    `before` is not taken back.
    """
    whole = AggregateAlgebra().merge(list(rows))
    counts = _Copies(whole)
    said = with_shortfalls(key, aggregated(key, [whole]), counts.short)
    if not hub.generation:
        return said
    holds = expected is not None and counts.hold(hub.ids) and whole.count >= expected
    former = _observed_before(before) if expected is None else {}

    def observed(what: str) -> int:
        good = holds and counts.have_observed(what)
        return hub.observed(in_force=good or former.get(what) == hub.generation)

    told = observed_at(said, lambda _seen: observed(WHOLE))
    if isinstance(listed := told.get("conditions"), list):
        told["conditions"] = [
            {**item, OBSERVED: observed(str(item["type"]))} if counts.observe(item) else item
            for item in listed
        ]
    return told


class _Copies:
    """How many copies hold what, as edges counted it; who says nonsense says nothing."""

    def __init__(self, whole: Aggregate) -> None:
        self._count = whole.count
        self._said = _fields(_fields(whole.merged).get(FIELD))
        self.short = _fields(self._said.get(SHORT))

    def observe(self, item: Any) -> bool:
        """Whether some say of such a condition which generation it is of."""
        type_ = item.get("type") if isinstance(item, Mapping) else None
        known = _counts(self._said.get(OBSERVED_BY))
        return isinstance(type_, str) and type_ != WHOLE and type_ in known

    def hold(self, ids: frozenset[bytes]) -> bool:
        """Whether all of them hold one of these contents."""
        match self._said.get(CONTENT):
            case (_, str(content)):
                return content in {each.hex() for each in ids} and self._all(COPIES, WHOLE)
            case _:
                return False

    def have_observed(self, what: str) -> bool:
        """Whether all of them looked at what they hold, by their status or a condition's type."""
        if what == WHOLE:
            return self._all(OBSERVED_BY, WHOLE)
        false, true, others, _ = _counts(self._said.get(OBSERVED_BY)).get(what, (1, 0, 0, ()))
        return bool(true) and not (false or others)

    def _all(self, name: str, what: str) -> bool:
        item = _counts(self._said.get(name)).get(what)
        return item is not None and item[1] == self._count


def _fields(node: Any) -> Mapping[str, Any]:
    return node[1] if isinstance(node, tuple) and node[0] == FIELDS else {}


def _counts(node: Any) -> Mapping[str, Any]:
    return node[1] if isinstance(node, tuple) and node[0] == CONDITIONS else {}


def _observed_before(status: object) -> dict[str, Any]:
    """What a status said to be observed: as a whole, and by the type of each condition."""
    if not isinstance(status, Mapping):
        return {}
    listed = by_type(status.get("conditions")).items()
    return {**{type_: item.get(OBSERVED) for type_, item in listed}, WHOLE: status.get(OBSERVED)}


def copies_expected(known: int, counts: Sequence[Count | None]) -> int | None:
    """How many copies there have to be, by what is counted of each placement that asks.

    `known` are those that destinations tell of. None while nobody can tell: of several placements
    whose destinations may be the same ones, until all that is meant for anyone is there.
    """
    exact = [count for count in counts if count is not None and count.exact]
    if len(exact) < len(counts):
        return None
    joined = [count.summary.joined - count.summary.states.get("leaving", 0) for count in exact]
    settled = all(not each.summary.states.get("pending") for each in exact)
    if len(exact) > 1 and not settled:
        return None
    return max([*joined, known if len(exact) > 1 else 0])
