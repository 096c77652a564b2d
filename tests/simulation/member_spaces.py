"""The centre's spaces as its active member reaches them: what it writes lands behind a fence.

As in a bucket at three servers: an entry goes in a batch whose first message expects the fence.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from relay.adapters.jetstream.fence import FencedPublisher, Tenure, take_fence
from relay.adapters.jetstream.publish import REPLACES, Outgoing, header_lines
from relay.adapters.spaces.bucket import GUARD, fence_of, stream_of
from relay.ports import BusBroken
from relay.space_errors import SpaceError
from relay.wrapped_space import WrappedSpace
from tests.doubles.memory_space import MemorySpace
from tests.simulation.cluster import ClusterConnection
from tests.simulation.model import INVENTORY, WORKLOADS
from tests.simulation.space import now

if TYPE_CHECKING:
    from tests.simulation.members import Member

T = TypeVar("T")
SPACES = (INVENTORY, WORKLOADS)


class SpaceWrite:
    """Something to be written into a space once its entry lands, and what came of it."""

    def __init__(self, call: Coroutine[Any, Any, Any]) -> None:
        self._call = call
        self._result: Any = None
        self._error: SpaceError | None = None

    def carry_out(self) -> None:
        try:
            self._result = now(self._call)
        except SpaceError as error:
            self._error = error

    def result(self) -> Any:
        """Raises SpaceError."""
        if self._error is not None:
            raise self._error
        return self._result

    def close(self) -> None:
        """It lands no more, if it has not."""
        self._call.close()


class MemberSpace(WrappedSpace[MemorySpace]):
    """A space as one tenure writes it; people write it otherwise."""

    def __init__(self, space: MemorySpace, name: str, member: Member) -> None:
        super().__init__(space)
        self._name, self._member = name, member
        self._fenced = member.spaces[name]

    async def _writing(self, call: Coroutine[Any, Any, T]) -> T:
        member = self._member
        guard = Outgoing(f"$KV.{self._name}.{GUARD}", b"", header_lines(REPLACES))
        write = SpaceWrite(call)
        entry = Outgoing(f"$KV.{self._name}.entry", str(len(member.trio.writes)).encode())
        member.trio.writes.append(write)
        member.meant[entry.subject, entry.data] = write
        try:
            await self._fenced.publish([guard, entry])
        except BusBroken as broken:
            raise SpaceError("ServiceUnavailable", str(broken)) from broken
        result: T = write.result()
        return result


async def fenced_spaces(
    connection: ClusterConnection, tenure: Tenure
) -> dict[str, FencedPublisher]:
    """Who may write into the centre's spaces from now on."""
    made = {}
    for name in SPACES:
        stream, subject = stream_of(name), fence_of(name)
        fence = await take_fence(connection, tenure, stream, subject, replaces=True)
        made[name] = FencedPublisher(connection, fence, tenure)
    return made
