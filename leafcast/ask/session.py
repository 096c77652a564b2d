"""The command line's way to a running tree: its spaces, and its daemon's answers by verb.

It reaches the centre as account SPACE, so it sees objects and what `leafcast.api.<verb>` answers,
and nothing of the relay's own.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leafcast.ask.asked_space import AskedSpace
from leafcast.ask.failures import CallFailed as CallFailed
from leafcast.ask.failures import NotRunning as NotRunning
from leafcast.data_dir import DataDir, check_owner
from relay.adapters.asking import CannotConnect, TooLong, Unanswered, asking
from relay.adapters.clock import SystemClock, SystemDice
from relay.space_errors import SpaceError
from schemas.groups import GROUP, PROPERTIES_NAMESPACE
from schemas.identity import NodePath

if TYPE_CHECKING:
    from leafcast.space_settings import SpaceSetting
    from relay.ports import Clock
    from relay.space_port import Space
    from schemas.objects import ObjectKey

WORKLOADS_BUCKET, INVENTORY_BUCKET = "workloads", "inventory"
USER_MANAGER = "leafcast-apply"
"""Whose fields those are that people apply."""
NODE_MANAGER = "leafcast-node"
"""Whose those are that a node came with: no manifest takes them away by leaving them out."""
API_PREFIX = "leafcast.api."
CALL_SECONDS = 15.0
SELECTION_OBJECTS_MAX = 1_000
"""So many objects the verb `selection` takes at a time."""
TOLD_AFTER_SECONDS = 2.0
"""Who waits for longer is told for what."""

Tell = Callable[[str], None]

_AWAITED = {
    "ask": "{path} to answer",
    "plan-make": "the centre to plan",
    "destinations": "the nodes to name their destinations",
    "doctor": "all nodes to answer",
    "node-move": "{path} to be moved",
    "node-remove": "{path} to delete what it was sent",
}
_INVENTORY = frozenset({(GROUP, "locations"), (GROUP, "synctargets")})


def is_properties(key: ObjectKey) -> bool:
    """Whether it lies in the namespace of destinations' properties, or is that."""
    if key.group_resource == ("", "namespaces"):
        return key.name == PROPERTIES_NAMESPACE
    return key.namespace == PROPERTIES_NAMESPACE and key.resource == "configmaps"


def in_inventory(key: ObjectKey) -> bool:
    """Whether an object lies in the inventory: Locations, SyncTargets, and their properties."""
    return key.group_resource in _INVENTORY or is_properties(key)


@dataclass(frozen=True, slots=True)
class Session:
    """An open way to the tree: `workloads` and `inventory` are the centre's spaces."""

    data_dir: DataDir
    workloads: Space
    inventory: Space
    clock: Clock
    ask: Callable[[str, bytes, float], Awaitable[bytes]]
    # Is told what is waited for, once that takes long.
    tell: Tell = lambda _: None

    def space_for(self, key: ObjectKey) -> Space:
        """Where an object lies.

        Locations, SyncTargets and what says their properties lie in the inventory, all else beside.
        """
        return self.inventory if in_inventory(key) else self.workloads

    def why(self, error: SpaceError) -> str:
        """What the centre's space said, or what is known better: that its disk is full."""
        if error.reason != "ServiceUnavailable":
            return error.message
        folder = self.data_dir.node(NodePath())
        # Here, as nothing else of a command looks at a server's store.
        from relay.adapters.server.store_space import is_full  # noqa: PLC0415

        if folder.is_dir() and is_full(folder):
            return f"the disk of {folder} is full, so nothing was changed: make room there"
        return f"{error.message}; try again, and see: leafcast doctor"

    async def call(self, verb: str, /, *, seconds: float = CALL_SECONDS, **args: Any) -> Any:
        """Have the daemon do the verb, with arguments of JSON; its result.

        Raises CallFailed with what it said, or that it did not answer within `seconds`, and
        NotRunning if the tree was stopped meanwhile.
        """
        subject, question = API_PREFIX + verb, json.dumps(args).encode()
        what = _AWAITED.get(verb, "the tree to answer").format(**args)
        try:
            with _waiting(self.tell, f"{what}, {seconds:g} s at most"):
                answer = json.loads(await self.ask(subject, question, seconds))
        except TooLong as error:
            raise CallFailed(verb, "TooLarge", f"{verb}: {error}", "say less at a time") from error
        except Unanswered as error:
            if not self.data_dir.in_use():
                raise NotRunning(self.data_dir.folder, "the tree was stopped") from error
            if error.nobody:
                remedy = f"wait a moment; if it stays so, see {self.data_dir.log}"
                raise CallFailed(verb, "NotServed", "the tree is not up yet", remedy) from error
            message = f"the tree did not answer {verb} within {seconds:g} s"
            raise CallFailed(verb, "Timeout", message, f"see {self.data_dir.log}") from error
        if "error" in answer:
            said = answer["error"]
            raise CallFailed(verb, said["code"], said["message"], said.get("remedy", ""))
        return answer["result"]


@contextmanager
def _waiting(tell: Tell, what: str) -> Iterator[None]:
    """Tell what is waited for here, if it takes long."""
    text = f"waiting for {what}"
    told = asyncio.get_running_loop().call_later(TOLD_AFTER_SECONDS, tell, text)
    try:
        yield
    finally:
        told.cancel()


@asynccontextmanager
async def open_session(
    data_dir: Path | None = None, tell: Tell = lambda _: None
) -> AsyncIterator[Session]:
    """A session with the tree that runs on the data directory, or on the default one.

    Raises NotRunning, or DataDirUnusable.
    """
    place = DataDir.at(data_dir)
    # Another user's would say where we send what is secret.
    check_owner(place.folder)
    admin = place.admin()
    if admin is None or not place.in_use():
        raise NotRunning(place.folder)
    clock = SystemClock()
    try:
        async with AsyncExitStack() as stack:
            with _waiting(tell, "the centre's nats-server to answer"):
                connecting = asking(admin["url"], admin["seed"], "leafcast command")
                connection = await stack.enter_async_context(connecting)
            direct = _DirectSpaces(place, admin, clock, stack)

            async def call(verb: str, **arguments: Any) -> Any:
                # The session is made of spaces, and they ask by it.
                return await session.call(verb, **arguments)

            workloads, inventory = (
                AskedSpace(call, name, direct.space)
                for name in (WORKLOADS_BUCKET, INVENTORY_BUCKET)
            )
            session = Session(place, workloads, inventory, clock, connection.ask, tell)
            try:
                yield session
            except SpaceError as error:
                if (why := session.why(error)) == error.message:
                    raise
                raise SpaceError(error.reason, why) from error
    except CannotConnect as error:
        remedy = f"see {place.log}; if it stays so: `leafcast down`, then `leafcast up`"
        reason = f"the tree's nats-server does not answer: {error.reason}"
        raise NotRunning(place.folder, reason, remedy) from error


class _DirectSpaces:
    """The centre's spaces past its daemon, opened where they are needed."""

    def __init__(
        self, place: DataDir, admin: dict[str, Any], clock: Clock, stack: AsyncExitStack
    ) -> None:
        self._place, self._admin = place, admin
        self._clock, self._stack = clock, stack
        self._opened: dict[str, Space] = {}
        self._opening = asyncio.Lock()

    async def space(self, name: str) -> Space:
        """Raises SpaceError, CannotConnect."""
        async with self._opening:
            if name not in self._opened:
                self._opened[name] = await self._open(name)
            return self._opened[name]

    async def _open(self, name: str) -> Space:
        # Here, as few commands need them, and they take longer than the rest of a command.
        from leafcast.spaces import open_space  # noqa: PLC0415
        from relay.adapters.jetstream.request_reply import brief_connection  # noqa: PLC0415
        from relay.adapters.spaces.embedded_space import EmbeddedSpace  # noqa: PLC0415

        dice = SystemDice()

        async def embedded() -> Space:
            connecting = brief_connection(
                self._admin["url"], self._admin["seed"], "leafcast command"
            )
            client = await self._stack.enter_async_context(connecting)
            space = EmbeddedSpace(
                client, name, self._clock, dice, domain=NodePath().domain, as_written=True
            )
            await space.open()
            return space

        return await open_space(self._setting(name), embedded, self._clock, dice, self._stack)

    def _setting(self, name: str) -> SpaceSetting:
        spaces = self._place.spaces()
        return (spaces.workloads if name == WORKLOADS_BUCKET else spaces.inventory)[0]
