"""The streams of a node's three servers, as clients of theirs meet them: JetStream's rules alone.

What speaks to them is the real thing: lease, fences and batches go over a client as bytes. Tests on
real clusters hold each rule to these; see `assumptions.py`.
"""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from nats.errors import NoRespondersError

from relay.adapters.jetstream.connection import NO_MESSAGE_FOUND, NO_STREAM, Connection
from relay.adapters.jetstream.publish import EXPECTED_SEQUENCE, EXPECTED_SUBJECT
from relay.adapters.jetstream.stream_reader import Stored

WRONG_LAST = 10071
BATCH_COMMIT = "Nats-Batch-Commit"
LEASE = "LEASE"


@dataclass(frozen=True, slots=True)
class Answer:
    """A message that answers, as the client library gives it."""

    data: bytes
    subject: str = ""
    reply: str = ""
    headers: Mapping[str, str] | None = None


def _says(**fields: Any) -> Answer:
    return Answer(json.dumps(fields).encode())


def _refuses(code: int) -> Answer:
    return _says(error={"err_code": code, "description": "refused"})


@dataclass(frozen=True, slots=True)
class Message:
    """What is to be kept."""

    subject: str
    data: bytes
    headers: Mapping[str, str]


@dataclass(slots=True)
class ClusterStream:
    """The last message of each subject."""

    last: int = 0
    kept: dict[str, Stored] = field(default_factory=dict)

    def last_of(self, pattern: str) -> Stored | None:
        """What lies last at a subject, or at any that a pattern names."""
        if "*" not in pattern:
            return self.kept.get(pattern)
        found = [it for it in self.kept.values() if fnmatchcase(it.subject, pattern)]
        return max(found, key=lambda it: it.sequence, default=None)

    def takes(self, messages: Sequence[Message]) -> bool:
        """Whether each lies where its writer expects that: all of them, or none."""
        for message in messages:
            expected = message.headers.get(EXPECTED_SEQUENCE)
            if expected is None:
                continue
            found = self.last_of(message.headers.get(EXPECTED_SUBJECT, message.subject))
            if (found.sequence if found else 0) != int(expected):
                return False
        return True

    def keep(self, message: Message) -> Stored:
        self.last += 1
        stored = Stored(message.subject, message.data, message.headers, self.last)
        self.kept[message.subject] = stored
        return stored

    def copy(self) -> ClusterStream:
        return ClusterStream(self.last, dict(self.kept))


Kept = Callable[[str, Stored], None]
"""Hears of what a stream keeps, before another message is."""


class Cluster:
    """The streams of one node. `stream_of` says of a subject which one captures it."""

    def __init__(self, stream_of: Callable[[str], str]) -> None:
        self.stream_of = stream_of
        self.streams: dict[str, ClusterStream] = {}
        # Whether the lease's stream has a leader.
        self.leads_lease = True
        # Of whom nothing arrives, and who hears nothing.
        self.cut_off: dict[str, None] = {}

    def stream(self, name: str) -> ClusterStream:
        return self.streams.setdefault(name, ClusterStream())

    def lose_lease(self) -> None:
        """All servers started anew: what is in memory is lost, and is numbered from 1 again."""
        self.streams.pop(LEASE, None)

    def write(self, messages: Sequence[Message], kept: Kept) -> Answer:
        """Keep these together, or none of them."""
        name = self.stream_of(messages[0].subject)
        if name == LEASE and name not in self.streams:
            return _refuses(NO_STREAM)
        stream = self.stream(name)
        if not stream.takes(messages):
            return _refuses(WRONG_LAST)
        for message in messages:
            kept(name, stream.keep(message))
        return _says(stream=name, seq=stream.last)

    def asked(self, subject: str, data: bytes) -> Answer:
        """What JetStream answers to one of its requests."""
        verb, _, name = subject.removeprefix("$JS.API.").rpartition(".")
        if verb == "STREAM.CREATE":
            self.stream(name)
            return _says(config={})
        if name not in self.streams and name == LEASE:
            return _refuses(NO_STREAM)
        stream, body = self.stream(name), json.loads(data or b"{}")
        match verb:
            case "STREAM.MSG.GET":
                found = stream.last_of(body["last_by_subj"])
                if found is None:
                    return _refuses(NO_MESSAGE_FOUND)
                data64 = b64encode(found.data).decode()
                return _says(message={"seq": found.sequence, "data": data64})
            case "STREAM.PURGE":
                held = stream.kept.get(body["filter"])
                if held is not None and held.sequence < body.get("seq", held.sequence + 1):
                    del stream.kept[held.subject]
            case "STREAM.DELETE":
                self.streams.pop(name)
            case _:
                return _says(cluster={"leader": "m1" if self.leads_lease else ""}, config={})
        return _says(success=True)

    def serves(self, subject: str, member: str) -> bool:
        """Whether who has the stream of a subject answers a member now."""
        lease = LEASE in subject or self.stream_of(subject) == LEASE
        return member not in self.cut_off and (self.leads_lease or not lease)


Step = Callable[[], Awaitable[None]]
"""What stands between two steps of a process: here it may be stopped, or have ended."""


class ClusterClient:
    """A client at a member's server, as adapters use the library's.

    With a `delay` requests take their time, and are given up in time; else there is none.
    """

    def __init__(
        self,
        cluster: Cluster,
        member: str,
        step: Step,
        kept: Kept,
        delay: Callable[[], float] | None = None,
    ) -> None:
        self._cluster, self._member, self._step, self._kept = cluster, member, step, kept
        self._delay = delay
        self._inboxes = 0
        self._answers: dict[str, Answer | None] = {}
        self.expects: Callable[[str], bool] = lambda _stream: True
        # Takes a batch for a stream with it, and says so, if that is to arrive late.
        self.late: Callable[[str, Callable[[], Answer]], bool] = lambda _stream, _arrive: False

    async def request(
        self, subject: str, data: bytes, timeout: float, headers: Mapping[str, str] | None = None
    ) -> Answer:
        if self._delay is None:
            return await self._asked(subject, data, headers)
        async with asyncio.timeout(timeout):
            return await self._asked(subject, data, headers)

    async def _asked(self, subject: str, data: bytes, headers: Mapping[str, str] | None) -> Answer:
        await self._pass()
        if self._member in self._cluster.cut_off:
            await self._never()
        if not self._cluster.serves(subject, self._member):
            raise NoRespondersError
        answer = self._answered(subject, data, headers)
        await self._pass()
        if self._member in self._cluster.cut_off:
            await self._never()
        return answer

    async def _never(self) -> None:
        """No answer comes; who asks in no time is told so at once."""
        if self._delay is None:
            raise TimeoutError
        await asyncio.Event().wait()

    def _answered(self, subject: str, data: bytes, headers: Mapping[str, str] | None) -> Answer:
        if subject.startswith("$JS.API."):
            return self._cluster.asked(subject, data)
        return self._cluster.write([Message(subject, data, headers or {})], self._kept)

    async def _pass(self) -> None:
        if self._delay is not None:
            await asyncio.sleep(self._delay())
        await self._step()

    def new_inbox(self) -> str:
        self._inboxes += 1
        return f"_INBOX.{self._inboxes}"

    async def subscribe(self, inbox: str, max_msgs: int) -> Replies:
        return Replies(self._answers, inbox, self._step)

    async def publish_all(self, commands: Sequence[bytes]) -> None:
        messages, inbox = [], ""
        for line in commands:
            message, reply = _read(line)
            messages.append(message)
            inbox = inbox or reply
        stream = self._cluster.stream_of(messages[0].subject)
        if not self.expects(stream):
            messages[0] = _unfenced(messages[0])
        await self._step()

        def arrive() -> Answer:
            return self._cluster.write(messages, self._kept)

        if self._member in self._cluster.cut_off or self.late(stream, arrive):
            self._answers[inbox] = None
        else:
            self._answers[inbox] = arrive()


@dataclass(frozen=True, slots=True)
class Replies:
    """The one answer that comes to an inbox."""

    answers: dict[str, Answer | None]
    inbox: str
    step: Step

    async def next_msg(self, timeout: float) -> Answer:
        await self.step()
        answer = self.answers.pop(self.inbox)
        if answer is None:
            # Who would wait in vain is told so at once: in a world, commands take no time.
            raise TimeoutError
        return answer

    async def unsubscribe(self) -> None:
        """No other answer comes."""


class ClusterConnection(Connection):
    """The real connection over such a client."""

    def __init__(self, client: ClusterClient) -> None:
        super().__init__("cluster", "", "member", "_INBOX")
        self.client = client  # type: ignore[assignment]
        self._connected.set()


def _read(line: bytes) -> tuple[Message, str]:
    """A command that publishes a message with headers, and where it is to be answered."""
    first, rest = line.split(b"\r\n", 1)
    words = first.decode().split(" ")
    assert words[0] == "HPUB", first
    size = int(words[-2])
    lines = rest[:size].decode().split("\r\n")[1:]
    headers = dict(each.split(": ", 1) for each in lines if each)
    reply = words[2] if BATCH_COMMIT in headers else ""
    return Message(words[1], rest[size : int(words[-1])], headers), reply


def _unfenced(message: Message) -> Message:
    headers = {k: v for k, v in message.headers.items() if k != EXPECTED_SUBJECT}
    if len(headers) != len(message.headers):
        headers.pop(EXPECTED_SEQUENCE, None)
    return Message(message.subject, message.data, headers)
