"""A CEL expression that says which of many objects are wanted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relay.objects.expressions.bounds import TooCostly, largest_in
from relay.objects.expressions.cel import (
    CompiledExpression,
    EvaluationFailed,
    ExpressionRefused,
    ExpressionValues,
)
from schemas import codec
from schemas.refusals import CodecError

_OBJECT = "returned"


class ObjectFilter:
    """The object is `returned`; one of which the expression says nothing is not wanted."""

    def __init__(self, text: str) -> None:
        """Raise ExpressionRefused for an expression that is wrong or too costly."""
        self._expression = CompiledExpression(text)
        self._values = ExpressionValues()
        if others := sorted(self._expression.variables - {_OBJECT}):
            raise ExpressionRefused(f'there is no "{others[0]}" here; there is {_OBJECT}')

    def takes(self, obj: Mapping[str, Any]) -> bool:
        """Whether the expression is true of an object; false if it fails or costs too much."""
        shape = self._expression.shape
        try:
            if shape.deep or shape.joins:
                shape.check(largest_in([obj]), len(codec.pack(obj)))
            self._values.put(_OBJECT, obj)
            return self._expression.value(self._values) is True
        except (CodecError, EvaluationFailed, TooCostly):
            return False
