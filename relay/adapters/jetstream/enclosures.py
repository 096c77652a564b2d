"""Small new content goes to a child right before the mail that names it, so that it need not ask.

Nothing rests on it: it is not kept, may be lost, and is checked against its address as all content
is. Bounded per child and time, for nothing but the mail holds back a fast sender on a slow link.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from relay.core.effects import WriteMail
from relay.ports import Clock
from schemas import codec, subjects
from schemas.identity import ContentHash
from schemas.records import decode_base
from schemas.refusals import CodecError, RecordRefused
from schemas.signing import decode_envelope

VALUE_BYTES_MAX = 8 * 1024
NEW_BYTES_MAX, NEW_SECONDS = 64 * 1024, 5.0
"""How much of what was kept just now is enclosed, and how long it counts as new."""
CHILD_BYTES_MAX, CHILD_SECONDS = 64 * 1024, 10.0
"""How much one child is sent in a while."""
RECORDS_MAX = 16
"""Of more at once none has content enclosed: in a burst, fetching costs less than it delays."""
WAITING_BYTES_MAX = 64 * 1024
ENTRY_BYTES = 200
"""What an entry takes besides its address and its value."""

logger = logging.getLogger(__name__)


class _Values:
    """Values by address; the oldest go when there are too many."""

    def __init__(self, size_max: int) -> None:
        self._size_max = size_max
        self._held: OrderedDict[ContentHash, bytes] = OrderedDict()
        self._size = 0

    def put(self, address: ContentHash, value: bytes) -> None:
        self.pop(address)
        self._held[address] = value
        self._size += _size(address, value)
        while self._size > self._size_max:
            self._size -= _size(*self._held.popitem(last=False))

    def get(self, address: ContentHash) -> bytes | None:
        return self._held.get(address)

    def pop(self, address: ContentHash) -> bytes | None:
        value = self._held.pop(address, None)
        self._size -= _size(address, value) if value is not None else 0
        return value

    def clear(self) -> None:
        self._held.clear()
        self._size = 0

    def __bool__(self) -> bool:
        return bool(self._held)


def _size(address: ContentHash, value: bytes) -> int:
    """What a value takes, about: a parent may send ever new addresses of nothing."""
    return ENTRY_BYTES + len(address) + len(value)


class Enclosing:
    """The parent's side: what was kept just now goes along with mail that names it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._new = _Values(NEW_BYTES_MAX)
        self._newest_at = 0.0
        self._sent: dict[str, int] = {}
        self._sent_since = 0.0

    def kept(self, values: Mapping[ContentHash, bytes]) -> None:
        """Take note of content that is new in the own store."""
        self._newest_at = self._clock.now().seconds
        for address, value in values.items():
            if len(value) <= VALUE_BYTES_MAX:
                self._new.put(address, value)

    async def send(self, client: Client, writes: Sequence[WriteMail]) -> None:
        """Send what these messages name, each child its own."""
        now = self._clock.now().seconds
        if self._new and now - self._newest_at > NEW_SECONDS:
            self._new.clear()
        if not self._new or len({id(write.data) for write in writes}) > RECORDS_MAX:
            return
        if now - self._sent_since > CHILD_SECONDS:
            self._sent_since, self._sent = now, {}
        enclosed: dict[bytes, bytes] = {}
        try:
            for write in writes:
                if write.data not in enclosed:
                    enclosed[write.data] = self._enclosed(write.data)
                content = enclosed[write.data]
                sent = self._sent.get(write.child, 0) + len(content)
                if content and sent <= CHILD_BYTES_MAX:
                    self._sent[write.child] = sent
                    await client.publish(subjects.content(write.child), content)
        except (NatsError, OSError) as error:
            logger.debug("content did not go along with mail: %s", error)

    def _enclosed(self, data: bytes) -> bytes:
        try:
            references = decode_base(decode_envelope(data).payload).references
        except RecordRefused:
            return b""
        found = [(item.address, self._new.get(item.address)) for item in references]
        named = [[address, value] for address, value in found if value is not None]
        return codec.pack(named) if named else b""


class Enclosed:
    """The child's side: what came along, until it is asked for."""

    def __init__(self) -> None:
        self._values = _Values(WAITING_BYTES_MAX)

    async def came(self, message: Msg) -> None:
        """Take a message of the parent's."""
        try:
            named = read_enclosed(message.data)
        except CodecError as error:
            logger.warning("unreadable content came along with mail: %s", error)
            return
        for address, value in named:
            self._values.put(address, value)

    def take(self, address: ContentHash) -> bytes | None:
        """The value, once: if it proves false, the next look is elsewhere."""
        return self._values.pop(address)


def read_enclosed(data: bytes) -> list[tuple[ContentHash, bytes]]:
    """The addresses and values that such a message holds; raises CodecError."""
    named = codec.unpack(data, CHILD_BYTES_MAX)
    found = []
    for item in named if isinstance(named, tuple) else (named,):
        match item:
            case (str(address), bytes(value)) if len(value) <= VALUE_BYTES_MAX:
                found.append((ContentHash(address), value))
            case _:
                raise CodecError("", "not [[address, value], ...]")
    return found
