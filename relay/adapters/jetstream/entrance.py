"""Requests of nodes that ask to be let in: taken at any relay, passed up hop by hop, answered.

A node that joins reaches only its parent, so each relay takes requests, and asks its own parent
with them; the centre decides. A relay reads nothing of them but their form. How many it takes is
bounded by the server itself: the subscription ends after so many, and begins again some seconds
after the first, so whatever else is sent there costs this program nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from relay.adapters.jetstream.connection import Connection
from relay.ports import BusBroken, Clock
from schemas.enrolment.enrolment import (
    NO_WAY_UP,
    REQUEST_MAX_BYTES,
    UNREADABLE,
    plain_answer,
    read_answer,
    read_request,
)
from schemas.values.identity import NodePath
from schemas.values.refusals import WireRefused

HERE, BELOW = "lc._enrol", "_enrol"
REQUESTS_AT_ONCE, WINDOW_SECONDS = 500, 5.0
"""So many in so long of those who ask here, and as many of those below."""
UP_SECONDS = 10.0

Decide = Callable[[bytes], Awaitable[bytes]]
"""From a request that is well formed to its answer; at the centre only. Never raises."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EntranceKeys:
    """What opens the accounts of a node's server that requests come from and go up by."""

    relay: str = field(repr=False)
    uplink: str | None = field(default=None, repr=False)


class Entrance:
    """Takes the requests at one relay; at the centre `decide` answers them, else the parent."""

    def __init__(
        self, path: NodePath, url: str, keys: EntranceKeys, clock: Clock, decide: Decide | None
    ) -> None:
        self._path = path
        self._url = url
        self._keys = keys
        self._clock = clock
        self._decide = decide

    async def run(self) -> None:
        """Take requests until cancelled; raises BusBroken where the server is there no more."""
        async with AsyncExitStack() as stack:
            relay = await stack.enter_async_context(self._client(self._keys.relay))
            decide = self._decide
            if decide is None and self._keys.uplink is not None:
                uplink = await stack.enter_async_context(self._client(self._keys.uplink))
                decide = self._ask_upward(uplink)
            if decide is None:
                return
            async with asyncio.TaskGroup() as group:
                for subject in (HERE, f"{self._path.prefix}.*.{BELOW}"):
                    group.create_task(self._take(relay, subject, decide), name=subject)

    @asynccontextmanager
    async def _client(self, seed: str) -> AsyncIterator[Client]:
        """Raises BusBroken if the server does not let us in."""
        connection = Connection(self._url, seed, f"leafcast {self._path} entrance", "_INBOX")
        await connection.open()
        try:
            yield connection.client
        finally:
            await connection.close()

    def _ask_upward(self, uplink: Client) -> Decide:
        subject = f"{self._path.prefix}.{BELOW}"

        async def ask_parent(request: bytes) -> bytes:
            try:
                said = (await uplink.request(subject, request, timeout=UP_SECONDS)).data
                read_answer(said)
            except (NatsError, WireRefused, OSError, TimeoutError) as error:
                logger.debug("%s: nobody above answers: %s", self._path, error)
                return plain_answer(NO_WAY_UP)
            return said

        return ask_parent

    async def _take(self, client: Client, subject: str, decide: Decide) -> None:
        async with asyncio.TaskGroup() as group:
            while True:
                over = 0.0
                try:
                    subscription = await client.subscribe(subject)
                    await subscription.unsubscribe(limit=REQUESTS_AT_ONCE)
                    for _ in range(REQUESTS_AT_ONCE):
                        message = await subscription.next_msg(timeout=None)
                        over = over or self._clock.now().seconds + WINDOW_SECONDS
                        group.create_task(self._answer(message, decide))
                except NatsError as error:
                    # It was closed, as another server stands where this one was: see Connection.
                    raise BusBroken(f"{self._path} takes no requests: {error}") from error
                await self._clock.sleep(max(0.0, over - self._clock.now().seconds))

    async def _answer(self, message: Msg, decide: Decide) -> None:
        if not message.reply:
            return
        answer = await decide(message.data) if _well_formed(message.data) else None
        try:
            await message.respond(answer or plain_answer(UNREADABLE))
        except (NatsError, OSError) as error:
            logger.debug("%s: an answer is lost: %s", self._path, error)


def _well_formed(data: bytes) -> bool:
    if len(data) > REQUEST_MAX_BYTES:
        return False
    try:
        read_request(data)
    except WireRefused:
        return False
    return True
