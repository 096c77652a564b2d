"""What a node says to its parent: the hello, then the newest of each slot, progress last."""

from __future__ import annotations

import asyncio

from relay.ports import Bus
from schemas.values.subjects import PROGRESS_KEY


class Outbox:
    """Sends one round after the other; what is said meanwhile goes together in the next."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._reports: dict[str, bytes] = {}
        self._hello: bytes | None = None
        self._waiting = asyncio.Event()

    def report(self, key: str, data: bytes) -> None:
        # Again at the end: a later one speaks of those before it.
        self._reports.pop(key, None)
        self._reports[key] = data
        self._waiting.set()

    def hello(self, data: bytes) -> None:
        self._hello = data
        self._waiting.set()

    async def send(self) -> bool:
        """Wait until there is something to say, and say it; False if the link did not take it."""
        await self._waiting.wait()
        self._waiting.clear()
        reports, self._reports = self._reports, {}
        hello, self._hello = self._hello, None
        # It speaks of all reports before it.
        progress = reports.pop(PROGRESS_KEY, None)
        if progress is not None:
            reports[PROGRESS_KEY] = progress
        # The progress in a hello speaks of no report that is newer than the hello.
        sent = hello is None or await self._bus.send_hello(hello)
        if reports:
            sent = await self._bus.send_report(reports) and sent
        return sent
