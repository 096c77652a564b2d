"""A syncer that takes in very much lets all else go on meanwhile, and believes what is newest."""

import asyncio

from relay.space_port import Interest, ObjectsListed
from schemas.objects.objects import ObjectKey
from tests.contract.spaces import config_map
from tests.contract.syncing import Bench

COUNT = 60
CONFIG_MAPS = Interest("", "configmaps")
LAST = ObjectKey("", "configmaps", "shop", "last")


class DearMoments:
    """A clock by which everything takes longer than a turn, once it is `dear`."""

    def __init__(self, clock):
        self._clock = clock
        self.dear = False
        self._looks = 0

    def __getattr__(self, name):
        return getattr(self._clock, name)

    def now(self):
        self._looks += self.dear
        now = self._clock.now()
        return now.__class__(now.seconds + self._looks * 0.02, now.wall_ms)


async def test_all_else_goes_on_while_a_long_list_is_taken_in(space, clock, dice):
    moments = DearMoments(clock)
    bench = Bench(space, moments, dice)
    others = [config_map(f"c{at}") for at in range(COUNT)]
    async with bench.running():
        bench.want(*others, config_map("last", a="1"))
        await bench.settled()
        listed = {key: await space.get(key) for key in bench.wanted if key.name != "shop"}
        listed[LAST] = listed.pop(LAST)
        turns = 0

        async def count():
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(count())
        before = turns
        moments.dear = True
        await bench.space.tell(ObjectsListed(CONFIG_MAPS, listed))
        moments.dear = False
        counting.cancel()
        assert turns - before >= COUNT


async def test_what_is_applied_while_a_list_is_taken_in_is_not_what_the_list_says(
    space, clock, dice
):
    moments = DearMoments(clock)
    bench = Bench(space, moments, dice)
    others = [config_map(f"c{at}") for at in range(COUNT)]
    async with bench.running():
        bench.want(*others, config_map("last", a="1"))
        await bench.settled()
        bench.space.muted = True
        listed = {key: await space.get(key) for key in bench.wanted if key.name != "shop"}
        bench.want(*others, config_map("last", a="2"))
        applied = len(bench.space.applied)
        moments.dear = True
        await bench.space.tell(ObjectsListed(CONFIG_MAPS, listed))
        moments.dear = False
        await bench.settled()
        assert bench.space.applied[applied:] == ["last"]
        assert (await space.get(LAST))["data"] == {"a": "2"}
        assert bench.said[LAST].repaired is None
        assert bench.said[LAST].address == bench.address(LAST)
