"""The expressions of a collector, compiled; what is wrong with them, by field."""

from __future__ import annotations

from relay.objects.expressions.bounds import TooCostly, check_all, check_texts
from relay.objects.expressions.cel import CompiledExpression, ExpressionRefused
from schemas.reports.collectors import Program
from schemas.values.faults import Fault

FILTER = ""
"""The column of what goes wrong in a filter."""


class Expressions:
    """All expressions of a program; `faults` are those that cannot be evaluated."""

    def __init__(self, program: Program) -> None:
        self.faults: list[tuple[str, Fault]] = []
        self._over_raised = program.source is not None
        self.filter = self._compiled(FILTER, "spec.filter", program.filter)
        self.groups = [
            self._compiled(item.name, f"spec.groupBy[{at}].def", item.definition)
            for at, item in enumerate(program.group_by)
        ]
        self.subjects = [
            self._compiled(item.name, f"spec.combinedFields[{at}].subject", item.subject)
            for at, item in enumerate(program.combined)
        ]
        self.selected = [
            self._compiled(item.name, f"spec.select[{at}].def", item.definition)
            for at, item in enumerate(program.select)
        ]
        try:
            check_texts([each.shape for each in self.all])
            check_all([each.shape for each in self.all], 0, 0)
        except TooCostly as error:
            self.faults.append((FILTER, Fault("spec", str(error), "collect less by one collector")))

    @property
    def listed(self) -> list[CompiledExpression | None]:
        """Each in its place: the filter, then what is collected."""
        return [self.filter, *self.groups, *self.subjects, *self.selected]

    @property
    def all(self) -> list[CompiledExpression]:
        return [each for each in self.listed if each is not None]

    def _compiled(self, column: str, field: str, text: str) -> CompiledExpression | None:
        if not text:
            return None
        try:
            compiled = CompiledExpression(text)
        except ExpressionRefused as error:
            self.faults.append((column, Fault(field, str(error), "correct the expression")))
            return None
        if self._over_raised and "obj" in compiled.variables:
            message = "nothing was sent of what comes up, so there is no obj"
            self.faults.append(
                (column, Fault(field, message, "write returned: that is the object"))
            )
            return None
        return compiled


def program_faults(program: Program) -> list[Fault]:
    """What is wrong with a program's expressions, by field of the StatusCollector."""
    return [fault for _, fault in Expressions(program).faults]
