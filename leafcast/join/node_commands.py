"""What a node below the centre answers at its own machine, also while its parent is away.

Who may use its data directory may ask it, as commands ask a centre: by its own nats-server.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from typing import Any

from leafcast.ask.api import Api, ApiError
from leafcast.ask.verbs import API_PREFIX, NODE_HERE
from leafcast.data_dir import DataDir
from leafcast.node.held_placements import placement_form, placement_keys, standing_form
from leafcast.node.link_history import IN_SESSION, LinkHistory, LinkState
from leafcast.node.runtime import NodeRuntime
from leafcast.show.placement_order import worst_first
from relay.adapters.asking import ANSWERS
from relay.adapters.installed import installed_version
from relay.adapters.jetstream.request_reply import serve
from relay.adapters.server.link_trouble import NOT_LET_IN, LinkNews
from relay.core.view import NodeView
from relay.ports import BusBroken, Clock

LOOK_SECONDS = 0.5
AGAIN_SECONDS = 5.0
PLACEMENTS_MAX = 200

Json = dict[str, Any]

log = logging.getLogger("leafcast")


class NodeCommands:
    """Answers for one node; its data directory says how to ask it."""

    def __init__(self, runtime: NodeRuntime, place: DataDir, clock: Clock) -> None:
        self._runtime, self._place, self._clock = runtime, place, clock
        self._link, self._news = LinkHistory(clock.now().wall_ms), LinkNews()
        self._api = Api(unknown=self._asked_elsewhere)
        self._api.register(NODE_HERE, self._here)

    async def run(self) -> None:
        """Answer until cancelled; before its relay began there is nothing to say."""
        await self._runtime.running()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow_link(), name="link")
            group.create_task(self._answer(), name="api")

    async def _answer(self) -> None:
        """Let commands in. The node works also while it cannot: its disk may be full."""
        hosted = self._runtime.hosted
        while True:
            try:
                async with AsyncExitStack() as stack:
                    client = await hosted.client(stack, "api")
                    said = {"url": hosted.server.url, "seed": hosted.seeds.commands}
                    self._place.write_admin({**said, "node": str(self._runtime.path)})
                    await serve(client, f"{API_PREFIX}*", self._api.answer, f"{ANSWERS}.")
            except (BusBroken, OSError) as error:
                log.debug("node %s answers no commands yet: %s", self._runtime.path, error)
            await self._clock.sleep(AGAIN_SECONDS)

    async def _follow_link(self) -> None:
        while True:
            self._look()
            await self._clock.sleep(LOOK_SECONDS)

    def _look(self) -> None:
        self._news.look(self._runtime.server.log)
        self._link.note(self._state(), self._clock.now().wall_ms)

    def _state(self) -> LinkState:
        node = self._runtime.node
        if node is not None and node.stopped:
            return "stopped"
        if self._news.trouble == NOT_LET_IN:
            return "not let in"
        # The server's log tells of a lost link at once, and a link that is silent tells nothing.
        if self._news.trouble or not self._runtime.is_linked:
            return "not reached"
        return IN_SESSION if node is not None and node.ready else "catching up"

    async def _here(self) -> Json:
        """What the node holds, what it waits for, and how its link was."""
        runtime, node = self._runtime, self._runtime.node
        if node is None:
            said = f"{runtime.path} is starting, or its streams cannot be read"
            raise ApiError("Restarting", said, "try again in a moment")
        self._look()
        now_ms, (cause, remedy) = self._clock.now().wall_ms, self._news.cause
        held = await self._placements(node)
        unready = {name: why for name, why in runtime.unready().items() if name != "session"}
        return {
            **standing_form(node, str(runtime.path)),
            "role": runtime.role,
            "version": installed_version("leafcast"),
            "nowMs": now_ms,
            "link": {**self._link.form(now_ms), "cause": cause, "remedy": remedy},
            "unready": {name: why for name, why in unready.items() if why},
            "objects": runtime.objects_applied if runtime.attached else None,
            "held": held[:PLACEMENTS_MAX],
            "heldCount": len(held),
        }

    async def _placements(self, node: NodeView) -> list[Json]:
        """All placements it holds, the worst first; the node's own work goes on meanwhile."""
        found = []
        for key in placement_keys(node):
            if (form := placement_form(node, key)) is not None:
                found.append(form)
            await self._clock.sleep(0)
        return [dict(form) for form in worst_first(found)]

    def _asked_elsewhere(self, verb: str) -> ApiError:
        path = self._runtime.path
        said = f"this is the data directory of {path}, which answers `leafcast ui` alone"
        remedy = "ask at the centre, or there: leafcast get --at, status --at, why --at"
        return ApiError("UnknownVerb", f"{said}, not {verb!r}", remedy)
