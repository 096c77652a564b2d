"""Asks and answers on NATS: questions to children, answers of theirs; nothing of it is kept."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator

from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from relay.adapters.jetstream.connection import Connection
from relay.adapters.jetstream.periodic_yield import PeriodicYield
from relay.core.asks.routing import AnswerArrived, AskArrived
from relay.ports import BusBroken
from schemas.records.asks import PART_MAX_BYTES
from schemas.values import subjects
from schemas.values.identity import NodePath
from schemas.values.refusals import BadIdentity

ASKS_WAITING_MAX = 64
"""Asks that wait for their reader; more are dropped, as asks may be."""
ANSWERS_BYTES_MAX, ANSWERS_OF_CHILD_BYTES_MAX = 64 * PART_MAX_BYTES, 16 * PART_MAX_BYTES
"""Answers that wait, of all children and of one. In bytes: what is under way at once may come at
once, and most answers are small."""
ANSWER_MIN_BYTES = 4096
"""None counts as less."""

logger = logging.getLogger(__name__)


class AskLines:
    """A node's lines for asks: to its children as account RELAY, to its parent as UPLINK."""

    def __init__(self, path: NodePath, relay: Connection, up: Connection | None) -> None:
        self._path = path
        self._relay = relay
        self._up = up
        # Bounded by what of it waits.
        self._heard: asyncio.Queue[AskArrived | AnswerArrived | None] = asyncio.Queue()
        self._asks = self._bytes = 0
        self._of_child: Counter[str] = Counter()
        self._yield = PeriodicYield()

    async def start(self) -> None:
        answers = subjects.child_answers(self._path)
        await self._relay.client.subscribe(answers, cb=self._answer_came)
        if self._up is not None:
            # Verbs of a newer centre are passed on, too: who they are for knows them, or says so.
            asks = subjects.ask(self._path.name, "*")
            await self._up.client.subscribe(asks, cb=self._ask_came)

    def close(self) -> None:
        """Let the reader go."""
        self._heard.put_nowait(None)

    async def heard(self) -> AsyncIterator[AskArrived | AnswerArrived]:
        """What comes, in order; raises BusBroken when the bus is closed."""
        while (heard := await self._heard.get()) is not None:
            self._count(heard, -1)
            yield heard
        raise BusBroken("the bus is closed")

    async def send_ask(self, child: str, verb: str, data: bytes) -> None:
        await self._relay.ready()
        try:
            await self._relay.client.publish(subjects.ask(child, verb), data)
        except (NatsError, OSError) as error:
            raise BusBroken(f"an ask for {child} could not be sent: {error}") from error

    async def send_answer(self, ask: str, data: bytes) -> bool:
        if self._up is None or not self._up.client.is_connected:
            return False
        try:
            await self._up.client.publish(subjects.answer(self._path, ask), data)
        except (NatsError, OSError) as error:
            logger.debug("an answer of %s could not be sent: %s", self._path, error)
            return False
        return True

    async def _ask_came(self, message: Msg) -> None:
        asked = AskArrived(message.subject.rpartition(".")[2], message.data)
        self._put(asked, finds_room=self._asks < ASKS_WAITING_MAX)

    async def _answer_came(self, message: Msg) -> None:
        await self._yield.next()
        try:
            child = subjects.parse(message.subject).path.name
        except BadIdentity:
            return
        answer = AnswerArrived(child, message.data)
        size, of_child = _size(answer), self._of_child[child]
        finds_room = (
            of_child + size <= ANSWERS_OF_CHILD_BYTES_MAX
            and self._bytes + size <= ANSWERS_BYTES_MAX
        )
        self._put(answer, finds_room=finds_room)

    def _put(self, heard: AskArrived | AnswerArrived, *, finds_room: bool) -> None:
        if not finds_room:
            logger.debug("%s drops an ask or an answer: too many at once", self._path)
            return
        self._count(heard, 1)
        self._heard.put_nowait(heard)

    def _count(self, heard: AskArrived | AnswerArrived, sign: int) -> None:
        """Count it among what waits, or no more."""
        if isinstance(heard, AskArrived):
            self._asks += sign
            return
        self._bytes += sign * _size(heard)
        self._of_child[heard.child] += sign * _size(heard)
        if not self._of_child[heard.child]:
            del self._of_child[heard.child]


def _size(answer: AnswerArrived) -> int:
    return max(len(answer.data), ANSWER_MIN_BYTES)
