"""The command line's way to a running tree: its spaces, and its daemon's answers by verb.

Its key lets it ask `leafcast.api.<verb>` and hear the answers, and reach nothing else: what is read
and written the daemon reads and writes.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Protocol

from leafcast.ask.asked_space import AskedSpace, Call
from leafcast.ask.failures import CallFailed as CallFailed
from leafcast.ask.failures import NotRunning as NotRunning
from leafcast.ask.long_questions import QUESTION_CHARACTERS_MAX, parts_of
from leafcast.ask.long_questions import VERB as PART
from leafcast.ask.unanswered import (
    AGAIN,
    CUT,
    cut_before,
    late,
    lost,
    none_active,
    none_says,
    not_yet,
    stuck,
)
from leafcast.ask.verbs import API_PREFIX as API_PREFIX
from leafcast.ask.verbs import NODE_HERE as NODE_HERE
from leafcast.ask.verbs import STANDING as STANDING
from leafcast.data_dir import MEMBER_FILE, DataDir, check_owner
from relay.adapters.asking import (
    PAUSE_SECONDS,
    Asking,
    CannotConnect,
    QuestionUnanswered,
    TooLong,
    asking,
)
from relay.adapters.clock import SystemClock
from relay.space_errors import SpaceError
from schemas.values.groups import GROUP, PROPERTIES_NAMESPACE
from schemas.values.identity import NodePath

if TYPE_CHECKING:
    from relay.ports import Clock
    from schemas.objects.objects import ObjectKey

WORKLOADS_BUCKET, INVENTORY_BUCKET = "workloads", "inventory"
USER_MANAGER = "leafcast-apply"
"""Whose fields those are that people apply."""
NODE_MANAGER = "leafcast-node"
"""Whose those are that a node came with: no manifest takes them away by leaving them out."""
WITH_MEMBERS = b'{"members": true}'
"""Asks for what each of them says of itself, too, where none is active."""
CALL_SECONDS = 15.0
STANDING_SECONDS, MEMBERS_SECONDS = 1.0, 3.0
LOOK_SECONDS = 2.0
"""How often who waits looks whether the member that was asked is still the active one."""
ACTIVE_LOOK_SECONDS = 0.25
"""How often who has not asked yet looks whether a member is active."""
PUT_AGAIN_SECONDS = 3 * PAUSE_SECONDS
"""Within so much a question goes out again that nobody heard."""
SELECTION_OBJECTS_MAX = 1_000
"""So many objects the verb `selection` takes at a time."""
TOLD_AFTER_SECONDS = 2.0
"""Who waits for longer is told for what."""

TellUser = Callable[[str], None]

_AWAITED = {
    "ask": "{path} to answer",
    "plan-make": "the centre to plan",
    "destinations": "the nodes to name their destinations",
    "doctor": "all nodes to answer",
    "node-move": "{path} to be moved",
    "node-remove": "{path} to delete what it was sent",
}


class Ask(Protocol):
    """Asks as `Asking.ask` does, and raises as it does."""

    def __call__(
        self, subject: str, question: bytes, seconds: float, put: Callable[[], None] = ..., /
    ) -> Awaitable[bytes]:
        """The answer; `put` is called each time that the question goes out."""
        ...


_INVENTORY = frozenset({(GROUP, "locations"), (GROUP, "synctargets")})


def is_properties(key: ObjectKey) -> bool:
    """Whether it lies in the namespace of destinations' properties, or is that."""
    if key.group_resource == ("", "namespaces"):
        return key.name == PROPERTIES_NAMESPACE
    return key.namespace == PROPERTIES_NAMESPACE and key.resource == "configmaps"


def in_inventory(key: ObjectKey) -> bool:
    """Whether an object lies in the inventory: Locations, SyncTargets, and their properties."""
    return key.group_resource in _INVENTORY or is_properties(key)


_SEVERED: Mapping[str, Any] = {}


class _Put:
    """When a question went out last."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.note()

    def note(self) -> None:
        """It goes out now."""
        self.seconds = self._clock.now().seconds


@dataclass(frozen=True, slots=True)
class Session:
    """An open way to the tree: `workloads` and `inventory` are the centre's spaces."""

    data_dir: DataDir
    workloads: AskedSpace
    inventory: AskedSpace
    clock: Clock
    ask: Ask
    # Is told what is waited for, once that takes long.
    tell: TellUser = lambda _: None
    # Whether the centre has several members, by the data directory.
    has_members: bool = False

    def space_for(self, key: ObjectKey) -> AskedSpace:
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
        if self.has_members:
            return f"{error.message}; {AGAIN}; see: leafcast doctor, leafcast tree --members"
        return f"{error.message}; try again, and see: leafcast doctor"

    async def call(self, verb: str, /, *, seconds: float = CALL_SECONDS, **args: Any) -> Any:
        """Have the daemon do the verb, with arguments of JSON; its result.

        Raises CallFailed with what it said, or that it did not answer within `seconds`, and
        NotRunning if the tree was stopped meanwhile.
        """
        question = json.dumps(args).encode()
        what = _AWAITED.get(verb, "the tree to answer").format(**args)
        try:
            answer = json.loads(await self._answer(verb, question, seconds, what))
        except TooLong as error:
            if len(question) > QUESTION_CHARACTERS_MAX:
                size = f"{len(question)} bytes, at most {QUESTION_CHARACTERS_MAX} are taken"
                message = f"{verb}: a question of {size}"
                raise CallFailed(verb, "TooLarge", message, "say less at a time") from error
            return await self._in_parts(verb, question.decode(), seconds)
        except QuestionUnanswered as error:
            if not self.data_dir.in_use():
                raise NotRunning(self.data_dir.folder, "the tree was stopped") from error
            if error.cut:
                raise lost(verb, CUT, has_members=self.has_members) from error
            standing = await self._standing()
            if silent := standing.get("silentSeconds"):
                raise none_active(verb, silent, is_taken=not error.nobody) from error
            if streams := standing.get("stuck"):
                raise stuck(verb, streams) from error
            if error.nobody:
                raise not_yet(verb, self.data_dir.log) from error
            raise late(verb, seconds, self.data_dir.log) from error
        if "error" in answer:
            said = answer["error"]
            raise CallFailed(verb, said["code"], said["message"], said.get("remedy", ""))
        return answer["result"]

    async def _answer(self, verb: str, question: bytes, seconds: float, what: str) -> bytes:
        """The answer of the active member, also of one that does not hear yet; raises as `ask`.

        `what` is waited for. Raises CallFailed if who had the question is the active one no more.
        """
        until = self.clock.now().seconds + seconds
        if self.has_members:
            await self._until_active(verb, seconds)
        while True:
            put, left = _Put(self.clock), until - self.clock.now().seconds
            try:
                async with self._watching_active(verb, put):
                    with _waiting(self.tell, f"{what}, {seconds:g} s at most"):
                        return await self.ask(API_PREFIX + verb, question, left, put.note)
            except QuestionUnanswered as error:
                if not error.nobody or "activeSeconds" not in await self._standing():
                    raise
                if self.clock.now().seconds >= until:
                    raise

    async def _until_active(self, verb: str, seconds: float) -> None:
        """Wait until a member says that it is active: what goes out before may reach a lost one.

        A route to a machine without power stays open for a while, and takes what is sent. Raises
        CallFailed, which is certain then: nothing was asked. However long the answer may take, for
        a member to be active nobody waits longer than CALL_SECONDS.
        """
        seconds = min(seconds, CALL_SECONDS)
        until = self.clock.now().seconds + seconds
        with _waiting(self.tell, f"a member of the centre to be active, {seconds:g} s at most"):
            while "activeSeconds" not in (standing := await self._standing()):
                if standing is _SEVERED:
                    raise cut_before(verb)
                silent, is_late = standing.get("silentSeconds"), self.clock.now().seconds >= until
                if silent is not None and (is_late or silent > CALL_SECONDS):
                    raise none_active(verb, silent, is_taken=False)
                if is_late:
                    raise none_says(verb, seconds)
                await self.clock.sleep(ACTIVE_LOOK_SECONDS)

    @asynccontextmanager
    async def _watching_active(self, verb: str, put: _Put) -> AsyncIterator[None]:
        """Ends with CallFailed if who is asked meanwhile is the active member no more."""
        try:
            async with asyncio.TaskGroup() as group:
                watching = group.create_task(self._watch_active(verb, put))
                yield
                watching.cancel()
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None

    async def _watch_active(self, verb: str, put: _Put) -> None:
        """Raise CallFailed once who is active was not so, or did not hear, as it was asked.

        So it does once nobody was active, or no member of several said how it stands, for as long
        as any question is waited for.
        """
        pause, said_at = LOOK_SECONDS, self.clock.now().seconds
        while True:
            await self.clock.sleep(pause)
            # All are seconds: no clock of another machine is compared. They are taken before it
            # says its own, so that one that was there is never taken for one that was not.
            put_at = put.seconds
            asked = self.clock.now().seconds - put_at
            standing = await self._standing()
            if standing or not self.has_members:
                said_at = self.clock.now().seconds
            elif (mute := self.clock.now().seconds - said_at) > CALL_SECONDS:
                # The server that we are at may be frozen, or cut off, and all goes on elsewhere.
                raise lost(verb, f"no member of the centre said for {mute:.0f} s how it stands")
            silent = standing.get("silentSeconds", 0.0)
            # Another member is active soon.
            pause = ACTIVE_LOOK_SECONDS if silent else LOOK_SECONDS
            if min(silent, asked) > CALL_SECONDS:
                # A route to a machine without power stays open for a while, so it may be with that.
                raise none_active(verb, silent, is_taken=True)
            if standing.get("activeSeconds", asked) < asked:
                why = "another member of the centre became active"
            elif standing.get("hearsSeconds", asked) < asked:
                why = "the active member heard it not yet, or its server was started again"
            else:
                continue
            # Where nobody listened it goes out again, and who hears now has it then.
            await self.clock.sleep(PUT_AGAIN_SECONDS)
            if put.seconds == put_at:
                raise lost(verb, why)

    async def unled(self) -> Mapping[str, Any]:
        """The members of a centre of which none is active, as the verb `tree` has a node's.

        `silentSeconds` says for how long none was. Empty if one is, or nobody says.
        """
        if not self.has_members:
            return {}
        told = await self._standing(WITH_MEMBERS, MEMBERS_SECONDS)
        if "silentSeconds" not in told or not told.get("members"):
            return {}
        centre = {"path": "/", "is_edge": False, "members": told["members"]}
        return {"nodes": [centre], "silentSeconds": told["silentSeconds"]}

    async def _standing(
        self, question: bytes = b"{}", seconds: float = STANDING_SECONDS
    ) -> Mapping[str, Any]:
        """How the members of the centre stand; empty if it is alone, or none of them says.

        Then it is _SEVERED where nothing can be asked any more.
        """
        try:
            said = await self.ask(API_PREFIX + STANDING, question, seconds)
            return dict(json.loads(said).get("result") or {})
        except QuestionUnanswered as error:
            return _SEVERED if error.cut else {}

    async def _in_parts(self, verb: str, question: str, seconds: float) -> Any:
        """What the last part is answered; raises as `call`."""
        answer = None
        for part in parts_of(verb, question, token_hex(8)):
            answer = await self.call(PART, seconds=seconds, **part)
        return answer


@contextmanager
def _waiting(tell: TellUser, what: str) -> Iterator[None]:
    """Tell what is waited for here, if it takes long."""
    text = f"waiting for {what}"
    told = asyncio.get_running_loop().call_later(TOLD_AFTER_SECONDS, tell, text)
    try:
        yield
    finally:
        told.cancel()


@asynccontextmanager
async def open_session(
    data_dir: Path | None = None, tell: TellUser = lambda _: None
) -> AsyncIterator[Session]:
    """A session with the tree that runs on the data directory, or on the default one.

    Raises NotRunning, or DataDirUnusable.
    """
    place, clock = DataDir.at(data_dir), SystemClock()
    async with _connected(place, tell) as connection:

        async def call(verb: str, **arguments: Any) -> Any:
            # The session is made of spaces, and they ask by it.
            return await session.call(verb, **arguments)

        @asynccontextmanager
        async def calling() -> AsyncIterator[Call]:
            """Of its own: what goes on for long outlives a connection, and tells nobody to wait."""
            async with _connected(place, _silent) as another:
                yield replace(session, ask=another.ask, tell=_silent).call

        workloads, inventory = (
            AskedSpace(call, name, calling, clock, tell)
            for name in (WORKLOADS_BUCKET, INVENTORY_BUCKET)
        )
        has_members = place.asks_members()
        session = Session(place, workloads, inventory, clock, connection.ask, tell, has_members)
        try:
            yield session
        except SpaceError as error:
            if (why := session.why(error)) == error.message:
                raise
            raise SpaceError(error.reason, why) from error


@asynccontextmanager
async def _connected(place: DataDir, tell: TellUser) -> AsyncIterator[Asking]:
    """A connection to the centre's server, as one who may ask; raises as `open_session`."""
    # Another user's would say where we send what is secret.
    check_owner(place.folder)
    admin = place.admin()
    if admin is None or not place.in_use():
        raise _not_running(place)
    try:
        async with AsyncExitStack() as stack:
            with _waiting(tell, "the centre's nats-server to answer"):
                connecting = asking(admin["url"], admin["seed"], "leafcast command")
                connection = await stack.enter_async_context(connecting)
            yield connection
    except CannotConnect as error:
        remedy = f"see {place.log}; if it stays so: `leafcast down`, then `leafcast up`"
        if place.is_of_node_below():
            remedy = "wait a moment; if it stays so, end what runs the node, and start it anew"
        elif (place.folder / MEMBER_FILE).exists():
            remedy = f"ask at another member; if it stays so, start this one anew; see {place.log}"
        reason = f"the tree's nats-server does not answer: {error.reason}"
        raise NotRunning(place.folder, reason, remedy) from error


def _not_running(place: DataDir) -> NotRunning:
    """That nobody there can be asked, and what to do."""
    if not place.is_of_node_below():
        if (place.folder / MEMBER_FILE).exists():
            remedy = "start it as it was started before, or ask at another member"
            return NotRunning(place.folder, "this member does not run", remedy)
        return NotRunning(place.folder)
    if place.in_use():
        reason = "the node that runs here cannot be asked: it starts, or its version is too old"
        remedy = "wait a moment; if it stays so, start it anew with this version"
        return NotRunning(place.folder, reason, remedy)
    return NotRunning(place.folder, "the node does not run", "start it as it was started before")


def _silent(_: str) -> None:
    """Nobody is told."""
