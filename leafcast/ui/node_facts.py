"""The page's port for facts at a node below the centre, which knows of itself alone."""

from __future__ import annotations

from typing import Any, Protocol

from leafcast.ask.session import NODE_HERE
from leafcast.ui.kept_session import KeptSession

Form = dict[str, Any]


class OwnFacts(Protocol):
    """Raises CallFailed and NotRunning."""

    async def here(self) -> Form:
        """What the verb `node-here` answers."""
        ...


class RunningNode:
    """Of a node that runs, asked by its own nats-server, whether its parent is there or not."""

    def __init__(self, kept: KeptSession) -> None:
        self._kept = kept

    async def here(self) -> Form:
        async with self._kept.session() as session:
            form: Form = await session.call(NODE_HERE)
            return form
