"""The fence in a stream: whoever is active writes it first, and after it nothing of another lands.

What is kept goes in atomic batches of which the first message expects the fence to lie where its
writer put it. An erasure is such a message, too, and is purged by its sequence after that, so that
a late one erases nothing that another wrote.
"""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from relay.adapters.jetstream.connection import (
    Connection,
    JetStreamRefused,
    checked,
    counts_in,
    status_of,
)
from relay.adapters.jetstream.publish import (
    ANSWER_SECONDS,
    EXPECTED_SEQUENCE,
    EXPECTED_SUBJECT,
    REPLACES,
    WINDOW_BYTES,
    WRONG_SEQUENCES,
    Outgoing,
    header_lines,
    windows,
)
from relay.adapters.jetstream.reconnecting_client import command
from relay.adapters.jetstream.stream_probes import ProbedInTurn, ProbedStream, leader_of
from relay.adapters.jetstream.stream_reader import Stored
from relay.adapters.jetstream.streams import last_message, purge_through
from relay.ports import BusBroken

ERASED = "Lc-Erased"
"""Marks a message that says that what lay at its subject is erased."""
TAKE_ATTEMPTS_MAX = 5


class Deposed(BusBroken):
    """Another member of the node is active: nothing of this one is kept any more."""

    def __init__(self, stream: str) -> None:
        super().__init__(f"another member of this node is active, and {stream} takes nothing more")


class Unconfirmed(BusBroken):
    """What was sent was not answered in time: whether it is kept is not known."""


@dataclass(frozen=True, slots=True)
class Tenure:
    """One time in which this member is the active one.

    `confirm` returns if that was so less than a second ago, and raises BusBroken else. `settled`
    returns once what lies in files of the node lies in its stream of state, too.
    """

    token: str
    confirm: Callable[[], Awaitable[None]]
    settled: Callable[[], Awaitable[None]]
    # Of each stream that is looked at the one that was made last.
    probed: dict[str, ProbedStream] = field(default_factory=dict)
    # Those of which there are many, by what they hold.
    in_turn: dict[str, ProbedInTurn] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fence:
    """Where the fence of a stream lies, and whether messages there say that they replace others."""

    stream: str
    subject: str
    sequence: int
    replaces: bool

    @property
    def headers(self) -> dict[str, str]:
        """What a message has to have that is to land behind no other fence."""
        return {EXPECTED_SEQUENCE: str(self.sequence), EXPECTED_SUBJECT: self.subject}


async def take_fence(
    connection: Connection, tenure: Tenure, stream: str, subject: str, *, replaces: bool
) -> Fence:
    """Write the fence of a stream, after which nothing of others lands; raises BusBroken.

    Where it lies is read first, and the lease confirmed after that: so whoever is stopped between
    two of the steps finds another's fence there, and does not take it from one that came later.
    """
    for _ in range(TAKE_ATTEMPTS_MAX):
        last = await _last(connection, stream, subject)
        await tenure.confirm()
        headers = {EXPECTED_SEQUENCE: str(last[0]), **(REPLACES if replaces else {})}
        answer = await _request(connection, subject, tenure.token.encode(), headers)
        if answer is not None:
            try:
                (sequence,) = counts_in(subject, checked(subject, answer), "seq")
                return Fence(stream, subject, sequence, replaces)
            except JetStreamRefused as error:
                if error.code not in WRONG_SEQUENCES:
                    raise
        now = await _last(connection, stream, subject)
        if now[0] != last[0] and now[1] == tenure.token:
            return Fence(stream, subject, now[0], replaces)  # Its answer was lost.
    raise BusBroken(f"the fence of {stream} is written by others all the time")


async def _last(connection: Connection, stream: str, subject: str) -> tuple[int, str]:
    """Sequence and token of the fence that lies there, by the stream's leader; 0 if none does."""
    message = await last_message(connection, stream, subject)
    if message is None:
        return 0, ""
    token = b64decode(message.get("data") or "").decode(errors="replace")
    return int(message["seq"]), token


async def _request(
    connection: Connection, subject: str, data: bytes, headers: dict[str, str]
) -> Msg | None:
    try:
        return await connection.client.request(
            subject, data, timeout=ANSWER_SECONDS, headers=headers
        )
    except (NatsError, OSError, TimeoutError):
        return None


class FencedPublisher:
    """Publishes into one stream behind a fence, each window of messages whole or not at all."""

    def __init__(self, connection: Connection, fence: Fence, tenure: Tenure) -> None:
        self._connection = connection
        self._fence = fence
        self._tenure = tenure
        self._count = 0
        # A cluster refuses a batch that expects what another one under way expects, too.
        self._one_at_a_time = asyncio.Lock()

    async def is_answering(self) -> bool:
        """As ProbedStream: the fence is written once more, and nothing else."""
        lines = header_lines(REPLACES if self._fence.replaces else {})
        message = Outgoing(self._fence.subject, self._tenure.token.encode(), lines)
        try:
            async with self._one_at_a_time:
                last = await self._publish([message])
                self._fence = replace(self._fence, sequence=last)
        except (Deposed, JetStreamRefused):
            return True
        except BusBroken:
            return False
        return True

    async def leader(self) -> str:
        return await leader_of(self._connection, self._fence.stream)

    async def publish(
        self, messages: Sequence[Outgoing], answer_seconds: float | None = None
    ) -> list[int]:
        """The sequences at which the stream keeps them, in order.

        Raises Deposed if another member is active, Unconfirmed if a window was not answered in
        time, which is `answer_seconds` if that is said, and BusBroken if it was refused.
        """
        await self._tenure.settled()
        sequences: list[int] = []
        for window in windows(messages, WINDOW_BYTES):
            async with self._one_at_a_time:
                last = await self._publish(window, answer_seconds)
            sequences += range(last - len(window) + 1, last + 1)
        return sequences

    async def erase(self, subjects: Iterable[str], kept: Sequence[Outgoing] = ()) -> list[int]:
        """Publish these, and erase the others in the same windows; raises as `publish`."""
        lines = header_lines({ERASED: "1", **(REPLACES if self._fence.replaces else {})})
        gone = [Outgoing(subject, b"", lines) for subject in subjects]
        sequences = await self.publish([*kept, *gone])
        await self.sweep(
            {
                message.subject: sequence
                for message, sequence in zip(gone, sequences[len(kept) :], strict=True)
            }
        )
        return sequences[: len(kept)]

    async def sweep(self, erased: Mapping[str, int]) -> None:
        """Have what says that something is erased go, too, by its sequences; raises BusBroken."""
        await purge_through(self._connection, self._fence.stream, erased)

    async def _publish(
        self, window: Sequence[Outgoing], answer_seconds: float | None = None
    ) -> int:
        """The sequence of the last message."""
        self._count += 1
        identity = f"{self._tenure.token}-{self._fence.sequence}-{self._count}"
        client = self._connection.client
        inbox = client.new_inbox()
        await self._connection.ready()
        try:
            subscription = await client.subscribe(inbox, max_msgs=1)
            try:
                await client.publish_all(list(self._commands(window, identity, inbox)))
                answer = await subscription.next_msg(timeout=answer_seconds or ANSWER_SECONDS)
            finally:
                await subscription.unsubscribe()
        except (NatsError, OSError, TimeoutError) as error:
            said = f"{window[0].subject}: no stream has confirmed it in time"
            raise Unconfirmed(said) from error
        if status_of(answer) == "503":
            raise BusBroken(f"{window[0].subject}: no stream takes it")
        try:
            (last,) = counts_in(identity, checked(window[0].subject, answer), "seq")
        except JetStreamRefused as error:
            if error.code in WRONG_SEQUENCES and await self._follows_fence():
                return await self._publish(window, answer_seconds)
            raise
        return last

    async def _follows_fence(self) -> bool:
        """Whether its own fence lies elsewhere by now: one landed that was not answered in time.

        Raises Deposed if the fence is another's.
        """
        fence = self._fence
        lies_at, token = await _last(self._connection, fence.stream, fence.subject)
        if lies_at == fence.sequence:
            return False
        if token != self._tenure.token:
            raise Deposed(fence.stream)
        self._fence = replace(fence, sequence=lies_at)
        return True

    def _commands(self, window: Sequence[Outgoing], identity: str, inbox: str) -> Iterator[bytes]:
        for place, message in enumerate(window, 1):
            headers = {"Nats-Batch-Id": identity, "Nats-Batch-Sequence": str(place)}
            if place == 1:
                headers |= self._fence.headers
            is_last = place == len(window)
            if is_last:
                headers["Nats-Batch-Commit"] = "1"
            lines = header_lines(headers) + message.headers
            yield command(message.subject, inbox if is_last else "", lines, message.data)


def is_erased(stored: Stored) -> bool:
    """Whether a message says that what lay at its subject is erased."""
    return ERASED in stored.headers
