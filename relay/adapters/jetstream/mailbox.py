"""The node's own mailbox, read over the consumer its parent made: no delivery is lost unnoticed.

The consumer counts its deliveries. A gap in the count, seen in the next delivery or in an idle
heartbeat, means that messages went into a broken link: then the consumer is set back to what came
last, and whatever is delivered before it begins anew, with delivery 1, is passed over.

Each delivery says how many follow. The server says one too many now and then, when it is set back
while it is written to, and nothing tells the end of such mail: so it is asked for when none comes.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress

from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError

from relay.adapters.jetstream.connection import (
    Connection,
    JetStreamRefused,
    answer_control,
    checked,
    counts_in,
    is_control,
)
from relay.adapters.jetstream.delivery import DeliveryPosition, count_of, place_of
from relay.adapters.jetstream.records import hops_of
from relay.core.events import MailArrived
from relay.ports import Clock
from relay.shell.inbox import Inbox
from relay.waiting import happens
from schemas.content.carried import without_carried
from schemas.values import subjects
from schemas.values.identity import MailKey, NodePath
from schemas.values.wire import replace

RESET_SECONDS = 5.0
BEGIN_SECONDS = 2.0
"""How long after a reset its first delivery may take."""
SETTLE_SECONDS = 0.5
"""How long deliveries may be on the way when the consumer counts them as made."""

END_SECONDS = 1.0
"""How long what is said to follow may stay away before the consumer is asked if anything does."""

logger = logging.getLogger(__name__)


class Mailbox:
    """Takes deliveries, puts them in the inbox, acknowledges and resets.

    It listens from the first reading of a session on, until the link is lost: what was delivered
    before that reading began would only be delivered again.
    """

    def __init__(
        self,
        connection: Connection,
        path: NodePath,
        inbox: Inbox,
        clock: Clock,
        *,
        came: Callable[[], None],
        lost: Callable[[], None],
    ) -> None:
        """`came` is called for each message on the delivery subject."""
        self._connection = connection
        self._subject = subjects.deliveries(path.name)
        self._prefix = subjects.mail(path, "")
        self._inbox = inbox
        self._clock = clock
        self._came = came
        self._lost = lost
        self._resetting = asyncio.Lock()
        self._torn = asyncio.Event()
        self._begun = asyncio.Event()
        self._subscription: Subscription | None = None
        self._taking = False
        self._claimed = self._left = 0
        self._claim_made = asyncio.Event()
        self._deliveries = 0
        self._resume: int | None = None
        """The stream sequence to go on from; None: after what was acknowledged last."""
        # What lies before this came already from a consumer before the present one.
        self._repeated = 0
        self._accepted_at: float | None = None
        self._promised: int | None = None
        """How many messages the last reset is to bring; None: it was not answered."""
        self._reset_timeout: asyncio.Timeout | None = None
        self._reset_answered = asyncio.Event()
        self._reset_answered.set()
        self._unacknowledged: deque[tuple[int, str]] = deque()
        self._open_end: MailArrived | None = None
        """The last message, if it said that more follow."""
        self._end_opened = asyncio.Event()

    async def _listen(self) -> None:
        if self._subscription is not None:
            return
        try:
            self._subscription = await self._connection.subscribe(self._subject, self._delivered)
        except (NatsError, OSError) as error:
            logger.debug("the mailbox cannot be listened to: %s", error)
            self._lost()

    async def stop(self) -> None:
        """Take nothing more until the mailbox is read from somewhere: the link was lost."""
        subscription, self._subscription = self._subscription, None
        self._begun.clear()
        self._torn.clear()
        self._accepted_at = self._open_end = None
        if subscription is not None:
            with suppress(NatsError, OSError):
                await subscription.unsubscribe()

    async def _delivered(self, message: Msg) -> None:
        self._came()
        self._taking = True
        try:
            await self._take(message)
        except (NatsError, OSError) as error:
            logger.debug("flow control failed: %s", error)
            self._lost()
        finally:
            self._taking = False

    async def _take(self, message: Msg) -> None:
        if is_control(message):
            await answer_control(self._connection.client, message)
            if count_of((message.headers or {}).get("Nats-Last-Consumer", "0")) > self._deliveries:
                self._missing()
            return
        place = place_of(message.reply)
        if place is None:
            return
        if place.delivery == 1 and not self._begun.is_set():
            await self._reset_answered.wait()
        if not self._follows(place):
            self._missing()
            return
        await self._accept(message, place)

    def compare(self, delivered: int, left: int) -> None:
        """The consumer says that it has delivered so many, and what is left; see `audit`."""
        self._claimed, self._left = delivered, left
        self._claim_made.set()

    async def audit(self) -> None:
        """Look, without end, whether what the consumer says it delivered comes in.

        So too whether it goes on with what is left: one that asked in vain if it may, because the
        link broke, stands still until its next idle heartbeat.
        """
        while True:
            await self._claim_made.wait()
            self._claim_made.clear()
            while self._begun.is_set() and (self._deliveries < self._claimed or self._left):
                before, self._left = self._deliveries, 0
                await self._clock.sleep(SETTLE_SECONDS)
                if self._deliveries == before and not self._is_taking():
                    self._missing()

    def _follows(self, place: DeliveryPosition) -> bool:
        begun = self._begun.is_set()
        if place.delivery == 1 and (begun or self._begins(place)):
            # The answer to a reset, or a consumer made anew: it goes on without a gap from here.
            self._begun.set()
            # One made anew begins at the start of the mailbox, with what came already.
            self._repeated = self._resume or 0 if begun else 0
            if not begun:
                self._resume = None
            self._unacknowledged.clear()
            return True
        return begun and place.delivery <= self._deliveries + 1

    def _begins(self, place: DeliveryPosition) -> bool:
        """Whether this first delivery is the reset's, and was not on its way before.

        If slots were cleared just now it may seem not to be: then the reset is asked for again.
        """
        if self._promised is None:
            return False
        return place.sequence >= (self._resume or 0) and place.pending >= self._promised - 1

    async def _accept(self, message: Msg, place: DeliveryPosition) -> None:
        self._deliveries = place.delivery
        self._resume = max(self._resume or 0, place.sequence + 1)
        self._unacknowledged.append((place.sequence, message.reply))
        if place.sequence < self._repeated:
            if place.sequence + 1 == self._repeated or not place.pending:
                await self.acknowledge(place.sequence)
            return
        if not message.subject.startswith(self._prefix):
            logger.warning("mail on a strange subject: %s", message.subject)
            return
        key = MailKey(message.subject[len(self._prefix) :])
        data, carried = without_carried(message.data)
        hops, reading = hops_of(message.headers or {}), self._inbox.reading
        arrived = MailArrived(place.sequence, key, data, place.pending, reading, hops, carried)
        self._open_end = arrived if arrived.pending else None
        if arrived.pending:
            self._end_opened.set()
        await self._inbox.put(arrived)

    async def conclude(self, ask: Callable[[], Awaitable[tuple[int, int] | None]]) -> None:
        """Say of the last message, without end, that it was the last, if it said otherwise.

        `ask` tells how many deliveries the consumer has made and how many are left, if it can.
        """
        while True:
            await self._end_opened.wait()
            self._end_opened.clear()
            while (last := self._open_end) is not None:
                await self._clock.sleep(END_SECONDS)
                if self._open_end is last and not self._is_taking():
                    await self._conclude(last, await ask())

    async def _conclude(self, last: MailArrived, told: tuple[int, int] | None) -> None:
        if told is None or self._open_end is not last or not self._begun.is_set():
            return
        delivered, left = told
        if delivered != self._deliveries or self._is_taking():
            return
        if left:
            self.compare(delivered, left)
            return
        self._open_end = None
        await self._inbox.put(replace(last, pending=0))

    def _is_taking(self) -> bool:
        """Whether something that was delivered is not dealt with yet."""
        waiting = self._subscription is not None and self._subscription.pending_msgs
        return bool(waiting or self._taking)

    def _missing(self) -> None:
        """Messages are lost on the way, unless a reset is under way that brings them again."""
        if self._begun.is_set():
            self._begun.clear()
            self._accepted_at = None
            self._torn.set()
        elif self._accepted_at is not None and (
            self._clock.now().seconds >= self._accepted_at + BEGIN_SECONDS
        ):
            self._torn.set()

    async def mend(self) -> None:
        """Set the consumer back after each gap, without end."""
        while True:
            await self._torn.wait()
            self._torn.clear()
            async with self._resetting:
                if not self._begun.is_set():
                    await self._reset()

    def link_lost(self) -> None:
        """What is asked now will not be answered any more."""
        if self._reset_timeout is not None and not self._reset_timeout.expired():
            self._reset_timeout.reschedule(0)

    async def read_from(self, sequence: int) -> int:
        """Have everything from the sequence on delivered again; mail in the inbox is forgotten.

        Returns the number of the reading that begins.
        """
        async with self._resetting:
            # Deliveries of an earlier reset must not be taken for those of the next one.
            await happens(self._begun, BEGIN_SECONDS if self._accepted_at is not None else 0)
            self._resume = max(sequence, 1)
            self._open_end = None
            self._begun.clear()
            self._inbox.forget_mail()
            await self._reset()
            await self._listen()
            return self._inbox.reading

    async def _reset(self) -> None:
        self._reset_answered.clear()
        try:
            await self._ask_for_reset()
        finally:
            self._reset_answered.set()

    async def _ask_for_reset(self) -> None:
        self._accepted_at = self._promised = None
        self._deliveries = self._claimed = 0
        body = b"" if self._resume is None else json.dumps({"seq": self._resume}).encode()
        answer = await self._request_reset(body)
        if answer is None:
            self._lost()
            return
        try:
            (pending,) = counts_in("up.reset", checked("up.reset", answer), "num_pending")
            self._promised = pending
        except JetStreamRefused as error:
            logger.warning("the mailbox could not be read again: %s", error)
            self._lost()
            return
        # With nothing pending there is no delivery to wait for: the next one has the number 1.
        self._accepted_at = self._clock.now().seconds if pending else None
        if not pending:
            self._begun.set()

    async def _request_reset(self, body: bytes) -> Msg | None:
        self._reset_timeout = asyncio.timeout(RESET_SECONDS)
        try:
            async with self._reset_timeout:
                return await self._connection.request("up.reset", body, RESET_SECONDS)
        except TimeoutError:
            return None
        finally:
            self._reset_timeout = None

    async def acknowledge(self, sequence: int) -> None:
        """Acknowledge all deliveries up to the stream sequence; best effort."""
        reply = ""
        while self._unacknowledged and self._unacknowledged[0][0] <= sequence:
            _, reply = self._unacknowledged.popleft()
        if not reply:
            return
        try:
            await self._connection.client.publish(reply)
        except (NatsError, OSError) as error:
            logger.debug("an acknowledgement was lost: %s", error)
