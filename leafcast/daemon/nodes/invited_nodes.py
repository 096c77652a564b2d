"""Bundles that nobody joined with yet: until when somebody may, and who did meanwhile.

A bundle's key is good until a time that the node's record says, and its parent looks at that. Of a
node that came in time the record is issued again without it, so that a parent that loses its disk
lets it in, too.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping

from controllers.nodes import awaited_nodes, enrol_nodes, node_record
from leafcast.ask.api import ApiError
from leafcast.ask.client import CentreAsks
from leafcast.ask.remote import IN_SESSION, ask_all_signed
from leafcast.daemon.nodes.enrolment import States, Tree
from leafcast.doctor.findings import Expiry
from relay.ports import BusBroken, Clock
from schemas.records.asks import NODE
from schemas.values.identity import NodePath

LOOK_SECONDS = 60.0

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
        awaited = awaited_nodes(self._tree.issuer())
        if not awaited:
            return []
        states = {form["path"]: form["state"] for form in (await self._states.tree())["nodes"]}
        there = [it for it in awaited if states.get(str(it.path)) in IN_SESSION]
        failed = await ask_all_signed(self._asks, [it.path for it in there], NODE, {})
        for path, fault in failed.items():
            log.debug("%s does not say that it came: %s", path, fault.message)
        issuer = self._tree.issuer()
        # It may have got another key meanwhile.
        came = [it for it in there if it.path not in failed]
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
