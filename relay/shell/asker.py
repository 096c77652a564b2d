"""The shell around a node's asks: the bus brings them, the core decides, answers are found here.

At the centre it is also what one asks through: an ask that is put in comes back as its answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from relay.core.asks.answers import BadAskArguments
from relay.core.asks.routing import (
    ANSWER_SECONDS,
    AnswerArrived,
    AnswerHere,
    AskArrived,
    AskEffect,
    AskRouter,
    PassAsk,
    SendAnswer,
)
from relay.core.effects import Noted
from relay.core.view import NodeView
from relay.ports import Bus, Clock
from relay.shell.note_log import NoteLog
from relay.space_errors import SpaceError
from schemas.content.answer_sealing import AnswerKey, sealed_answer
from schemas.records.asks import ANSWER_MAX_BYTES, RECEIPT, AnswerPart, AskFault, bounded
from schemas.records.records import AskRecord
from schemas.records.signing import Envelope
from schemas.values import codec
from schemas.values.refusals import CodecError, RecordRefused
from schemas.values.wire import decode

AT_HAND = 2
"""Of what the bus brings: the rest waits there, where each child has a bound."""

Answerer = Callable[[AskRecord], Awaitable[object]]
"""Finds the answer to an ask for this node, a JSON value; may raise AskFailed, SpaceError."""


class AskFailed(Exception):
    """There is no answer; `fault` says why."""

    def __init__(self, fault: AskFault) -> None:
        super().__init__(fault.message)
        self.fault = fault


@dataclass(frozen=True, slots=True)
class _Found:
    ask: str
    answer: bytes | AskFault


@dataclass(frozen=True, slots=True)
class _Came:
    """The bus brought it."""

    heard: AskArrived | AnswerArrived


@dataclass(slots=True)
class _Waiting:
    """Someone at this node who asked, and what has come for him so far."""

    parts: list[bytes] = field(default_factory=list)
    fault: AskFault | None = None
    over: asyncio.Event = field(default_factory=asyncio.Event)


class Asker:
    """Serves the asks that pass one node, by its driver's `node` and `count_junk`."""

    def __init__(
        self,
        bus: Bus,
        node: Callable[[], NodeView],
        count_junk: Callable[[str], None],
        clock: Clock,
        answerers: Mapping[str, Answerer],
        remembered: dict[str, int] | None = None,
    ) -> None:
        self._bus = bus
        self._node = node
        self._count_junk = count_junk
        self._clock = clock
        self._answerers = dict(answerers)
        # Which asks were answered; a former asker's, if this one takes its place.
        self._remembered = {} if remembered is None else remembered
        # Besides what the bus brings only what was found for an ask, or is asked by someone here.
        self._inbox: asyncio.Queue[_Came | _Found | AskArrived] = asyncio.Queue()
        self._at_hand = asyncio.Semaphore(AT_HAND)
        self._waiting: dict[str, _Waiting] = {}
        self._router: AskRouter | None = None
        self._notes = NoteLog(bus.path, clock)
        self._ended = False

    @property
    def refused(self) -> int:
        """How many asks were not believed in this run."""
        return self._router.refused if self._router else 0

    async def run(self) -> None:
        """Serve until cancelled; the node must have started. Raises BusBroken (in a group)."""
        node = self._node()
        self._router = AskRouter(
            self._bus.path, node.disbelief, node.heard, self._count_junk, self._remembered
        )
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump(), name=f"asks {self._bus.path}")
                while True:
                    for effect in await self._next(self._router):
                        await self._perform(effect, group)
        finally:
            self._ended = True
            for waiting in self._waiting.values():
                waiting.fault = self._restarting()
                waiting.over.set()

    async def ask(self, ask: str, verb: str, envelope: Envelope, key: AnswerKey) -> Any:
        """At the centre: the answer (JSON) to a signed ask of this id and key; raises AskFailed."""
        if self._ended:
            raise AskFailed(self._restarting())
        waiting = self._waiting[ask] = _Waiting()
        try:
            self._inbox.put_nowait(AskArrived(verb, envelope.encode()))
            await waiting.over.wait()
        finally:
            del self._waiting[ask]
        if waiting.fault is not None:
            raise AskFailed(waiting.fault)
        return open_answer(b"".join(waiting.parts), key)

    def _restarting(self) -> AskFault:
        path = str(self._bus.path)
        return AskFault("Restarting", f"{path} is starting again; ask in a moment", path)

    async def _pump(self) -> None:
        async for heard in self._bus.asks():
            self._inbox.put_nowait(_Came(heard))
            await self._at_hand.acquire()

    async def _next(self, router: AskRouter) -> tuple[AskEffect, ...]:
        due = router.deadline()
        wait = None if due is None else max(0.0, due - self._clock.now().seconds)
        try:
            async with asyncio.timeout(wait):
                heard = await self._inbox.get()
        except TimeoutError:
            return router.tick(self._clock.now())
        now = self._clock.now()
        match heard:
            case _Found(ask, answer):
                return router.finish(ask, answer)
            case _Came(came):
                self._at_hand.release()
            case came:
                pass
        if isinstance(came, AskArrived):
            return (*router.tick(now), *router.ask(came, now))
        return (*router.tick(now), *router.answer(came, now))

    async def _perform(self, effect: AskEffect, group: asyncio.TaskGroup) -> None:
        match effect:
            case PassAsk(child, verb, data):
                await self._bus.send_ask(child, verb, data)
            case SendAnswer(ask, data):
                if ask in self._waiting:
                    self._came(self._waiting[ask], decode(AnswerPart, data))
                else:
                    await self._bus.send_answer(ask, data)
            case AnswerHere(record):
                group.create_task(self._find(record), name=f"answer {record.verb}")
            case Noted():
                self._notes.write(effect)

    def _came(self, waiting: _Waiting, part: AnswerPart) -> None:
        if part.number == RECEIPT:
            return
        waiting.parts.append(part.data)
        waiting.fault = part.fault and bounded(part.fault)
        if part.last:
            waiting.over.set()

    async def _find(self, record: AskRecord) -> None:
        self._inbox.put_nowait(_Found(record.source.name, await self._answer(record)))

    async def _answer(self, record: AskRecord) -> bytes | AskFault:
        path = str(self._bus.path)
        answerer = self._answerers.get(record.verb)
        if answerer is None:
            known = ", ".join(sorted(self._answerers))
            return AskFault("UnknownVerb", f"{path} answers {known}, not {record.verb!r}", path)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                answer = await answerer(record)
                # As whoever opens it does: a live object may be nested more deeply.
                codec.check_depth(answer)
                return sealed_answer(codec.pack(answer), record.answer_key)
        except RecordRefused as refused:
            return AskFault("BadKey", refused.reason, path)
        except AskFailed as failed:
            return failed.fault
        except SpaceError as error:
            return AskFault(error.reason, error.message, path)
        except BadAskArguments as error:
            return AskFault("BadArguments", str(error), path)
        except (CodecError, RecursionError) as error:
            said = f"what it holds cannot be sent: {error}; ask for other objects by name"
            return AskFault("Unsayable", said, path)
        except TimeoutError:
            return AskFault("NoAnswer", f"{path} did not find the answer in time", path)


def open_answer(data: bytes, key: AnswerKey) -> Any:
    """What a node answered, and that may be anyone: any value of msgpack; raises AskFailed."""
    try:
        return codec.unpack(key.open(data), ANSWER_MAX_BYTES, lists=True)
    except (CodecError, RecordRefused) as error:
        fault = AskFault("BadAnswer", f"the answer is unreadable: {error}", "")
        raise AskFailed(fault) from error
