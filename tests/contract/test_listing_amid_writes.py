"""A list amid writes: it ends, lacks nothing that was there throughout, says nothing twice."""

import asyncio
import random
from contextlib import aclosing

import pytest

from relay.adapters.spaces.bucket import LOOKS_MAX, Bucket
from schemas.objects.objects import ObjectKey
from tests.contract.spaces import config_map, embedded

NAMES = ("a", "b", "c", "d")
GONE = ObjectKey("", "configmaps", "shop", "gone")
LIST_SECONDS = 30
"""One that waits for what does not come waits for ever."""


async def listed(space):
    """What a list says of each object: its name and its value."""
    async with asyncio.timeout(LIST_SECONDS):
        found = (await space.list("", "configmaps")).objects
    return [(obj["metadata"]["name"], obj["data"]["value"]) for obj in found]


async def put(space, name, value):
    await space.apply(config_map(name, value=str(value)), "me")


@pytest.mark.nats
async def test_what_is_written_anew_before_it_was_read_is_listed_once(nats_url, clock, monkeypatch):
    """The server's own list by last value stands still then, and its count of what is left errs."""
    async with embedded(nats_url, clock) as space:
        for name in (*NAMES, "gone"):
            await put(space, name, 1)
        honest = Bucket._batches

        async def written_to_before(bucket, *asked):
            for name in NAMES[1:]:
                await put(space, name, 2)
            await space.delete(GONE)
            async with aclosing(honest(bucket, *asked)) as messages:
                async for message in messages:
                    yield message

        monkeypatch.setattr(Bucket, "_batches", written_to_before)
        assert await listed(space) == [("a", "1"), ("b", "2"), ("c", "2"), ("d", "2")]


@pytest.mark.nats
async def test_a_list_of_a_space_that_is_never_quiet_ends(nats_url, clock, monkeypatch):
    async with embedded(nats_url, clock) as space:
        for name in NAMES:
            await put(space, name, 1)
        honest, looks = Bucket._last_matching, 0

        async def written_to_before(bucket, pattern):
            nonlocal looks
            looks += 1
            await put(space, f"new-{looks:02}", 1)
            return await honest(bucket, pattern)

        monkeypatch.setattr(Bucket, "_last_matching", written_to_before)
        names = [name for name, _ in await listed(space)]
        assert names == [*NAMES, *(f"new-{at + 1:02}" for at in range(looks))]
        assert looks == LOOKS_MAX + 1


async def test_lists_amid_writes_lack_nothing_and_say_nothing_twice(space):
    """Objects that are written anew all the time, and are never gone."""
    dice = random.Random(0)
    for name in NAMES:
        await put(space, name, 0)

    async def write():
        for value in range(dice.randint(1, 6)):
            await asyncio.sleep(dice.random() * 0.004)
            await put(space, dice.choice(NAMES), value)

    async def read():
        await asyncio.sleep(dice.random() * 0.006)
        assert tuple(name for name, _ in await listed(space)) == NAMES

    for _ in range(60):
        async with asyncio.TaskGroup() as group:
            for work in (write, write, read, read, read, read):
                group.create_task(work())
