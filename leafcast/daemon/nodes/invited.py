"""Bundles that nobody joined with yet: until when somebody may, and who did meanwhile.

A bundle's key is good until a time that the node's record says, and its parent looks at that. Of a
node that came in time the record is issued again without it, so that a parent that loses its disk
lets it in, too.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping

from controllers.nodes import awaited_nodes, enrol_nodes, node_record
from leafcast.ask.api import ApiError
from leafcast.ask.client import CentreAsks
from leafcast.ask.remote import IN_SESSION
from leafcast.daemon.nodes.enrolment import States, Tree
from leafcast.doctor.findings import Expiry
from relay.asker import AskFailed
from relay.ports import BusBroken, Clock
from schemas.asks import NODE
from schemas.identity import NodePath
from schemas.records import NodeRecord

LOOK_SECONDS = 60.0
ASKED_AT_ONCE = 32

log = logging.getLogger("leafcast")


class InvitedNodes:
    """The nodes whose records say until when they may come."""

    def __init__(self, tree: Tree, asks: CentreAsks, states: States, clock: Clock) -> None:
        self._tree = tree
        self._asks = asks
        self._states = states
        self._clock = clock

    async def run(self) -> None:
        """Look now and then, without end."""
        while True:
            await self._clock.sleep(LOOK_SECONDS)
            try:
                await self.welcome()
            except (ApiError, BusBroken) as error:
                log.warning("who joined is looked at later: %s", error)

    async def welcome(self) -> list[NodePath]:
        """Let those come for ever that came; who they are. Raises ApiError or BusBroken.

        One that is up by its parent's word may still be there by a former key: its signature shows
        that it has the one of its record.
        """
        awaited, came = awaited_nodes(self._tree.issuer()), list[NodeRecord]()
        if not awaited:
            return []
        limit = asyncio.Semaphore(ASKED_AT_ONCE)
        states = {form["path"]: form["state"] for form in (await self._states.tree())["nodes"]}

        async def ask(record: NodeRecord) -> None:
            async with limit:
                try:
                    await self._asks.ask_signed(record.path, NODE, {})
                    came.append(record)
                except AskFailed as failed:
                    log.debug("%s does not say that it came: %s", record.path, failed)

        async with asyncio.TaskGroup() as group:
            for record in awaited:
                if states.get(str(record.path)) in IN_SESSION:
                    group.create_task(ask(record))
        issuer = self._tree.issuer()
        # It may have got another key meanwhile.
        same = [it for it in came if node_record(issuer, it.path) == it]
        await enrol_nodes(issuer, {it.path: it.nkey for it in same})
        return sorted(it.path for it in same)

    def expiries(self, states: Mapping[str, str]) -> Iterator[Expiry]:
        """The bundles that nobody is known to have come with, by the state of each node."""
        for record in awaited_nodes(self._tree.issuer()):
            path = str(record.path)
            if states.get(path) not in IN_SESSION:
                yield Expiry(
                    f"the bundle for {path}",
                    record.generation,
                    record.until_ms,
                    "nobody joined with it yet, and nobody can afterwards",
                    f"join with it in time, or make another: leafcast node add {path} --replace "
                    f"--bundle; if it is not wanted: leafcast node remove {path} --force",
                    needed=False,
                    about=path,
                )
