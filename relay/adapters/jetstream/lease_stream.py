"""The lease of a node's members in a stream of their cluster's memory, and who keeps it renewed."""

from __future__ import annotations

import asyncio
import json
import logging
from base64 import b64decode
from collections.abc import Callable

from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.errors import NoRespondersError

from relay.adapters.jetstream.connection import (
    NO_MESSAGE_FOUND,
    NO_STREAM,
    NO_SUITABLE_PEERS,
    Connection,
    JetStreamRefused,
    checked,
    counts_in,
)
from relay.adapters.jetstream.jetstream_leader import PATIENT_SECONDS, answer_seconds
from relay.adapters.jetstream.member_presence import ACTIVE, CAME, HEARD, ROLE, MemberPresence
from relay.adapters.jetstream.publish import EXPECTED_SEQUENCE, EXPECTED_SUBJECT, WRONG_SEQUENCES
from relay.members.lease import RENEW_SECONDS, LeaseNote, LeaseSeen, LeaseWrite, MemberLease
from relay.ports import BusBroken, Clock
from schemas.values import subjects
from schemas.values.codec import from_json
from schemas.values.identity import NodePath

STREAM = "LEASE"
ANSWER_SECONDS, ELECTION_ANSWER_SECONDS = PATIENT_SECONDS, 0.5
UNANSWERED_SECONDS = 0.2
"""Until the next renewal where one was not answered; without a leader that is told at once."""
ASK_SECONDS = 1.0
"""How often the other members are asked, one of which may be gone and waited for in vain."""
WEDGED_SECONDS = 18.0
"""So long without an answer is longer than an election takes."""
NOTES_MAX = 64
REFUSALS_MAX = 5
"""So often its placement at all members is tried before one of them is taken to be away."""

logger = logging.getLogger(__name__)


class LeaseStream:
    """The stream in which the lease of one node lies; it is in memory, and in no backup."""

    def __init__(self, connection: Connection, path: NodePath, replicas: int) -> None:
        self._connection = connection
        self._path = path
        self._replicas = replicas
        self._refusals = 0

    async def look(self, seconds: float = ANSWER_SECONDS) -> LeaseSeen | None:
        """What the stream's leader holds; None if none answered in time.

        The stream is made if there is none: a cluster that lost its memory may have lost it, too.
        """
        wanted = {"last_by_subj": subjects.lease(self._path, "*")}
        subject = f"$JS.API.STREAM.MSG.GET.{STREAM}"
        answer = await self._request(subject, json.dumps(wanted).encode(), seconds=seconds)
        if answer is None:
            return None
        try:
            message = checked(subject, answer)["message"]
            (sequence,) = counts_in(subject, message, "seq")
            return LeaseSeen(sequence, _note(b64decode(message["data"])))
        except JetStreamRefused as error:
            if error.code == NO_STREAM:
                await self._make()
            return LeaseSeen() if error.code == NO_MESSAGE_FOUND else None
        except (ValueError, KeyError, TypeError) as error:
            logger.warning("the lease of %s cannot be read: %s", self._path, error)
            return None

    async def put(self, write: LeaseWrite) -> int | LeaseSeen | None:
        """Where the note lies now; what lies there if that is another; None if it is not known."""
        subject = subjects.lease(self._path, write.note.mark)
        headers = {EXPECTED_SEQUENCE: str(write.expected)}
        if not write.expected:
            headers[EXPECTED_SUBJECT] = subjects.lease(self._path, "*")
        answer = await self._request(subject, _encoded(write.note), headers)
        if answer is None:
            return None
        try:
            (sequence,) = counts_in(subject, checked(subject, answer), "seq")
        except JetStreamRefused as error:
            return await self.look() if error.code in WRONG_SEQUENCES else None
        return sequence

    async def mend(self) -> None:
        """Delete the stream if its servers agree on no leader, so that it is made anew.

        A server that was started anew has an empty memory, and its vote does not count until it
        has caught up: if another one goes before that, the two that are left elect nobody. What is
        deleted is nobody's loss: whoever held the lease cannot have renewed it for long.
        """
        subject = f"$JS.API.STREAM.INFO.{STREAM}"
        answer = await self._request(subject, b"")
        try:
            cluster = checked(subject, answer).get("cluster") if answer is not None else None
        except JetStreamRefused as error:
            logger.debug("the lease of %s: %s", self._path, error)
            return
        if cluster is not None and not cluster.get("leader"):
            logger.warning("the lease of %s is made anew: its stream has no leader", self._path)
            await self._request(f"$JS.API.STREAM.DELETE.{STREAM}", b"")

    async def _make(self) -> None:
        """Have the stream made; whether it is shows the next look.

        With one of three away it is placed at two, or nobody could be active: both are needed then.
        A new leader may not know all members yet, so that is not done at once.
        """
        is_one_away = self._refusals >= REFUSALS_MAX and self._replicas > 1
        answer = await self._request(*self._wish("CREATE", self._replicas - is_one_away))
        try:
            if answer is not None:
                checked(STREAM, answer)
        except JetStreamRefused as error:
            self._refusals += error.code == NO_SUITABLE_PEERS

    async def widen(self) -> None:
        """Have it at all servers, if one of them was away as it was made and is back."""
        subject = f"$JS.API.STREAM.INFO.{STREAM}"
        answer = await self._request(subject, b"")
        try:
            replicas = (
                checked(subject, answer)["config"]["num_replicas"] if answer is not None else 0
            )
        except (JetStreamRefused, KeyError, TypeError) as error:
            logger.debug("the lease of %s: %s", self._path, error)
            return
        if 0 < replicas < self._replicas:
            await self._request(*self._wish("UPDATE", self._replicas))

    def _wish(self, verb: str, replicas: int) -> tuple[str, bytes]:
        config = {
            "name": STREAM,
            "subjects": [subjects.lease(self._path, "*")],
            "storage": "memory",
            "num_replicas": replicas,
            "max_msgs_per_subject": 1,
            "max_msgs": NOTES_MAX,
            "discard": "old",
        }
        return f"$JS.API.STREAM.{verb}.{STREAM}", json.dumps(config).encode()

    async def _request(
        self,
        subject: str,
        data: bytes,
        headers: dict[str, str] | None = None,
        seconds: float = ANSWER_SECONDS,
    ) -> Msg | None:
        client = self._connection.client
        try:
            return await client.request(subject, data, timeout=seconds, headers=headers)
        except (NoRespondersError, TimeoutError):
            return None
        except (NatsError, OSError) as error:
            logger.debug("the lease of %s: %s", self._path, error)
            return None


class LeaseKeeper:
    """Takes the lease for one run of a member, and renews it; one hold ends before the next."""

    def __init__(
        self,
        stream: LeaseStream,
        lease: MemberLease,
        clock: Clock,
        presence: MemberPresence,
        why_others: Callable[[], str] = lambda: "",
    ) -> None:
        """`why_others` says why another member is to take it as long as one may; "" if none is."""
        self.lease = lease
        self._why_others = why_others
        self._stream = stream
        self._clock = clock
        self._presence, self._hindrance = presence, ""
        presence.when_told = self._hear
        self._answered_at, self._asked_at = self._now(), float("-inf")
        # Looks since one was answered.
        self._unanswered = 0
        self._wanted, self._renewed = asyncio.Event(), asyncio.Event()

    async def take(self) -> None:
        """Wait until the lease may be taken, and take it."""
        lease = self.lease
        while not lease.holds(self._now()):
            began = self._now()
            await self._step()
            if not lease.holds(self._now()):
                await self._clock.sleep(max(0.0, began + lease.look_seconds - self._now()))

    async def keep(self) -> None:
        """Renew it each second, until it is lost."""
        try:
            await self._keep()
        finally:
            # Whoever waits for a renewal finds that it is lost.
            self._tell_renewed()

    async def _keep(self) -> None:
        lease = self.lease
        while not lease.lost_if_over(self._now()):
            began = self._now()
            try:
                async with asyncio.timeout(lease.seconds_left(began)):
                    self._wanted.clear()
                    is_answered = await self._put(lease.write(began))
                    if not lease.holds(self._now()):
                        return
                    if is_answered:
                        self._tell_renewed()
                        await self._until_due(began + RENEW_SECONDS)
                    else:
                        await self._ask_members()
                        await self._clock.sleep(UNANSWERED_SECONDS)
            except TimeoutError:
                continue

    async def confirm(self) -> None:
        """Return once a renewal that was sent less than a second ago was answered.

        Raises BusBroken if the lease is lost meanwhile, since another member may be active then.
        """
        lease = self.lease
        while not lease.is_confirmed(self._now()):
            if not lease.holds(self._now()):
                raise BusBroken("this member does not hold the lease of its node any more")
            self._wanted.set()
            await self._renewed.wait()

    async def give_back(self) -> None:
        """Let others take it at once; nothing of what it allowed may be under way then."""
        if write := self.lease.give_back():
            await self._stream.put(write)

    async def _step(self) -> None:
        """Look, and write if that is due."""
        seconds = answer_seconds(self._unanswered, ELECTION_ANSWER_SECONDS)
        seen = await self._stream.look(seconds)
        self._unanswered = 0 if seen is not None else self._unanswered + 1
        if seen is None:
            self.lease.saw_nothing()
            await self._ask_members()
            await self._mend_in_time()
            return
        self._answered_at = self._now()
        self.lease.saw(seen, self._now())
        if self.lease.is_quiet or self.lease.is_of_former_run:
            await self._ask_members()
        if self.lease.lacks_mark or (self.lease.may_take() and self._is_fit()):
            await self._put(self.lease.write(self._now()))

    async def _ask_members(self) -> None:
        """Learn from the others whether the holder is there, unless that was just asked."""
        asked_at = self._now()
        if asked_at < self._asked_at + ASK_SECONDS:
            return
        self._asked_at = asked_at
        is_held = self.lease.holds(asked_at)
        for facts in await self._presence.look_at_others():
            # Not now: who is gone was waited for since, and that is no sign of a holder.
            came_at, heard_seconds = facts[CAME], facts.get(HEARD)
            if facts.get(ROLE) == ACTIVE:
                self.lease.heard(came_at)
            elif isinstance(heard_seconds, float):
                self.lease.others_heard((asked_at if is_held else came_at) - heard_seconds)

    async def _mend_in_time(self) -> None:
        if self._now() - self._answered_at > WEDGED_SECONDS:
            self._answered_at = self._now()
            await self._stream.mend()

    def _is_fit(self) -> bool:
        """Whether this member may be active; why not is said once."""
        hindrance = self._presence.clock_trouble() or self._why_others()
        if hindrance and hindrance != self._hindrance:
            logger.warning("member %s: %s", self.lease.member, hindrance)
        self._hindrance = hindrance
        return not hindrance

    def _hear(self, data: bytes) -> None:
        """Somebody says that it writes this note, which may be seen much later."""
        try:
            self.lease.told(_note(data), self._now())
        except (ValueError, KeyError, TypeError) as error:
            logger.debug("a renewal that is told cannot be read: %s", error)

    async def _put(self, write: LeaseWrite) -> bool:
        """Whether it was answered."""
        await self._presence.tell(_encoded(write.note))
        answer = await self._stream.put(write)
        if isinstance(answer, int):
            self.lease.written(write, answer, self._now())
        elif answer is not None:
            self.lease.refused(answer, self._now())
        return answer is not None

    async def _until_due(self, due: float) -> None:
        """Until a renewal is due, or somebody wants one now."""
        try:
            async with asyncio.timeout(max(0.0, due - self._now())):
                await self._wanted.wait()
        except TimeoutError:
            return

    def _tell_renewed(self) -> None:
        renewed, self._renewed = self._renewed, asyncio.Event()
        renewed.set()

    def _now(self) -> float:
        return self._clock.now().seconds


def _encoded(note: LeaseNote) -> bytes:
    form = {"member": note.member, "run": note.run, "beat": note.beat, "mark": note.mark}
    return json.dumps(form).encode()


def _note(data: bytes) -> LeaseNote:
    """Raises ValueError, KeyError or TypeError."""
    form = from_json(data)
    return LeaseNote(str(form["member"]), str(form["run"]), int(form["beat"]), str(form["mark"]))
