"""Time and chance as a host's process has them."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING

from relay.core.instant import Instant

if TYPE_CHECKING:
    from tests.simulation.host import Host


class HostClock:
    """The clocks of a host."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def now(self) -> Instant:
        return self._host.instant()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class WorldDice:
    """Chance as the world has it."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def entropy(self, count: int) -> bytes:
        return self._random.randbytes(count)

    def fraction(self) -> float:
        return self._random.random()
