"""The stream of what is a node's and not one machine's, where it has several members."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Awaitable, Callable, Iterable, Mapping

from relay.adapters.jetstream.connection import Connection
from relay.adapters.jetstream.fence import FencedPublisher, Tenure, is_erased, take_fence
from relay.adapters.jetstream.jetstream_leader import until_led
from relay.adapters.jetstream.publish import REPLACES, Outgoing, header_lines
from relay.adapters.jetstream.stream_reader import Stored, StreamDamaged, StreamReader
from relay.adapters.jetstream.streams import make_stream
from relay.ports import BusBroken, Clock
from schemas.values import subjects
from schemas.values.identity import NodePath

STREAM = "STATE"
_REPLACES = header_lines(REPLACES)

Changed = Callable[[str, bytes | None], Awaitable[None]]
"""Hears of a name what is kept of it now, None if that was erased."""


class StateStream:
    """Named values; whoever is active writes them behind a fence, and all members read them."""

    def __init__(self, connection: Connection, clock: Clock, path: NodePath, replicas: int) -> None:
        self._connection = connection
        self._clock = clock
        self._path = path
        self._replicas = replicas
        self._fenced: FencedPublisher | None = None

    async def make(self) -> None:
        """Make the stream, unless it is there; raises BusBroken."""
        captured = [self._subject("*")]
        await make_stream(self._connection, STREAM, captured, self._replicas)

    async def take(self, tenure: Tenure) -> dict[str, bytes]:
        """Be the one who writes from now on; all that others wrote. Raises BusBroken."""
        subject = subjects.fence(self._path, STREAM)
        await until_led(self._connection, self._clock, [STREAM])
        fence = await take_fence(self._connection, tenure, STREAM, subject, replaces=True)
        self._fenced = FencedPublisher(self._connection, fence, tenure)
        tenure.probed[STREAM] = self._fenced
        values: dict[str, bytes] = {}
        erased: dict[str, int] = {}

        async def take(stored: Stored) -> None:
            erased.pop(stored.subject, None)
            name = self._name(stored.subject)
            values.pop(name, None)
            if is_erased(stored):
                erased[stored.subject] = stored.sequence
            elif stored.subject != subject:
                values[name] = stored.data

        reader = StreamReader(self._connection, self._clock, STREAM, through=fence.sequence)
        try:
            await reader.read_all(take)
        except StreamDamaged as damaged:
            raise BusBroken(
                f"the state of node {self._path} cannot be read: {damaged}: stop the member with "
                "that disk, move the folder jetstream of its server aside, and start it again: the "
                "other members fill the store"
            ) from damaged
        await self._fenced.sweep(erased)
        return values

    async def put(self, values: Mapping[str, bytes], erased: Iterable[str] = ()) -> None:
        """Keep these and erase others, at once; raises BusBroken, also if another is active."""
        assert self._fenced is not None
        kept = [Outgoing(self._subject(_token(name)), values[name], _REPLACES) for name in values]
        await self._fenced.erase([self._subject(_token(name)) for name in erased], kept)

    async def has_erased(self, name: str) -> bool:
        """Whether it holds some of the state, and nothing of this name; raises BusBroken.

        Who was away as that was erased hears nothing of it: what says so is purged, too.
        """
        asked = self._subject("*")
        info = await self._connection.api(f"STREAM.INFO.{STREAM}", subjects_filter=asked)
        held = set(info["state"].get("subjects") or {}) - {subjects.fence(self._path, STREAM)}
        return bool(held) and self._subject(_token(name)) not in held

    async def follow(self, changed: Changed) -> None:
        """Tell of what is kept and of what is written from now on, without end."""
        fence = subjects.fence(self._path, STREAM)

        async def take(stored: Stored) -> None:
            if stored.subject != fence:
                data = None if is_erased(stored) else stored.data
                await changed(self._name(stored.subject), data)

        await StreamReader(self._connection, self._clock, STREAM).follow(take)

    def _subject(self, token: str) -> str:
        return subjects.state(self._path, token)

    def _name(self, subject: str) -> str:
        if subject == subjects.fence(self._path, STREAM):
            return ""
        token = subject.rsplit(".", 1)[1]
        return urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()


def _token(name: str) -> str:
    """A name of a file as one token of a subject."""
    return urlsafe_b64encode(name.encode()).decode().rstrip("=")
