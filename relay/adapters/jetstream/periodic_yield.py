"""Messages that wait are dealt with in one go, by the library: this lets others have their turn."""

from __future__ import annotations

import asyncio

TURN_MESSAGES = 32


class PeriodicYield:
    """To be awaited for each message."""

    def __init__(self) -> None:
        self._count = 0

    async def next(self) -> None:
        self._count += 1
        if not self._count % TURN_MESSAGES:
            await asyncio.sleep(0)  # noqa: TID251 - no decision hangs on it
