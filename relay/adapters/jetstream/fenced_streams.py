"""What the active member of a node writes to its streams, behind a fence in each.

MAIL has one only so that all that lies before it is read: each of its slots has an expectation of
its own, and what a former member wrote late is found by the digest that the child says. STAT, which
children write, has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from relay.adapters.jetstream.connection import Connection
from relay.adapters.jetstream.fence import Fence, FencedPublisher, Tenure, is_erased, take_fence
from relay.adapters.jetstream.publish import Outgoing
from relay.adapters.jetstream.stream_probes import OpenStream, ProbedInTurn
from relay.adapters.jetstream.stream_reader import Stored
from relay.adapters.jetstream.streams import REPLACING, each, purge_through
from schemas.values import subjects
from schemas.values.identity import NodePath

_FENCED = ("OWN", "BLOB", "MAIL")
ERASED_AT_ONCE = 500


class FencedStreams:
    """The streams of one run of a node that has several members."""

    def __init__(self, connection: Connection, path: NodePath, tenure: Tenure) -> None:
        self.tenure = tenure
        self._connection = connection
        self._path = path
        self._fences: dict[str, Fence] = {}
        self._publishers: dict[str, FencedPublisher] = {}
        # Where it says that something is erased, of which a former run did not see the end.
        self._left: dict[str, dict[str, int]] = {}

    async def take(self) -> None:
        """Write the fences; nothing that others meant to write lands from now on.

        Raises BusBroken.
        """

        async def take_one(stream: str) -> None:
            subject = subjects.fence(self._path, stream)
            fence = self._fences[stream] = await take_fence(
                self._connection, self.tenure, stream, subject, replaces=stream in REPLACING
            )
            publisher = FencedPublisher(self._connection, fence, self.tenure)
            self._publishers[stream] = self.tenure.probed[stream] = publisher

        await each(take_one, _FENCED)
        subject = subjects.fence(self._path, "STAT")
        self.tenure.probed["STAT"] = OpenStream(self._connection, "STAT", subject)
        copies = subjects.children_copies(self._path)
        self.tenure.in_turn["copies"] = ProbedInTurn(self._connection, copies)

    def through(self, stream: str) -> int:
        """Up to which message a stream has to be read at the start of this run."""
        return self._fences[stream].sequence if stream in self._fences else 0

    def reads(self, stream: str, stored: Stored) -> bool:
        """Whether a message of the stream says anything: no fence, and nothing that is erased."""
        fence = self._fences.get(stream)
        if fence is not None and stored.subject == fence.subject:
            return False
        left = self._left.setdefault(stream, {})
        left.pop(stored.subject, None)
        if is_erased(stored):
            left[stored.subject] = stored.sequence
            return False
        return True

    async def sweep(self) -> None:
        """End the erasures of former runs; raises BusBroken."""
        for stream, erased in self._left.items():
            await purge_through(self._connection, stream, erased)
        self._left.clear()

    async def write(
        self, blobs: Sequence[Outgoing], own: Sequence[Outgoing], erased: Iterable[str]
    ) -> None:
        """Keep content, then records, and erase some of OWN with these; raises BusBroken."""
        if blobs:
            await self._publishers["BLOB"].publish(blobs)
        await self._publishers["OWN"].erase(erased, own)

    async def drop_blobs(self, gone: Sequence[str]) -> None:
        """Erase content, by its subjects; raises BusBroken."""
        for at in range(0, len(gone), ERASED_AT_ONCE):
            await self._publishers["BLOB"].erase(gone[at : at + ERASED_AT_ONCE])
