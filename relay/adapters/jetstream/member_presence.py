"""Members of a node ask each other what they are: who is active, and what their clocks say."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from typing import Any

from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from relay.adapters.jetstream.connection import Connection
from relay.members.lease import clock_trouble
from relay.ports import Clock
from schemas.values import subjects
from schemas.values.codec import from_json
from schemas.values.identity import NodePath

LOOK_SECONDS = 0.5
"""A member that does not answer within it is not there."""
COMPARE_SECONDS, ALIKE_LOOK_SECONDS = 5.0, 0.1
MEMBERS = 3
MEMBER, WALL_MS = "member", "wallMs"
CLOCK_TROUBLE = "clockTrouble"
"""Why its clock keeps a member from being active, "" if it does not."""
ROLE, ACTIVE, STANDBY = "role", "active", "standby"
HEARD = "heardSeconds"
"""How long ago a member that stands by heard of the active one; not said if it did not."""
CAME = "cameSeconds"
"""When what a member says came, by the own clock; whoever is silent is waited for after that."""

logger = logging.getLogger(__name__)

Facts = Mapping[str, Any]


class MemberPresence:
    """Answers for one member; `facts` are what it says of itself beside its name and its time."""

    def __init__(
        self,
        connection: Connection,
        path: NodePath,
        member: str,
        clock: Clock,
        facts: Callable[[], Facts],
    ) -> None:
        self._connection = connection
        self._subject = subjects.members(path)
        self._member = member
        self._clock = clock
        self._facts = facts
        self._ahead: dict[str, float] = {}
        self._renewals = subjects.renewals(path)
        self.when_told: Callable[[bytes], None] = lambda _: None
        """Hears what the active member says of each renewal, this one's own among them."""

    async def start(self) -> None:
        """Answer and hear from now on, as long as the connection is open."""
        await self._connection.client.subscribe(self._subject, cb=self._answer)
        await self._connection.client.subscribe(self._renewals, cb=self._hear_renewal)

    async def tell(self, renewal: bytes) -> None:
        """Have the other members hear of a renewal, as far as they are reached."""
        try:
            await self._connection.client.publish(self._renewals, renewal)
        except (NatsError, OSError) as error:
            logger.debug("the other members do not hear of a renewal: %s", error)

    def own(self) -> Facts:
        """What this member says of itself."""
        return {
            MEMBER: self._member,
            WALL_MS: self._clock.now().wall_ms,
            CLOCK_TROUBLE: self.clock_trouble(),
            **self._facts(),
        }

    async def look(self) -> dict[str, Facts]:
        """What the members say, by name: those that answer in time."""
        client = self._connection.client
        found: dict[str, Facts] = {}
        all_there = asyncio.Event()

        async def hear(message: Msg) -> None:
            try:
                facts = from_json(message.data)
                found[str(facts[MEMBER])] = {**facts, CAME: self._clock.now().seconds}
            except (ValueError, KeyError, TypeError) as error:
                logger.debug("a member says what cannot be read: %s", error)
            if len(found) == MEMBERS:
                all_there.set()

        inbox = client.new_inbox()
        try:
            subscription = await client.subscribe(inbox, cb=hear)
            try:
                await client.publish(self._subject, b"", reply=inbox)
                async with asyncio.timeout(LOOK_SECONDS):
                    await all_there.wait()
            finally:
                await subscription.unsubscribe()
        except (NatsError, OSError, TimeoutError) as error:
            logger.debug("not all members answer: %s", error)
        return found

    async def look_at_others(self) -> list[Facts]:
        """What the other members say that answer in time."""
        return [facts for name, facts in (await self.look()).items() if name != self._member]

    async def until_alike(self, fact: str, seconds: float) -> frozenset[str]:
        """Wait until all members that answer say the same of this fact as this one does.

        Returns the names of those that do not in time.
        """
        until = self._clock.now().seconds + seconds
        while True:
            found, mine = await self.look(), self.own().get(fact)
            others = frozenset(name for name, facts in found.items() if facts.get(fact) != mine)
            if not others or self._clock.now().seconds > until:
                return others
            await self._clock.sleep(ALIKE_LOOK_SECONDS)

    async def compare_clocks(self) -> None:
        """Look again and again how far the others' wall clocks are ahead of this one."""
        while True:
            began = self._clock.now().wall_ms
            found = await self.look()
            now = (began + self._clock.now().wall_ms) / 2
            for name, facts in found.items():
                wall = facts.get(WALL_MS)
                if name != self._member and isinstance(wall, int):
                    self._ahead[name] = (wall - now) / 1000
            await self._clock.sleep(COMPARE_SECONDS)

    def clock_trouble(self) -> str:
        """Why this member's clock keeps it from being active; "" if it does not.

        Of a member that is gone counts what its clock said last.
        """
        return clock_trouble(0.0, tuple(self._ahead.values()))

    async def _hear_renewal(self, message: Msg) -> None:
        self.when_told(message.data)

    async def _answer(self, message: Msg) -> None:
        if not message.reply:
            return
        try:
            await self._connection.client.publish(message.reply, json.dumps(self.own()).encode())
        except (NatsError, OSError) as error:
            logger.debug("another member is not answered: %s", error)
