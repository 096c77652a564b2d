"""The verb `metrics`: figures of the centre and of the nodes beside it, as Prometheus has them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from leafcast.ask.api import verb
from leafcast.metrics.reading import MetricReading


@dataclass(frozen=True, slots=True)
class FigureVerbs:
    """Answers with what /metrics says, whether there is a port for that or not."""

    _readings: Callable[[], Awaitable[Sequence[MetricReading]]]

    @verb("metrics")
    async def metrics(self) -> dict[str, str]:
        """`{text}`: the figures in the text format."""
        # Here, as most centres are never asked.
        from leafcast.metrics.exposition import exposed  # noqa: PLC0415

        _, said = exposed(await self._readings(), "")
        return {"text": said.decode()}
