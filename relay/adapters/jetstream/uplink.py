"""The link to the parent: whether it is open, what goes up over it, and content that comes down."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from nats.aio.msg import Msg

from relay.adapters.jetstream.connection import (
    Connection,
    JetStreamRefused,
    checked,
    counts_in,
    links_of,
    status_of,
)
from relay.adapters.jetstream.mailbox import Mailbox
from relay.adapters.jetstream.publish import Outgoing, Publisher
from relay.core.events import LinkChanged, Welcomed
from relay.ports import BusBroken, Clock, Dice
from relay.shell.inbox import Inbox
from relay.waiting import happens
from schemas.reports.link import Welcome
from schemas.reports.reports import PART_MAX_BYTES
from schemas.values import subjects
from schemas.values.identity import ContentHash, NodePath
from schemas.values.refusals import RecordRefused
from schemas.values.wire import decode

PROBE_SECONDS = 2.0
BACKOFF_SECONDS_MIN, BACKOFF_SECONDS_MAX = 0.25, 5.0
SPREAD_SECONDS_MAX = 2.0
QUIET_SECONDS = 75.0
"""Two of the mail consumer's idle heartbeats missing."""
LINKS_SUBJECT = "$SYS.ACCOUNT.UPLINK.SERVER.CONNS"
WINDOW_BYTES = 64 * 1024
"""Small enough that a slow link brings the answer in time."""
BLOB_SECONDS = 60.0
BLOB_ASKS, BLOB_AGAIN_SECONDS = 3, 2.0
MOVE_ON_SECONDS = 3.0
"""So long the parent is looked for by the link of one server, where the node has several."""
OVERDUE_SECONDS = 2.0
"""An answer that is out for so long may be lost: something else is asked, to see."""

logger = logging.getLogger(__name__)


class Unheard(Exception):
    """The parent did not answer, so nothing is known."""


class Uplink:
    """What a node says to its parent and hears from it, as account UPLINK of its own server."""

    def __init__(
        self,
        connection: Connection,
        path: NodePath,
        inbox: Inbox,
        clock: Clock,
        dice: Dice,
        system: Connection | None = None,
    ) -> None:
        self._connection = connection
        self._path = path
        self._inbox = inbox
        self._clock = clock
        self._dice = dice
        self._publisher = Publisher(connection, WINDOW_BYTES, windows_at_once=1)
        self._open = False
        self._lost = asyncio.Event()
        self._heard = 0.0
        self._waiting: set[asyncio.Timeout] = set()
        self._loading: set[asyncio.Timeout] = set()
        """Those for content that wait."""
        self._loads_begun = asyncio.Event()
        self._link_news = asyncio.Event()
        self.mailbox = Mailbox(connection, path, inbox, clock, came=self._mail_came, lost=self.lost)
        self._system = system
        self._blob_asks = 1
        self.is_silent = False
        """Whether nothing answered when the parent was asked last, be it to refuse."""

    @property
    def linked(self) -> bool:
        """Whether the parent answers."""
        return self._open and not self._lost.is_set()

    async def start(self) -> None:
        await self._publisher.start()
        self._connection.when_lost.append(self.lost)
        await self._connection.subscribe(subjects.welcome(self._path.name), self._welcome_came)
        if self._system is not None:
            await self._system.client.subscribe(LINKS_SUBJECT, cb=self._links_counted)

    async def run(self) -> None:
        """Watch the link and the deliveries, without end."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch(), name=f"link:{self._path}")
            group.create_task(self._find_overdue(), name=f"overdue:{self._path}")
            group.create_task(self.mailbox.mend(), name=f"mailbox:{self._path}")
            group.create_task(self.mailbox.audit(), name=f"audit:{self._path}")
            group.create_task(self.mailbox.conclude(self._info), name=f"end:{self._path}")

    def lost(self) -> None:
        """Something was not answered: LinkChanged follows, and then the search for the parent."""
        self._lost.set()
        self._publisher.give_up()
        self.mailbox.link_lost()
        while self._waiting:
            limit = self._waiting.pop()
            if not limit.expired():
                limit.reschedule(0)

    async def send(self, values: Mapping[str, bytes]) -> bool:
        """Put values under subjects of this node's at the parent; False if the link is lost."""
        if not self.linked:
            return False
        fitting = {at: data for at, data in values.items() if len(data) <= PART_MAX_BYTES}
        for subject in values.keys() - fitting.keys():
            # The parent's stream refuses it, each time, as if the link were broken.
            logger.warning("%s is too long to be said", subject)
        try:
            await self._publisher.publish([Outgoing(*value) for value in fitting.items()])
        except BusBroken as error:
            logger.debug("the parent of %s did not answer: %s", self._path, error)
            self.lost()
            return False
        return True

    async def load_blob(self, address: ContentHash) -> bytes | None:
        """A stored value from the parent; None if it says that it has none.

        Raises Unheard if it does not answer. A server of several may answer that is behind, so it
        is asked again then.
        """
        for _ in range(self._blob_asks - 1):
            value = await self._load_blob(address)
            if value is not None:
                return value
            await self._clock.sleep(BLOB_AGAIN_SECONDS)
        return await self._load_blob(address)

    async def _load_blob(self, address: ContentHash) -> bytes | None:
        until = self._clock.now().seconds + BLOB_SECONDS
        while self.linked and (left := until - self._clock.now().seconds) > 0:
            limit = asyncio.timeout(left)
            try:
                async with limit:
                    self._waiting.add(limit)
                    self._loading.add(limit)
                    self._loads_begun.set()
                    answer = await self._connection.request(f"up.blob.{address}", seconds=left)
            except TimeoutError:
                continue
            finally:
                self._waiting.discard(limit)
                self._loading.discard(limit)
            if answer is None or status_of(answer).startswith("5"):
                break
            return blob_value(answer)
        raise Unheard

    async def _find_overdue(self) -> None:
        """Have content asked for anew, without end, if its answer was lost while the link stayed.

        A parent's server that reloads loses some. All answers come in order over one link, however
        slow it is: what was asked before something that is answered now will not come any more.
        """
        while True:
            await self._loads_begun.wait()
            self._loads_begun.clear()
            while before := set(self._loading):
                await self._clock.sleep(OVERDUE_SECONDS)
                overdue = before & self._loading
                if overdue and await self._ask("up.info", BLOB_SECONDS) is not None:
                    for limit in overdue & self._loading:
                        if not limit.expired():
                            limit.reschedule(0)

    async def ask(self, subject: str, seconds: float, data: bytes = b"") -> Msg | None:
        """The parent's answer to what is no part of the session; None if there is none."""
        return await self._ask(subject, seconds, data) if self.linked else None

    async def _ask(self, subject: str, seconds: float, data: bytes = b"") -> Msg | None:
        """The parent's answer; None if it has none in time, or the link is lost meanwhile."""
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                self._waiting.add(limit)
                return await self._connection.request(subject, data, seconds)
        except TimeoutError:
            return None
        finally:
            self._waiting.discard(limit)

    async def _watch(self) -> None:
        lost_at: float | None = None
        while True:
            await self._find_parent()
            self._lost.clear()
            if lost_at is not None and await self._lost_in_turn(lost_at):
                continue
            self._open = True
            await self._inbox.put(LinkChanged(up=True))
            await self._until_lost()
            self._open = False
            lost_at = self._clock.now().seconds
            await self.mailbox.stop()
            await self._inbox.put(LinkChanged(up=False))

    async def _lost_in_turn(self, lost_at: float) -> bool:
        """Spread those that lost the same parent; whether the link is lost again meanwhile.

        Who was away for a moment comes back in a moment, and a first start waits for nothing.
        """
        away = self._clock.now().seconds - lost_at
        return await happens(self._lost, min(away / 4, SPREAD_SECONDS_MAX) * self._dice.fraction())

    async def _find_parent(self) -> None:
        delay = BACKOFF_SECONDS_MIN
        move_on_at = self._clock.now().seconds + MOVE_ON_SECONDS
        while True:
            # Before the question: news that come while nobody answers it are why to ask again.
            self._link_news.clear()
            if await self._probe():
                return
            if self._connection.has_others and self._clock.now().seconds > move_on_at:
                # Only a server that has a link itself passes on what its clients ask the parent.
                await self._connection.move_on()
                move_on_at = self._clock.now().seconds + MOVE_ON_SECONDS
            came = await happens(self._link_news, delay * (0.5 + self._dice.fraction() / 2))
            delay = BACKOFF_SECONDS_MIN if came else min(2 * delay, BACKOFF_SECONDS_MAX)

    async def _until_lost(self) -> None:
        while not await happens(self._lost, QUIET_SECONDS):
            quiet = self._clock.now().seconds - self._heard
            if quiet >= QUIET_SECONDS and not await self._probe():
                return

    async def _probe(self) -> bool:
        """Whether the parent answers, and has a mailbox for this node."""
        if (info := await self._info()) is None:
            return False
        self.mailbox.compare(*info)
        return True

    async def _info(self) -> tuple[int, int] | None:
        """How many deliveries of the mailbox there were, how many are left, if the parent says."""
        asked_at = self._clock.now().seconds
        answer = await self._ask("up.info", PROBE_SECONDS)
        # That there is no link the own server says at once.
        waited = self._clock.now().seconds - asked_at
        self.is_silent = answer is None and waited > PROBE_SECONDS / 2
        if answer is None:
            return None
        try:
            delivered, left, is_of_cluster = mailbox_info(answer)
        except JetStreamRefused as error:
            logger.debug("the parent of %s has no mailbox for it: %s", self._path, error)
            return None
        self._blob_asks = BLOB_ASKS if is_of_cluster else 1
        return delivered, left

    def _mail_came(self) -> None:
        self._heard = self._clock.now().seconds

    async def _links_counted(self, message: Msg) -> None:
        """A server says how many leaf links the account UPLINK has there now."""
        if self._connection.has_others and self._connection.server_id.encode() not in message.data:
            return
        try:
            links = links_of(message)
        except JetStreamRefused as error:
            logger.warning("%s: an unreadable count of links: %s", self._path, error)
            return
        if links:
            self._link_news.set()
        else:
            self.lost()

    async def _welcome_came(self, message: Msg) -> None:
        try:
            welcome = decode(Welcome, message.data)
        except RecordRefused as error:
            logger.warning("%s: the parent sent an unreadable welcome: %s", self._path, error)
            return
        await self._inbox.put(Welcomed(welcome))


def mailbox_info(answer: Msg) -> tuple[int, int, bool]:
    """How many deliveries of the mailbox there were, how many are left; raises JetStreamRefused.

    And whether the parent's server is one of several: a server alone says nothing of a cluster.
    """
    info = checked("up.info", answer)
    (delivered,) = counts_in("up.info", info.get("delivered"), "consumer_seq")
    (left,) = counts_in("up.info", info, "num_pending")
    return delivered, left, bool(info.get("cluster"))


def blob_value(answer: Msg | None) -> bytes | None:
    """What a direct get answered; None if there is no such value."""
    if answer is None or status_of(answer) or not answer.data:
        return None
    return answer.data
