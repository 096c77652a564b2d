"""Which servers of a cluster run, by asking them all: each has another id after each start.

A client is not told when another member's server goes, and what that server kept in its memory
alone goes with it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress

from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from relay.adapters.jetstream.connection import Connection, JetStreamRefused, checked
from relay.ports import BusBroken, Clock

LOOK_SECONDS = 1.0
SILENT_LOOKS = 3
"""A server that answers none of so many questions in a row is gone."""
_ALL_SERVERS = "$SYS.REQ.SERVER.PING.JSZ"

logger = logging.getLogger(__name__)


class ServersSeen:
    """The servers of a cluster by name, as they answered; pure."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}
        self._silent: dict[str, int] = {}

    @property
    def names(self) -> frozenset[str]:
        """The servers that run."""
        return frozenset(self._ids)

    def look(self, answers: Mapping[str, str]) -> frozenset[str]:
        """The names of those that ended since: they are gone, or were started anew.

        `answers` are the ids of who answered one question, by name. Where nobody answers it is the
        way there that is lost, and nothing is known.
        """
        if not answers:
            return frozenset()
        ended = {name for name, its in answers.items() if self._ids.get(name, its) != its}
        for name in self._ids.keys() - answers.keys():
            self._silent[name] = self._silent.get(name, 0) + 1
            if self._silent[name] >= SILENT_LOOKS:
                ended.add(name)
        for name in ended - answers.keys():
            del self._ids[name], self._silent[name]
        for name in answers:
            self._silent.pop(name, None)
        self._ids.update(answers)
        return frozenset(ended)


class ServerWatch:
    """Asks a cluster's servers as its system account, and tells of those that ended.

    Of a server that ended before `start`, or did not answer `ask` before `run`, nothing is told.
    """

    def __init__(self, system: Connection, clock: Clock, servers: int) -> None:
        self._system = system
        self._clock = clock
        self._servers = servers
        self._inbox = ""
        self._all_answered = asyncio.Event()
        self._answers: dict[str, str] = {}
        self._seen = ServersSeen()
        self.when_ended: list[Callable[[frozenset[str]], None]] = []

    async def start(self) -> None:
        """Learn which servers run; raises BusBroken."""
        await self.ask()
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_SECONDS):
                await self._all_answered.wait()
        self._seen.look(self._answers)

    async def ask(self) -> None:
        """Ask which servers run, and wait for no answer: one may be gone; raises BusBroken."""
        client = self._system.client
        self._inbox = client.new_inbox()
        try:
            await client.subscribe(self._inbox, cb=self._answered)
            await client.publish(_ALL_SERVERS, b"", reply=self._inbox)
        except (NatsError, OSError) as error:
            raise BusBroken(f"the servers of this node cannot be asked: {error}") from error

    @property
    def running(self) -> frozenset[str]:
        """The names of the servers that run, by what was heard in the last seconds."""
        return self._seen.names

    async def run(self) -> None:
        """Look without end; it was asked before."""
        self._seen.look(self._answers)
        while True:
            self._answers = {}
            try:
                await self._system.client.publish(_ALL_SERVERS, b"", reply=self._inbox)
            except (NatsError, OSError) as error:
                logger.debug("the servers cannot be asked: %s", error)
            await self._clock.sleep(LOOK_SECONDS)
            ended = self._seen.look(self._answers)
            if ended:
                logger.info("servers that ended: %s", ", ".join(sorted(ended)))
                for call in self.when_ended:
                    call(ended)

    async def _answered(self, message: Msg) -> None:
        try:
            said = checked(_ALL_SERVERS, message)
        except JetStreamRefused as error:
            logger.debug("a server says what it is in no form that is known: %s", error)
            return
        server, store = said.get("server"), said.get("data")
        if not isinstance(server, dict) or not isinstance(store, dict) or store.get("disabled"):
            # What it kept is reached no more than that of one which ended: its disk may be full.
            return
        self._answers[str(server.get("name", ""))] = str(server.get("id", ""))
        if len(self._answers) >= self._servers:
            self._all_answered.set()
