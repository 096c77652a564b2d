"""Whether an API server answers: it is asked where nothing was heard of it for a while.

A server that stands still leaves its watches open, and nothing else tells it from a quiet one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from relay.objects.stored_object import timestamp
from relay.ports import Clock
from relay.space_errors import UNAVAILABLE, SpaceError
from relay.space_port import ServerUnanswered, Tell

QUIET_SECONDS, ANSWER_SECONDS_MAX = 20.0, 20.0
WAITED_SECONDS = 2.0
RETRY_SECONDS = 2.0


class Silence:
    """`heard_at` says when the server was heard of last, in monotonic seconds; None: not at all."""

    def __init__(
        self,
        clock: Clock,
        ask: Callable[[], Awaitable[object]],
        heard_at: Callable[[], float | None],
        tell: Tell,
    ) -> None:
        self._clock = clock
        self._ask = ask
        self._heard_at = heard_at
        self._tell = tell

    async def run(self) -> None:
        """Tell until cancelled when nobody answers any more, and when somebody does again."""
        while True:
            await self._clock.sleep(self._pause())
            if self._pause() > 0:
                continue
            asked_ms = self._clock.now().wall_ms
            if await self._answers():
                await self._clock.sleep(QUIET_SECONDS)
                continue
            why = f"Timeout: its API server gives no answer; since {timestamp(asked_ms)}"
            await self._tell(ServerUnanswered(why))
            while not await self._answers():
                await self._clock.sleep(RETRY_SECONDS)
            await self._tell(ServerUnanswered(""))

    def _pause(self) -> float:
        """How long not to ask: something was heard lately, or nothing is followed."""
        heard_at = self._heard_at()
        if heard_at is None:
            return QUIET_SECONDS
        return max(heard_at + QUIET_SECONDS - self._clock.now().seconds, 0.0)

    async def _answers(self) -> bool:
        """Whether there is any answer; that it is not there at all its watches tell."""
        asked = self._clock.now().seconds
        try:
            async with asyncio.timeout(ANSWER_SECONDS_MAX):
                await self._ask()
        except TimeoutError:
            return False
        except SpaceError as error:
            # Who takes no connection lets one wait; who is not there refuses it.
            waited = self._clock.now().seconds - asked >= WAITED_SECONDS
            return error.reason != UNAVAILABLE or not waited
        return True
