"""Reading a stream of one's own in order and without a gap, whatever happens to the consumer.

The consumer is ephemeral. It is made anew, after the last message taken, when a delivery is
missing, when its idle heartbeats stay away, and when the server comes back.

A message that is damaged on the disk counts as pending for ever and is never delivered. So who
waits for more while the server is idle asks whether there is any. Where its length is damaged the
server cuts the file there as it first reads it, and then counts nothing behind the cut as pending:
whether a consumer learns of it is a matter of chance. Its index goes on to name the subjects that
were cut off, in later runs of the server, too: what is written under one of them it acknowledges,
and drops in place of what it believes to be there. So who reads to the end asks for that, too.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError

from relay.adapters.jetstream.connection import (
    NO_MESSAGE_FOUND,
    Connection,
    JetStreamRefused,
    answer_control,
    is_control,
)
from relay.adapters.jetstream.delivery import count_of, place_of
from relay.ports import BusBroken, Clock
from relay.waiting import happens

HEARTBEAT_SECONDS = 5
SILENCE_SECONDS = 12.0
"""Two heartbeats missing."""
AGAIN_SECONDS = 0.25
BEHIND_SECONDS = 30.0
"""So long a server may be behind until it is said that it is waited for."""

_STALLED = "Nats-Consumer-Stalled"
_SECOND = 1_000_000_000
_NO_HEADERS: Mapping[str, str] = {}

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Stored:
    """A message of a stream."""

    subject: str
    data: bytes
    headers: Mapping[str, str]
    sequence: int
    # When the stream took it, ms since 1970.
    time_ms: int = 0


class StreamDamaged(BusBroken):
    """Some of what a stream holds cannot be read; all else was."""

    def __init__(self, stream: str, count: int, server: str = "") -> None:
        super().__init__(
            f"{count} of what the stream {stream} held is damaged on the disk"
            f"{f' of {server}' if server else ''}, and lost"
        )
        self.stream = stream
        # The member of a cluster at which it was read.
        self.server = server


Take = Callable[[Stored], Awaitable[None]]


class StreamReader:
    """Reads a stream from a message on; `take` is awaited, and so slows the server."""

    def __init__(
        self,
        connection: Connection,
        clock: Clock,
        stream: str,
        *,
        headers_only: bool = False,
        filters: Sequence[str] = (),
        first: int = 1,
        through: int = 0,
    ) -> None:
        """`read_all` goes on until the message `through` came, which has to lie there.

        A consumer may be at a server that is behind the one that took the last message.
        """
        self._connection = connection
        self._clock = clock
        self._stream = stream
        self._headers_only = headers_only
        # It reads only messages on these subjects; without any all.
        self._filters = list(filters)
        self._next_sequence = first
        self._through = through
        self._consumer = self._server = ""
        self._deliveries = 0
        self._taking = self._dropped = False
        self._heard = 0.0
        self._failure: Exception | None = None
        self._torn = asyncio.Event()
        self._at_end = self._stops_at_end = False
        # Its server has told all that it has, and `through` is not among it.
        self._is_behind = False
        # How many messages are still to come, by the last one that came.
        self._pending = self._damaged = 0

    @property
    def next_sequence(self) -> int:
        """Up to this one, and without it, all was taken."""
        return self._next_sequence

    @property
    def taking(self) -> bool:
        """Whether what came last is not taken yet."""
        return self._taking

    async def follow(self, take: Take) -> None:
        """Read without end."""
        when_back = self._connection.when_back
        when_back.append(self._torn.set)
        try:
            while True:
                try:
                    await self._read(take)
                except BusBroken as error:
                    logger.debug("reading %s: %s", self._stream, error)
                await self._clock.sleep(AGAIN_SECONDS)
        finally:
            if self._torn.set in when_back:
                when_back.remove(self._torn.set)

    async def read_all(self, take: Take) -> None:
        """Read what the stream holds now.

        Raises BusBroken if the server does not deliver it, or if `take` raises ValueError, and at
        the end StreamDamaged if some of it cannot be read.
        """
        self._stops_at_end = True
        until = self._clock.now().seconds + BEHIND_SECONDS
        while not self._ended():
            before = self._next_sequence
            await self._read(take)
            if self._failure is not None:
                raise BusBroken(f"the stream {self._stream} is damaged") from self._failure
            if self._is_behind and self._clock.now().seconds >= until:
                until += BEHIND_SECONDS
                logger.warning(
                    "%s has %d of %d messages of the stream %s: waiting for it to catch up",
                    self._server or "the server",
                    self._next_sequence - 1,
                    self._through,
                    self._stream,
                )
            elif not self._ended() and not self._is_behind and self._next_sequence == before:
                raise BusBroken(f"the stream {self._stream} does not deliver what it holds")
        await self._delete_consumer()
        damaged = self._damaged or await self._cut_off()
        if damaged:
            raise StreamDamaged(self._stream, damaged, self._server)

    async def _cut_off(self) -> int:
        """Of how many subjects the server has nothing that it goes on to name."""
        if self._server:
            return 0  # Other members have it, and fill this one.
        state = (await self._connection.api(f"STREAM.INFO.{self._stream}"))["state"]
        return max(0, int(state.get("num_subjects", 0)) - int(state["messages"]))

    def _ended(self) -> bool:
        return self._at_end

    async def _read(self, take: Take) -> None:
        client = self._connection.client
        await self._connection.ready()
        self._torn.clear()
        self._is_behind = False
        self._deliveries = 0
        self._heard = self._clock.now().seconds
        inbox = client.new_inbox()

        subscription: Subscription | None = None
        self._dropped = False

        async def arrived(message: Msg) -> None:
            await self._arrived(message, take)
            if self._dropped and subscription is not None and not subscription.pending_msgs:
                self._torn.set()

        def dropped(where: Subscription) -> None:
            self._dropped = self._dropped or where is subscription

        self._connection.when_dropped.append(dropped)
        try:
            subscription = await self._connection.subscribe(inbox, arrived)
            await self._make_consumer(inbox)
            await self._until_torn()
        except (NatsError, OSError) as error:
            raise BusBroken(f"the stream {self._stream} cannot be read: {error}") from error
        finally:
            if dropped in self._connection.when_dropped:
                self._connection.when_dropped.remove(dropped)
            if subscription is not None and not client.is_closed:
                await self._stop(subscription)

    async def _stop(self, subscription: Subscription) -> None:
        """Without interest the server deletes the consumer."""
        try:
            await subscription.unsubscribe()
        except (NatsError, OSError) as error:
            logger.debug("leaving %s: %s", self._stream, error)

    async def _delete_consumer(self) -> None:
        """Make room at once: some streams have one consumer at most."""
        try:
            await self._connection.api(f"CONSUMER.DELETE.{self._stream}.{self._consumer}")
        except BusBroken as error:
            logger.debug("leaving %s: %s", self._stream, error)

    async def _make_consumer(self, inbox: str) -> None:
        config: dict[str, Any] = {
            "deliver_subject": inbox,
            "deliver_policy": "by_start_sequence",
            "opt_start_seq": self._next_sequence,
            "ack_policy": "none",
            "max_deliver": 1,
            "mem_storage": True,
            "num_replicas": 1,
            "flow_control": True,
            "idle_heartbeat": HEARTBEAT_SECONDS * _SECOND,
            "headers_only": self._headers_only,
        }
        if self._filters:
            config["filter_subjects"] = self._filters
        made = await self._connection.api(
            f"CONSUMER.CREATE.{self._stream}", stream_name=self._stream, config=config
        )
        self._consumer = str(made["name"])
        self._server = str((made.get("cluster") or {}).get("leader") or "")
        # Messages delivered by now count as pending no more, but as delivered.
        if not self._deliveries:
            self._pending = int(made["num_pending"])
        if made["num_pending"] == 0 and made["delivered"]["consumer_seq"] == 0:
            self._end_reached()

    async def _arrived(self, message: Msg, take: Take) -> None:
        self._heard = self._clock.now().seconds
        if is_control(message):
            await self._heartbeat(message)
            return
        place = place_of(message.reply)
        if place is None or self._torn.is_set():
            return
        if place.delivery != self._deliveries + 1:
            self._torn.set()
            return
        stored = Stored(
            message.subject,
            message.data,
            message.headers or _NO_HEADERS,
            place.sequence,
            place.time_ms,
        )
        self._taking = True
        try:
            await take(stored)
        except (BusBroken, ValueError) as error:
            self._failure = error
            self._torn.set()
            return
        finally:
            self._taking = False
        self._deliveries = place.delivery
        self._next_sequence = place.sequence + 1
        self._pending = place.pending
        if place.pending == 0:
            self._end_reached()

    def _end_reached(self) -> None:
        if self._next_sequence <= self._through:
            return
        self._at_end = True
        if self._stops_at_end:
            self._torn.set()

    async def _heartbeat(self, message: Msg) -> None:
        await answer_control(self._connection.client, message)
        headers = message.headers or _NO_HEADERS
        if count_of(headers.get("Nats-Last-Consumer", "0")) > self._deliveries:
            self._torn.set()
        elif self._pending and self._stops_at_end and _STALLED not in headers:
            await self._look_for_more()
        elif not self._pending and self._stops_at_end and self._next_sequence <= self._through:
            # Another consumer may be at a server that has it.
            self._is_behind = True
            self._torn.set()

    async def _look_for_more(self) -> None:
        """The server is idle though more is to come: end, unless something that can be read is."""
        try:
            await self._connection.api(
                f"STREAM.MSG.GET.{self._stream}", seq=self._next_sequence, next_by_subj=">"
            )
        except JetStreamRefused as error:
            if error.code == NO_MESSAGE_FOUND:
                self._damaged = self._pending
                self._end_reached()
        except BusBroken as error:
            logger.debug("reading %s: %s", self._stream, error)
        else:
            self._torn.set()

    async def _until_torn(self) -> None:
        while not await happens(self._torn, SILENCE_SECONDS):
            silent = self._clock.now().seconds - self._heard
            if silent >= SILENCE_SECONDS and not self._taking:
                return
