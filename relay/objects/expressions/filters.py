"""CEL expressions that say which of many things are wanted."""

from __future__ import annotations

from collections.abc import Mapping

from relay.objects.expressions.bounds import TooCostly, extent_of, weight_of
from relay.objects.expressions.cel import (
    VARIABLES,
    CompiledExpression,
    EvaluationFailed,
    ExpressionValues,
)
from schemas.values import codec
from schemas.values.refusals import CodecError

OBJECT = {"returned": VARIABLES["obj"]}
"""The variables of a filter of objects: the object."""
DESTINATION: Mapping[str, object] = {
    **dict.fromkeys(("path", "state", "health", "wave"), ""),
    "complete": True,
    **dict.fromkeys(("object", "reason"), ""),
}
"""The variables of a filter of what became of a placement at destinations."""


class Filter:
    """A thing of which the expression says neither true nor false is not wanted."""

    def __init__(self, text: str, variables: Mapping[str, object]) -> None:
        """Raise ExpressionRefused for an expression that is wrong or too costly."""
        self._expression = CompiledExpression(text, variables)
        self._values = ExpressionValues()

    def matches(self, values: Mapping[str, object]) -> bool:
        """Whether it is true of these values, one for each variable that it may name."""
        shape = self._expression.shape
        self._values.begin()
        try:
            largest, count = extent_of(values.values())
            shape.check(largest, weight_of(len(codec.pack(dict(values))), count))
            for name in self._expression.variables:
                self._values.put(name, values[name])
            return self._expression.value(self._values) is True
        except (CodecError, EvaluationFailed, TooCostly):
            return False
