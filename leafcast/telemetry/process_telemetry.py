"""The one way of a process to its collector, which all of its nodes share."""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from leafcast.telemetry.settings import TelemetryRefused, TelemetrySettings, telemetry_settings
from relay.core.effects import Noted
from relay.ports import Clock
from relay.shell.driver import Driver

if TYPE_CHECKING:
    from leafcast.telemetry.node_spans import NodeSpans
    from leafcast.telemetry.otlp import OtlpSpans

LIBRARY = "opentelemetry.exporter.otlp.proto.http"
AWAY, BACK, REFUSED = "CollectorAway", "CollectorBack", "TracesNotSent"
"""What is told of it: the reasons of events."""
_DROPPED = "see that it runs and takes OTLP over HTTP; what waits for too long is dropped"

HearNoted = Callable[[Noted], None]
log = logging.getLogger("leafcast")


class Telemetry:
    """Sends spans; one node of the process tells for all of them what is wrong with that."""

    def __init__(self, settings: TelemetrySettings | None, trouble: Noted | None = None) -> None:
        """Without settings it sends nothing, for the reason that is noted."""
        self.spans: OtlpSpans | None = None
        self._place = settings.place if settings is not None else ""
        self._trouble = trouble
        self._loop: asyncio.AbstractEventLoop | None = None
        self._hearing: list[HearNoted] = []
        if settings is not None:
            # Here, as who sends no spans needs no library.
            from leafcast.telemetry.otlp import OtlpSpans  # noqa: PLC0415

            try:
                self.spans = OtlpSpans(settings, self._heard)
            except ValueError as error:
                remedy = "correct it, or leave it out"
                self._trouble = Noted(REFUSED, "OTEL_*", f"{error}; {remedy}")

    @contextmanager
    def telling(self, hear: HearNoted) -> Iterator[None]:
        """Meanwhile tell this node what happens, unless another one is told: once is enough."""
        self._loop = asyncio.get_running_loop()
        self._hearing.append(hear)
        try:
            if self._trouble is not None and len(self._hearing) == 1:
                self._note(self._trouble)
            yield
        finally:
            self._hearing.remove(hear)

    def of_node(self, driver: Driver, role: str, clock: Clock) -> NodeSpans | None:
        """What sends the spans of a node's run that begins now; None if none can be sent."""
        if self.spans is None:
            return None
        from leafcast.telemetry.node_spans import NodeSpans  # noqa: PLC0415

        return NodeSpans(driver, role, clock, self.spans)

    def close(self) -> None:
        """Send what waits, if that is soon."""
        if self.spans is not None:
            self.spans.close()

    def _heard(self, why: str) -> None:
        noted = Noted(BACK, self._place, "the collector takes spans again")
        if why:
            noted = Noted(AWAY, self._place, f"the collector takes no spans ({why}); {_DROPPED}")
        if self._loop is None:
            return
        # A loop that ended has nobody who could be told.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._note, noted)

    def _note(self, noted: Noted) -> None:
        log.log(
            logging.INFO if noted.reason == BACK else logging.WARNING,
            "%s: %s: %s",
            noted.reason,
            noted.subject,
            noted.detail,
        )
        for hear in self._hearing[:1]:
            hear(noted)


def telemetry_of(environment: Mapping[str, str]) -> Telemetry | None:
    """What the environment asks for; None if nothing is to be sent.

    What cannot be is told as an event, as a tree that is not watched delivers all the same.
    """
    try:
        settings = telemetry_settings(environment)
    except TelemetryRefused as refused:
        return Telemetry(None, Noted(REFUSED, refused.name, str(refused)))
    if settings is None:
        return None
    if not _is_installed():
        missing = "opentelemetry is not installed: pip install 'leafcast[otel]'"
        return Telemetry(None, Noted(REFUSED, settings.place, missing))
    return Telemetry(settings)


@cache
def process_telemetry() -> Telemetry | None:
    """That of this process, by its own environment."""
    found = telemetry_of(os.environ)
    if found is not None:
        atexit.register(found.close)
    return found


def _is_installed() -> bool:
    try:
        return find_spec(LIBRARY) is not None
    except ModuleNotFoundError:
        return False
