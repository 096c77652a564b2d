"""The machine's own clock and dice: the only place that reads time or makes randomness."""

from __future__ import annotations

import asyncio
import os
import time

from relay.core.instant import Instant

_FRACTION_BITS = 53


class SystemClock:
    """Monotonic seconds for durations, wall milliseconds for what people and signatures see."""

    def now(self) -> Instant:
        return Instant(seconds=time.monotonic(), wall_ms=time.time_ns() // 1_000_000)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class SystemDice:
    """Randomness that no one can guess."""

    def entropy(self, count: int) -> bytes:
        return os.urandom(count)

    def fraction(self) -> float:
        """Uniform in [0, 1)."""
        return (int.from_bytes(os.urandom(7)) >> (56 - _FRACTION_BITS)) / (1 << _FRACTION_BITS)
