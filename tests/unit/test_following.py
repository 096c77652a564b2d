"""A space that a daemon follows for a command: nothing is lost, and nobody is followed for ever."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from leafcast.ask.api import Api
from leafcast.ask.asked_space import FOLLOW_VERB, NEWS_VERB, AskedSpace
from leafcast.ask.failures import CallFailed, NotRunning
from leafcast.ask.session import Session
from leafcast.daemon.verbs.spaces import (
    ASKING_SECONDS,
    FOLLOWERS_MAX,
    FORGOTTEN_SECONDS,
    Followers,
)
from leafcast.data_dir import DataDir
from relay.adapters.jetstream.request_reply import ANSWERS_AT_ONCE
from relay.space_errors import AnotherSpace, SpaceError
from relay.space_port import Interest, Interests, ObjectChange, ObjectsListed, Synced
from tests.contract.spaces import HandClock, SeededDice
from tests.doubles.memory_space import MemorySpace

CONFIGS = Interest("", "configmaps")


def config(name, value="v"):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": {"key": value},
    }


class World:
    """A daemon's followers, and a command that asks them, with an answer lost now and then."""

    def __init__(self, tmp_path):
        self.clock = HandClock()
        self.space = MemorySpace(self.clock, SeededDice())
        self.lost = 0
        self.opened = 0
        self.restart()
        self.session = Session(DataDir(tmp_path), None, None, self.clock, self._answer)

    def restart(self):
        """A daemon that knows nothing of what was followed before."""
        if self.opened:
            self.followers.end()
        self.api = Api()
        self.followers = Followers(self.api, {"workloads": self.space}, self.clock, SeededDice())

    async def _answer(self, subject, question, _seconds, _put=None):
        answer = await self.api.answer(subject, question)
        if self.lost and subject.endswith(NEWS_VERB):
            self.lost -= 1
            return await self.api.answer(subject, question)
        return answer

    @asynccontextmanager
    async def calling(self):
        self.opened += 1
        if self.opened == 2:
            raise NotRunning(self.session.data_dir.folder)
        yield self.session.call

    @asynccontextmanager
    async def followed(self):
        """What a command is told, while it follows."""
        told = asyncio.Queue()
        space = AskedSpace(self.session.call, "workloads", self.calling, self.clock)
        async with asyncio.TaskGroup() as group:
            following = group.create_task(space.follow(Interests({CONFIGS}), told.put))
            yield told
            following.cancel()

    async def begin(self):
        begun = await self.session.call(FOLLOW_VERB, name="workloads", interests=None)
        return begun["follower"]

    async def news(self, follower, after=0):
        return await self.session.call(NEWS_VERB, follower=follower, after=after)


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path)
    yield made
    made.followers.end()


async def until(told, wanted):
    """The first event of this kind."""
    async with asyncio.timeout(60):
        while not isinstance(event := await told.get(), wanted):
            pass
    return event


async def test_a_command_is_told_what_there_is_and_then_each_change(world):
    await world.space.apply(config("a"), "me")
    async with world.followed() as told:
        listed = await until(told, ObjectsListed)
        assert [key.name for key in listed.objects] == ["a"]
        await until(told, Synced)
        for value in ("1", "2"):
            await world.space.apply(config("a", value), "me")
            change = await until(told, ObjectChange)
            assert (change.kind, change.object["data"]) == ("modified", {"key": value})


async def test_an_answer_that_is_lost_is_given_again(world):
    async with world.followed() as told:
        await until(told, Synced)
        world.lost = 3
        for value in range(6):
            await world.space.apply(config("a", str(value)), "me")
            change = await until(told, ObjectChange)
            assert change.object["data"] == {"key": str(value)}
    follower = await world.begin()
    first = await world.news(follower)
    assert await world.news(follower) == first
    await world.space.apply(config("b"), "me")
    assert (await world.news(follower, first["number"]))["number"] == first["number"] + 1


async def test_after_a_restart_it_is_listed_again(world):
    async with world.followed() as told:
        await until(told, Synced)
        world.restart()
        await world.space.apply(config("late"), "me")
        listed = await until(told, ObjectsListed)
        assert [key.name for key in listed.objects] == ["late"]
    assert world.opened == 3


async def test_what_ends_it_is_raised(world):
    async def follow(_interests, _tell):
        raise AnotherSpace("Gone", "it is another one now")

    world.space.follow = follow
    space = AskedSpace(world.session.call, "workloads", world.calling, world.clock)
    with pytest.raises(AnotherSpace, match="another one now"):
        await space.follow(Interests({CONFIGS}), print)


async def test_who_follows_no_more_leaves_its_place(world):
    async with world.followed() as told:
        await until(told, Synced)
        assert len(world.followers._followers) == 1
    assert not world.followers._followers


async def test_a_space_that_is_none_is_refused_by_name(world):
    space = AskedSpace(world.session.call, "cellar", world.calling, world.clock)
    with pytest.raises(SpaceError, match="cellar"):
        await space.follow(Interests({CONFIGS}), print)


async def test_who_asks_no_more_is_followed_for_no_more(world):
    silent, asking = await world.begin(), await world.begin()
    world.clock.ahead += FORGOTTEN_SECONDS - 1
    await world.news(asking)
    world.clock.ahead += 2
    await world.begin()
    with pytest.raises(CallFailed, match="no more"):
        await world.news(silent)
    assert await world.news(asking, 0)


async def test_of_too_many_who_asks_no_more_goes_and_nobody_who_still_asks(world):
    silent = await world.begin()
    world.clock.ahead += ASKING_SECONDS + 1
    asking = [await world.begin() for _ in range(FOLLOWERS_MAX)]
    with pytest.raises(CallFailed, match="no more"):
        await world.news(silent)
    with pytest.raises(CallFailed, match=f"{FOLLOWERS_MAX} commands follow") as refused:
        await world.begin()
    assert refused.value.code == "Busy"
    assert await world.news(asking[0])


async def test_a_command_that_finds_no_room_says_so_and_tries_again_ever_later(world):
    paused, said = [], []

    class Clock(HandClock):
        async def sleep(self, seconds):
            paused.append(seconds)
            if len(paused) == 4:
                world.clock.ahead += ASKING_SECONDS + 1

    for _ in range(FOLLOWERS_MAX):
        await world.begin()
    world.opened = 2
    told = asyncio.Queue()
    space = AskedSpace(world.session.call, "workloads", world.calling, Clock(), said.append)
    async with asyncio.TaskGroup() as group:
        following = group.create_task(space.follow(Interests({CONFIGS}), told.put))
        await until(told, Synced)
        following.cancel()
    assert paused == [0.25, 0.5, 1.0, 2.0]
    assert len(said) == 4
    assert "commands follow" in said[0]
    assert "trying again" in said[0]


def test_however_many_follow_other_questions_are_answered():
    assert 2 * FOLLOWERS_MAX <= ANSWERS_AT_ONCE
