"""When a member may be active by its files; what keeps it back may end while it is away."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from leafcast.members.member_node import MemberNode
from leafcast.members.state_files import StateFiles
from relay.adapters.jetstream.state_stream import StateStream
from relay.ports import BusBroken

LOOK_SECONDS, LOOK_SECONDS_MAX = 1.0, 10.0
"""How often a member looks whether it may be active, first and after it looked in vain."""

log = logging.getLogger("leafcast")


@dataclass(frozen=True, slots=True)
class Admission:
    """Of one turn of a member; `why_not` says why it may not be active by its files, "" if it may.

    `laid` is set whenever a file of the node's state was laid down here.
    """

    who: str
    node: MemberNode
    why_not: Callable[[], str]
    stream: StateStream
    files: StateFiles
    laid: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait(self) -> None:
        """Wait until the member may be active; why not is said once. Raises OSError."""
        told, pause = "", LOOK_SECONDS
        while True:
            self.laid.clear()
            if not (why := self.why_not()):
                return
            if why != told:
                log.info("%s: %s", self.who, why)
            told = why
            if await self._drop_erased():
                continue
            # A file that is not of the node's state may come to lie there, too.
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self.laid.wait()
            pause = min(2 * pause, LOOK_SECONDS_MAX)

    async def _drop_erased(self) -> bool:
        """Drop the file that keeps it back, if another member erased that and nobody told it.

        The node runs by what the stream holds behind a fence: who drops it too early finds it
        there, and does not run.
        """
        name = self.node.kept_back_by()
        try:
            is_erased = bool(name) and await self.stream.has_erased(name)
        except BusBroken as error:
            log.debug("%s: whether %s is erased: %s", self.who, name, error)
            return False
        if is_erased:
            log.info("%s: %s was erased while this member was away", self.who, name)
            self.files.lay(name, None)
        return is_erased
