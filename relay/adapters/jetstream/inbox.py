"""Events on their way to a node, in order and bounded: whoever puts waits for the one who reads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from relay.core.events import Event, MailArrived
from relay.ports import BusBroken

INBOX_MAX = 256


class Inbox:
    """A queue with one reader, that can fail and can make mail under way count as never arrived."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[tuple[int, Event] | None] = asyncio.Queue(INBOX_MAX)
        self._reading = 0
        self._failure: BaseException | None = None

    async def put(self, event: Event) -> None:
        await self._queue.put((self._reading, event))

    @property
    def reading(self) -> int:
        """How often the mailbox was read anew."""
        return self._reading

    def forget_mail(self) -> None:
        """Drop the mail that is in the queue: the mailbox is read anew."""
        self._reading += 1

    def fail(self, error: BaseException) -> None:
        """Let the reader have what is in the queue, and then BusBroken."""
        self._failure = error
        if not self._queue.full():
            self._queue.put_nowait(None)

    async def events(self) -> AsyncIterator[Event]:
        while True:
            if self._failure is not None and self._queue.empty():
                raise BusBroken("the bus has ended: its reading failed") from self._failure
            entry = await self._queue.get()
            if entry is None:
                continue
            reading, event = entry
            if isinstance(event, MailArrived) and reading != self._reading:
                continue
            yield event
