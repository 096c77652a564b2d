"""What members of a node do that a planted fault may do otherwise."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, nullcontext

from relay.core.events import Event
from relay.members.lease import MemberLease
from tests.simulation.host import Host
from tests.simulation.ports import Ports


class MemberPorts(Ports):
    """Honest members; a planted fault overrides what a member does otherwise."""

    listener: Callable[[Host, Event], None] | None = None
    """Hears of all that nodes are told."""

    def heard(self, host: Host, event: Event) -> list[Event]:
        if self.listener is not None:
            self.listener(host, event)
        return super().heard(host, event)

    def lease(self, member: str, run: str, over: Collection[str]) -> MemberLease:
        """By what it decides about the lease."""
        return MemberLease(member, run, over)

    def expects_fence(self, _stream: str) -> bool:
        """Whether batches for a stream expect its fence."""
        return True

    def reads_to_fence(self) -> bool:
        """Whether streams are read once the fences are written, and not before."""
        return True

    def lays_state(self) -> bool:
        """Whether files become what the stream of state says."""
        return True

    def settles(self) -> bool:
        """Whether files are in the stream of state before they are used."""
        return True

    def clock_trouble(self, honest: str) -> str:
        """What is said of the own clock."""
        return honest

    def confirms(self) -> bool:
        """Whether it is sure of the lease before what no fence holds back."""
        return True

    def planted(self) -> AbstractContextManager[object]:
        """What is planted in the program itself, while a world is lived."""
        return nullcontext()
