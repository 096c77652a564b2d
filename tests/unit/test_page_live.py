"""Who looks at a view gets it whole, then what changed; the tree is asked once for all."""

import asyncio
import json
from contextlib import aclosing, asynccontextmanager

import pytest

from leafcast.ask.failures import CallFailed, NotRunning
from leafcast.ui import live as live_module
from leafcast.ui.live import LATE_SECONDS, PAUSE_MAX_SECONDS, LiveViews, TooManyWatchers
from relay.core.instant import Instant

pytestmark = pytest.mark.timeout(60)


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """However slow the machine is, nobody is told that nothing is new."""
    monkeypatch.setattr(live_module, "STILL_SECONDS", 50.0)


class SteppedClock:
    """Its sleepers go on when the test says so."""

    def __init__(self):
        self.slept = 0.0
        self._sleepers: list[asyncio.Future] = []
        self._came = asyncio.Event()

    def now(self):
        return Instant(self.slept, 1_000 + int(self.slept * 1000))

    async def sleep(self, seconds):
        sleeper = asyncio.get_running_loop().create_future()
        self._sleepers.append(sleeper)
        self._came.set()
        await sleeper
        self.slept += seconds

    async def step(self):
        """Have who sleeps go on, once somebody does."""
        while not [it for it in self._sleepers if not it.done()]:
            self._came.clear()
            await self._came.wait()
        for sleeper in self._sleepers:
            if not sleeper.done():
                sleeper.set_result(None)
        self._sleepers.clear()


class Looked:
    """A view that the test changes."""

    def __init__(self):
        self.count = 0
        self.view = {"rows": [{"id": "a", "n": 0}], "more": 1}
        self.fails: Exception | None = None

    async def __call__(self):
        self.count += 1
        if self.fails:
            raise self.fails
        return self.view


@asynccontextmanager
async def views():
    clock = SteppedClock()
    async with asyncio.TaskGroup() as group:
        live = LiveViews(clock, group)
        yield live, clock
        await live.end()


async def test_the_whole_comes_first_and_then_only_what_changed():
    look = Looked()
    async with views() as (live, clock), aclosing(live.watch("v", look)) as messages:
        first = await anext(messages)
        assert (first.event, json.loads(first.text)["view"]) == ("whole", look.view)
        look.view = {"rows": [{"id": "a", "n": 1}], "more": 1}
        await clock.step()
        second = await anext(messages)
        said = json.loads(second.text)
        assert (second.event, said["rows"]) == ("patch", {"rows": {"items": [{"id": "a", "n": 1}]}})


async def test_something_comes_each_second_though_nothing_changed():
    async with views() as (live, clock), aclosing(live.watch("v", Looked())) as messages:
        before = json.loads((await anext(messages)).text)["asOfMs"]
        await clock.step()
        said = await anext(messages)
        assert (said.event, set(json.loads(said.text))) == ("patch", {"asOfMs"})
        assert json.loads(said.text)["asOfMs"] == before + 1000


async def test_the_tree_is_asked_once_however_many_look():
    look = Looked()
    async with views() as (live, clock):
        watching = [live.watch("v", look) for _ in range(50)]
        firsts = [await anext(messages) for messages in watching]
        assert {it.event for it in firsts} == {"whole"}
        assert look.count == 1
        await clock.step()
        seconds = [await anext(messages) for messages in watching]
        assert look.count == 2
        # And what is said to all is put into JSON once.
        assert len({id(it.text) for it in seconds}) == 1
        for messages in watching:
            await messages.aclose()


async def test_who_was_slow_gets_the_whole_again():
    look = Looked()
    async with views() as (live, clock):
        slow, fast = live.watch("v", look), live.watch("v", look)
        async with aclosing(slow), aclosing(fast):
            await anext(slow)
            await anext(fast)
            for _ in range(2):
                await clock.step()
                await anext(fast)
            assert (await anext(slow)).event == "whole"


@pytest.mark.parametrize(
    ("error", "away"),
    [
        (NotRunning("/d"), True),
        (CallFailed("status", "Timeout", "no answer", ""), True),
        (CallFailed("status", "NotFound", "none", "apply one"), False),
    ],
)
async def test_a_tree_that_fails_is_told_with_the_moment_of_what_was_seen_last(error, away):
    look = Looked()
    async with views() as (live, clock), aclosing(live.watch("v", look)) as messages:
        seen = json.loads((await anext(messages)).text)["asOfMs"]
        look.fails = error
        await clock.step()
        failed = await anext(messages)
        said = json.loads(failed.text)
        assert (failed.event, said["error"]["away"], said["asOfMs"]) == ("failed", away, seen)
        look.fails = None
        await clock.step()
        # What changed meanwhile nobody knows, so it comes whole.
        assert (await anext(messages)).event == "whole"


async def test_nobody_is_asked_once_nobody_looks():
    look = Looked()
    async with views() as (live, clock):
        async with aclosing(live.watch("v", look)) as messages:
            await anext(messages)
        async with aclosing(live.watch("other", Looked())) as messages:
            for _ in range(3):
                await anext(messages)
                await clock.step()
        assert look.count == 1


async def test_one_browser_too_many_is_refused(monkeypatch):
    monkeypatch.setattr(live_module, "WATCHERS_MAX", 1)
    async with views() as (live, _), aclosing(live.watch("v", Looked())) as messages:
        await anext(messages)
        with pytest.raises(TooManyWatchers):
            await anext(live.watch("v", Looked()))


async def test_a_look_that_takes_long_is_repeated_more_seldom():
    class Slow(Looked):
        async def __call__(self):
            clock.slept += 3.0
            return await super().__call__()

    async with views() as (live, clock), aclosing(live.watch("v", Slow())) as messages:
        await anext(messages)
        before = clock.slept
        await clock.step()
        await anext(messages)
        assert clock.slept - before == 12.0 + 3.0


async def test_who_waits_for_long_is_told_that_somebody_is_there(monkeypatch):
    monkeypatch.setattr(live_module, "STILL_SECONDS", 0.01)
    async with views() as (live, _), aclosing(live.watch("v", Looked())) as messages:
        assert (await anext(messages)).event == "whole"
        assert (await anext(messages)).event == "still"


class Hanging(Looked):
    """Gives no answer while it is told so."""

    def __init__(self):
        super().__init__()
        self.goes_on = asyncio.Event()
        self.began = asyncio.Event()
        self.goes_on.set()

    async def __call__(self):
        self.began.set()
        await self.goes_on.wait()
        return await super().__call__()


async def test_a_question_without_an_answer_makes_what_was_seen_late_though_the_server_is_there(
    monkeypatch,
):
    monkeypatch.setattr(live_module, "STILL_SECONDS", 0.01)
    look = Hanging()
    async with views() as (live, clock), aclosing(live.watch("v", look)) as messages:
        seen = json.loads((await anext(messages)).text)["asOfMs"]
        # Between two looks nothing is late, however long that is.
        clock.slept += LATE_SECONDS + 1
        assert (await anext(messages)).text == "{}"
        look.goes_on.clear()
        look.began.clear()
        await clock.step()
        await look.began.wait()
        clock.slept += LATE_SECONDS
        assert (await anext(messages)).text == "{}"
        clock.slept += 1
        assert json.loads((await anext(messages)).text) == {"lateSinceMs": seen}
        look.goes_on.set()
        while (message := await anext(messages)).event == "still":
            pass
        assert message.event == "patch"


async def test_a_look_that_took_very_long_is_repeated_soon_enough_and_one_that_failed_at_once():
    class Slow(Looked):
        async def __call__(self):
            clock.slept += 60.0
            return await super().__call__()

    look = Slow()
    async with views() as (live, clock), aclosing(live.watch("v", look)) as messages:
        await anext(messages)
        before = clock.slept
        look.fails = NotRunning("/d")
        await clock.step()
        assert (await anext(messages)).event == "failed"
        assert clock.slept - before == PAUSE_MAX_SECONDS + 60.0
        await clock.step()
        await anext(messages)
        assert clock.slept - before == PAUSE_MAX_SECONDS + 120.0


async def test_who_asks_once_is_told_what_others_just_asked_for():
    look = Hanging()
    look.goes_on.clear()
    async with views() as (live, clock), asyncio.TaskGroup() as group:
        asking = [group.create_task(live.once("v", look, 3.0)) for _ in range(20)]
        await look.began.wait()
        # Who goes away takes the answer from nobody.
        asking[0].cancel()
        look.goes_on.set()
        told = [await it for it in asking[1:]]
        assert (len(set(told)), look.count) == (1, 1)
        clock.slept += 3.0
        assert await live.once("v", look, 3.0) == told[0]
        clock.slept += 0.1
        await live.once("v", look, 3.0)
        assert look.count == 2


async def test_who_asks_once_for_what_is_looked_at_is_told_what_was_seen():
    look = Looked()
    async with views() as (live, clock), aclosing(live.watch("v", look, 3.0)) as messages:
        whole = (await anext(messages)).text
        clock.slept += 3.0
        assert await live.once("v", look, 3.0) == whole
        assert look.count == 1
        look.fails = NotRunning("/d")
        await clock.step()
        await anext(messages)
        with pytest.raises(NotRunning):
            await live.once("v", look, 3.0)
