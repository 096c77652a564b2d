"""One connection to the node's own nats-server, that comes back by itself and says when it does."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError
from nats.errors import NoRespondersError, SlowConsumerError

from relay.adapters.jetstream.backpressure_client import PATIENCE_SECONDS, PAUSE_SECONDS, close
from relay.adapters.jetstream.delivery import place_of
from relay.adapters.jetstream.reconnecting_client import (
    PING_SECONDS,
    PINGS_UNANSWERED_MAX,
    ReconnectingClient,
)
from relay.adapters.jetstream.server_floor import (
    ServerTooOld,
    refuse_old_server,
    server_id,
    server_version,
)
from relay.adapters.jetstream.server_url import connect_options
from relay.ports import BusBroken
from relay.waiting import happens
from schemas.values.codec import from_json
from schemas.values.refusals import CodecError

CONNECT_SECONDS = 30.0
RECONNECT_WAIT_SECONDS = 0.25
REQUEST_SECONDS, CLUSTER_ANSWER_SECONDS = 10.0, 2.0
NO_MESSAGE_FOUND, NO_STREAM = 10037, 10059
NO_SUITABLE_PEERS = 10005
"""Codes with which JetStream refuses what asks for something that is not there."""
PENDING_MESSAGES_MAX = 65_536
PENDING_BYTES_MAX = 64 * 1024 * 1024
"""Above the server's flow control window of 32 MiB, so that the window decides."""

_STATUS, _DESCRIPTION = "Status", "Description"

logger = logging.getLogger(__name__)


class JetStreamRefused(BusBroken):
    """The server refused a JetStream request; `code` is its own number of the reason."""

    def __init__(self, subject: str, code: int, description: str) -> None:
        super().__init__(f"{subject}: {description} ({code})")
        self.subject = subject
        self.code = code


class Connection:
    """A client as one account; callbacks tell of its loss and return.

    JetStream is asked again after `answer_seconds` without an answer: in a cluster nobody answers
    what was asked before its servers agreed on a leader.
    """

    def __init__(
        self,
        url: str,
        seed: str,
        name: str,
        inbox_prefix: str,
        answer_seconds: float = REQUEST_SECONDS,
    ) -> None:
        self._url = url
        self._seed = seed
        self._name = name
        self._inbox_prefix = inbox_prefix
        self._answer_seconds = answer_seconds
        self._connected = asyncio.Event()
        self._begun = False
        self.client = ReconnectingClient()
        self.when_lost: list[Callable[[], None]] = []
        self.when_back: list[Callable[[], None]] = []
        self.when_dropped: list[Callable[[Subscription], None]] = []
        """The subscription's queue was full, and a message of it was dropped."""

    async def open(self) -> None:
        """Connect; raises BusBroken if the server does not let us in, or ServerTooOld."""
        self._begun = True
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await self.client.connect(
                    **connect_options(self._url),
                    nkeys_seed_str=self._seed,
                    name=self._name,
                    inbox_prefix=self._inbox_prefix,
                    max_reconnect_attempts=-1,
                    reconnect_time_wait=RECONNECT_WAIT_SECONDS,  # type: ignore[arg-type] # sleeps so long
                    ping_interval=PING_SECONDS,
                    max_outstanding_pings=PINGS_UNANSWERED_MAX,
                    error_cb=self._failed,
                    disconnected_cb=self._lost,
                    reconnected_cb=self._back,
                    closed_cb=self._lost,
                )
        except (NatsError, OSError, TimeoutError) as error:
            await self.close()
            # A name that cannot be looked up ends as a plain TimeoutError, which says nothing.
            why = str(error) or "nothing answers there in time"
            raise BusBroken(f"{self._name} cannot connect to {self._url}: {why}") from error
        try:
            refuse_old_server(self.client, self._url)
        except ServerTooOld:
            await self.close()
            raise
        self._connected.set()

    @property
    def server_version(self) -> str:
        """Of the server that it is connected to, or was last, such as 2.15.1."""
        return server_version(self.client)

    async def close(self) -> None:
        self.when_lost.clear()
        self.when_back.clear()
        self.when_dropped.clear()
        # A client that never began to connect cannot be closed, says the library.
        if self._begun and not self.client.is_closed:
            await close(self.client)

    async def ready(self) -> None:
        """Wait for the connection, as long as a request may take; raises BusBroken."""
        if not self._connected.is_set() and not await happens(self._connected, REQUEST_SECONDS):
            raise BusBroken(f"{self._name} has lost the server at {self._url}")

    @property
    def has_others(self) -> bool:
        """Whether there are several servers to go on at."""
        return "," in self._url

    @property
    def server_id(self) -> str:
        """Of the server that it is connected to, or was last; each start of one has another."""
        return server_id(self.client)

    async def move_on(self) -> None:
        """Go on at the next one of its servers; `when_lost` and `when_back` tell of it."""
        await self.client.force_reconnect()

    def read_anew(self) -> None:
        """Have who reads over it begin again, as if it had come back: another server ended."""
        for call in self.when_back:
            call()

    async def subscribe(self, subject: str, take: Callable[[Msg], Awaitable[None]]) -> Subscription:
        """Have each message taken; what waits for that lies within limits that nothing reaches.

        Raises NatsError or OSError.
        """
        return await self.client.subscribe(
            subject,
            cb=take,
            pending_msgs_limit=PENDING_MESSAGES_MAX,
            pending_bytes_limit=PENDING_BYTES_MAX,
        )

    async def request(
        self, subject: str, data: bytes = b"", seconds: float = REQUEST_SECONDS
    ) -> Msg | None:
        """The answer, or None: nobody there, or none in time."""
        try:
            return await self.client.request(subject, data, timeout=seconds)
        except (NoRespondersError, TimeoutError):
            return None
        except (NatsError, OSError) as error:
            logger.debug("%s: request on %s: %s", self._name, subject, error)
            return None

    async def api(self, verb: str, seconds: float | None = None, **body: Any) -> dict[str, Any]:
        """Ask JetStream; raises JetStreamRefused if it refuses, BusBroken if it does not answer."""
        await self.ready()
        data = json.dumps(body).encode()
        seconds = self._answer_seconds if seconds is None else seconds
        patience = max(PATIENCE_SECONDS, REQUEST_SECONDS - self._answer_seconds)
        until = asyncio.get_running_loop().time() + patience
        answer = await self.request(f"$JS.API.{verb}", data, seconds)
        while answer is None and asyncio.get_running_loop().time() < until:
            # A server that reloads takes no request for a moment, and says so at once.
            await asyncio.sleep(PAUSE_SECONDS)  # noqa: TID251 - no decision hangs on it
            answer = await self.request(f"$JS.API.{verb}", data, seconds)
        return self._answered(verb, answer)

    async def api_once(self, verb: str, seconds: float) -> dict[str, Any]:
        """As `api`, without asking again."""
        await self.ready()
        return self._answered(verb, await self.request(f"$JS.API.{verb}", b"{}", seconds))

    def _answered(self, verb: str, answer: Msg | None) -> dict[str, Any]:
        if answer is None:
            raise BusBroken(f"{self._name}: JetStream at {self._url} does not answer {verb}")
        return checked(verb, answer)

    async def api_or_none(self, verb: str, missing: int, **body: Any) -> dict[str, Any] | None:
        """As `api`; None if it refuses with the code of what is `missing`."""
        try:
            return await self.api(verb, **body)
        except JetStreamRefused as error:
            if error.code != missing:
                raise
            return None

    async def _failed(self, error: Exception) -> None:
        logger.debug("%s: %r", self._name, error)
        if isinstance(error, SlowConsumerError):
            for call in self.when_dropped:
                call(error.sub)

    async def _lost(self) -> None:
        self._connected.clear()
        for call in self.when_lost:
            call()

    async def _back(self) -> None:
        try:
            refuse_old_server(self.client, self._url)
        except ServerTooOld as error:
            # What is asked for next fails, and the next run finds out why.
            logger.error("%s", error)  # noqa: TRY400 - it says all
            await close(self.client)
            return
        self._connected.set()
        self.read_anew()


def checked(verb: str, answer: Msg) -> dict[str, Any]:
    """The fields of an answer of JetStream's; raises JetStreamRefused."""
    try:
        fields = from_json(answer.data)
    except CodecError as error:
        raise JetStreamRefused(verb, 0, "the answer is not JSON") from error
    if not isinstance(fields, dict):
        raise JetStreamRefused(verb, 0, "the answer is no object")
    failure = fields.get("error")
    if isinstance(failure, dict):
        code = failure.get("err_code", 0)
        said = str(failure.get("description", ""))
        raise JetStreamRefused(verb, code if isinstance(code, int) else 0, said)
    if failure:
        raise JetStreamRefused(verb, 0, "the answer is an error that says nothing")
    return fields


def counts_in(verb: str, fields: Any, *names: str) -> tuple[int, ...]:
    """The counts of these names in an answer, which may be anyone's; raises JetStreamRefused."""
    found = [fields.get(name) if isinstance(fields, dict) else None for name in names]
    counts = [count for count in found if type(count) is int and 0 <= count < 2**64]
    if len(counts) != len(names):
        raise JetStreamRefused(verb, 0, f"the answer has no count of {', '.join(names)}")
    return tuple(counts)


def links_of(message: Msg) -> int:
    """How many leaf links the server says an account has; raises JetStreamRefused."""
    (links,) = counts_in(message.subject, checked(message.subject, message), "leafnodes")
    return links


def status_of(message: Msg) -> str:
    """The status that a message carries instead of data ("100", "404", "503"), or ""."""
    return (message.headers or {}).get(_STATUS, "")


def is_control(message: Msg) -> bool:
    """Whether this is an idle heartbeat or a flow control request, no message of the stream.

    A message of the stream may have the same header, and has an acknowledgement subject.
    """
    return not message.data and status_of(message) == "100" and place_of(message.reply) is None


async def answer_control(client: Client, message: Msg) -> None:
    """Let the server's flow control go on, if that is what it waits for."""
    stalled = (message.headers or {}).get("Nats-Consumer-Stalled", "")
    subject = message.reply or stalled
    if subject:
        await client.publish(subject)
