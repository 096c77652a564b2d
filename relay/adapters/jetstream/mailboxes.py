"""The children's consumers on MAIL: one for each, made anew where the server that had it ended.

They are kept in memory, at one server each, also where MAIL itself is at three.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Set

from relay.adapters.jetstream.connection import Connection, JetStreamRefused
from relay.adapters.jetstream.streams import (
    give_up_mail_consumers,
    mail_consumers,
    make_mail_consumer,
)
from relay.ports import BusBroken, Clock
from schemas.values.identity import NodePath

CONSUMER_ATTEMPTS, CONSUMERS_AT_ONCE = 4, 256
"""Of thousands asked for at once the last ones would not be answered in time."""
DELETE_SECONDS, DELETE_SECONDS_MAX = 0.25, 30.0
AUDIT_SECONDS = 30.0
"""So often it is looked whether each child has one, where a server may end unseen."""

logger = logging.getLogger(__name__)


async def _alone() -> None:
    """A node of one machine asks nobody whether it may."""


class Mailboxes:
    """Keeps a consumer for each child; `replicas` is at how many servers MAIL is.

    `confirm` raises BusBroken where another member of the node may be the active one: no fence
    holds back what is done to consumers.
    """

    def __init__(
        self,
        connection: Connection,
        clock: Clock,
        path: NodePath,
        replicas: int = 1,
        confirm: Callable[[], Awaitable[None]] = _alone,
    ) -> None:
        self._confirm = confirm
        self._connection = connection
        self._clock = clock
        self._path = path
        self._replicas = replicas
        self._making = asyncio.Semaphore(CONSUMERS_AT_ONCE)
        # At which server each child's is; "" where there is but one, or it is not made yet.
        self._places: dict[str, str] = {}
        # Whose consumers went with a server, and whose may have.
        self._lost: set[str] = set()
        self._unsure: set[str] = set()
        self._wanted = asyncio.Event()

    async def begin(self) -> None:
        """Delete those of a former run, which may be at a server that is gone; raises BusBroken.

        Where there is one server they go on.
        """
        if self._replicas > 1:
            await self._delete(await mail_consumers(self._connection))

    async def add(self, child: str) -> None:
        """Make the child's consumer; one that is there goes on where it is. Raises BusBroken."""
        self._places[child] = ""
        await self._make(child)

    def forget(self, child: str) -> None:
        """Make it no more."""
        self._places.pop(child, None)

    def servers_ended(self, servers: frozenset[str]) -> None:
        """What these servers had is gone, and no question about it is answered."""
        self._lost |= {child for child, at in self._places.items() if at in servers}
        if self._lost:
            self._wanted.set()

    def connection_back(self) -> None:
        """The node's own server may have been started anew: then it has none of them."""
        self._unsure |= self._places.keys()
        self._wanted.set()

    async def keep(self) -> None:
        """Make what was lost anew, without end; raises BusBroken if the server does not."""
        self._connection.when_back.append(self.connection_back)
        while True:
            await self._until_wanted()
            self._wanted.clear()
            lost, unsure = self._lost, self._unsure
            self._lost, self._unsure = set(), set()
            await self._delete(lost & self._places.keys())
            async with asyncio.TaskGroup() as group:
                for child in lost | unsure:
                    group.create_task(self._make(child))

    async def _until_wanted(self) -> None:
        """Wait until some are to be made; where there are several servers, look now and then."""
        while not self._wanted.is_set():
            try:
                async with asyncio.timeout(AUDIT_SECONDS if self._replicas > 1 else None):
                    await self._wanted.wait()
            except TimeoutError:
                expected = set(self._places)
                self._unsure |= expected - await mail_consumers(self._connection)
                if self._unsure:
                    self._wanted.set()

    async def _delete(self, lost: Set[str]) -> None:
        """Have them deleted; what is created before that took effect would be deleted, too."""
        until = self._clock.now().seconds + DELETE_SECONDS_MAX
        while lost:
            await self._confirm()
            broken: BusBroken | None = None
            try:
                await give_up_mail_consumers(self._connection, lost)
                await self._clock.sleep(DELETE_SECONDS)
                lost = lost & await mail_consumers(self._connection)
            except BusBroken as error:
                # Who leads JetStream may just have ended, too.
                broken = error
            if lost and self._clock.now().seconds > until:
                raise BusBroken(f"mailboxes of a server that ended are not given up: {broken}")

    async def _make(self, child: str) -> None:
        attempts = CONSUMER_ATTEMPTS
        async with self._making:
            while child in self._places:
                await self._confirm()
                try:
                    place = await make_mail_consumer(
                        self._connection, self._path, child, self._replicas
                    )
                except JetStreamRefused:
                    raise
                except BusBroken as error:
                    # A request can be lost while the server reloads for another child.
                    logger.debug("the mailbox of %s is made again: %s", child, error)
                    attempts -= 1
                    if not attempts:
                        raise
                else:
                    if child in self._places:
                        self._places[child] = place
                    return
