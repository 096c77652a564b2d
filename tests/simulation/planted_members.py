"""Faults planted in members of a node: each one leaves out a rule of takeovers."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractContextManager
from unittest import mock

from controllers.issuing import issuer
from relay.members.lease import MemberLease
from tests.simulation.member_ports import MemberPorts


class NoFenceRead(MemberPorts):
    """Who takes over reads the streams before its fence lies in them."""

    def reads_to_fence(self) -> bool:
        return False


class FenceNotExpected(MemberPorts):
    """Batches land whosever fence lies there."""

    def expects_fence(self, _stream: str) -> bool:
        return False


class SpacesUnfenced(MemberPorts):
    """What is written into embedded spaces lands whosever fence lies there."""

    def expects_fence(self, stream: str) -> bool:
        return not stream.startswith("KV_")


class _EarlyLease(MemberLease):
    def may_take(self) -> bool:
        return self._seen is not None and self._seen.note is not None


class LeaseTakenEarly(MemberPorts):
    """A member takes the lease once it saw it, however much it changes."""

    def lease(self, member: str, run: str, over: Collection[str]) -> MemberLease:
        return _EarlyLease(member, run, over)


class _EndlessLease(MemberLease):
    def holds(self, _now: float) -> bool:
        return self._is_held

    def seconds_left(self, _now: float) -> float:
        return 3600.0


class HolderGoesOn(MemberPorts):
    """Who held the lease once goes on until somebody says that another one has it."""

    def lease(self, member: str, run: str, over: Collection[str]) -> MemberLease:
        return _EndlessLease(member, run, over)


class ClockNotRefused(MemberPorts):
    """Nobody looks whether a clock is wrong."""

    def clock_trouble(self, _honest: str) -> str:
        return ""


class StateUnread(MemberPorts):
    """Who takes over begins with the files that it had."""

    def lays_state(self) -> bool:
        return False


class StateLate(MemberPorts):
    """What changed in files is used, and never gets into the stream of state."""

    def settles(self) -> bool:
        return False


class Unconfirmed(MemberPorts):
    """Accounts of children are changed without a look at the lease."""

    def confirms(self) -> bool:
        return False


class TermKept(MemberPorts):
    """Who takes over at the centre goes on with the term of whoever was before."""

    def planted(self) -> AbstractContextManager[object]:
        return mock.patch.object(issuer, "new_term", return_value="00" * 8)
