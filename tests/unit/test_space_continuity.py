"""What a space that lost some does not show is asked about once, however late it is missed."""

import asyncio

from controllers.spaces.space_marks import SpaceContinuity
from relay.adapters.clock import SystemClock, SystemDice
from schemas.objects.objects import ObjectKey
from schemas.records.records import SpaceMark
from tests.doubles.memory_space import MemorySpace


class Ledger:
    """Knows the space further than it is."""

    def space_mark(self, _identity):
        return SpaceMark(1000)


def key(name):
    return ObjectKey("", "configmaps", "shop", name)


async def test_what_is_missed_later_in_a_space_that_lost_some_is_asked_about_once():
    continuity, space = SpaceContinuity(Ledger(), "s"), MemorySpace(SystemClock(), SystemDice())
    unseen = {key("a")}
    async with asyncio.timeout(60):
        assert await continuity.lost(space, lambda: frozenset(unseen)) == {key("a")}
        unseen.add(key("b"))
        assert await continuity.lost(space, lambda: frozenset(unseen)) == unseen
        unseen.discard(key("a"))
        assert await continuity.lost(space, lambda: frozenset(unseen)) == {key("b")}
