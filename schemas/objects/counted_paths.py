"""JSONPaths of the library that count what they look at, and stop when that is too much.

Nothing else bounds them: what overlaps in brackets, one after another, leads to a few places very
many times, and a filter may test much that it does not let through.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from jsonpath import JSONPath, JSONPathMatch
from jsonpath.filter import BaseExpression, FilterQuery
from jsonpath.selectors import Filter

from schemas.objects.json_paths import StepBudget

_COUNTER = "counter"
_LOOKS_A_STEP = 4


class CountedPath(JSONPath):
    """A path each of whose steps is counted, also in its filters."""

    __slots__ = ()

    def __init__(self, path: JSONPath) -> None:
        super().__init__(env=path.env, segments=path.segments)
        for segment in self.segments:
            for selector in segment.selectors:
                expression: Any = selector.expression if isinstance(selector, Filter) else None
                if isinstance(selector, Filter) and not isinstance(expression, _Tested):
                    selector.expression = _Tested(expression)  # type: ignore[assignment]

    def within(self, obj: Mapping[str, Any], steps: StepBudget) -> Iterable[JSONPathMatch]:
        """What it finds in so many steps at most; raises TooManySteps."""
        return self.finditer(obj, filter_context={_COUNTER: steps})

    def finditer(
        self, data: Any, *, filter_context: Mapping[str, Any] | None = None
    ) -> Iterable[JSONPathMatch]:
        """As the library's; the context has the counter."""
        # At each of what is found all names in a bracket are looked for.
        widest = max((len(segment.selectors) for segment in self.segments), default=1)
        found: Iterable[JSONPathMatch] = [_Found(filter_context or {}, data, (), data, widest)]
        for segment in self.segments:
            found = segment.resolve(found)
        return found


class _Found(JSONPathMatch):
    """What was found; it says no path, and keeps no children: both would grow without a bound."""

    __slots__ = ("_cost",)

    def __init__(
        self,
        context: Mapping[str, Any],
        obj: Any,
        parts: tuple[int | str, ...],
        root: Any,
        cost: int,
    ) -> None:
        # Who descends looks at each child, which takes less than to find it.
        size = len(obj) // _LOOKS_A_STEP if isinstance(obj, dict | list | tuple) else 0
        context[_COUNTER].take(cost + size)
        super().__init__(
            filter_context=context, obj=obj, parent=None, path="", parts=parts, root=root
        )
        self._cost = cost

    def new_child(self, obj: object, key: int | str) -> JSONPathMatch:
        return _Found(self._filter_context, obj, (*self.parts, key), self.root, self._cost)

    def add_child(self, *children: JSONPathMatch) -> None:
        pass


class _Tested(BaseExpression):
    """A filter's expression: each of its terms is a step, whenever it is tested."""

    __slots__ = ("_inner", "_terms")

    def __init__(self, inner: BaseExpression) -> None:
        self._inner, self._terms = inner, 0
        waiting = [inner]
        while waiting:
            expression = waiting.pop()
            self._terms += 1
            if isinstance(expression, FilterQuery):
                expression.path = CountedPath(expression.path)
            else:
                waiting.extend(expression.children())
        super().__init__()

    def evaluate(self, context: Any) -> object:
        context.extra_context[_COUNTER].take(self._terms)
        return self._inner.evaluate(context)

    async def evaluate_async(self, context: Any) -> object:
        return self.evaluate(context)

    def children(self) -> list[BaseExpression]:
        return [self._inner]

    def set_children(self, children: list[BaseExpression]) -> None:
        (self._inner,) = children
