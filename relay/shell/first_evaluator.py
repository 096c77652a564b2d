"""What evaluates collectors is loaded for the first one: 0.3 MB, and most edges have none."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from relay.core.collectors.ports import Bound, Evaluator, Sent
from schemas.objects.objects import ObjectKey
from schemas.reports.collectors import Program


class FirstEvaluator:
    """The evaluator of a node, once there is something to evaluate."""

    def bind(self, program: Program, sent: Sent) -> Bound:
        """As it says."""
        return self._evaluator.bind(program, sent)

    def merging(
        self, key: ObjectKey, status: bytes | None, content: bytes = b"", generation: int = 0
    ) -> tuple[bytes, tuple[Any, ...]] | None:
        """As it says."""
        return self._evaluator.merging(key, status, content, generation)

    @cached_property
    def _evaluator(self) -> Evaluator:
        from relay.shell.evaluator import CelEvaluator  # noqa: PLC0415

        return CelEvaluator()
