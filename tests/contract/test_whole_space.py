"""What a space with one revision and one watch over all that it holds promises beyond others."""

import asyncio
from contextlib import aclosing

import pytest

from relay.space_errors import ResumeTooOld, SpaceError
from schemas.objects.objects import ObjectKey
from tests.contract.conftest import NAMESPACES
from tests.contract.spaces import config_map, noise

SETTINGS = ObjectKey("", "configmaps", "shop", "settings")


async def changes(space, since, count):
    seen = []
    async with asyncio.timeout(60), aclosing(space.watch(since)) as watched:
        async for change in watched:
            seen.append(change)
            if len(seen) == count:
                break
    return seen


async def test_an_empty_space_lists_nothing(space):
    for name in NAMESPACES:
        await space.delete(ObjectKey("", "namespaces", "", name))
    assert (await space.list()).objects == ()


async def test_a_watch_goes_on_without_a_gap_after_a_list(space):
    await space.apply(config_map("old"), "me")
    since = (await space.list()).revision
    await space.apply(config_map("new"), "me")
    await space.apply(config_map("old", a="1"), "me")
    await space.delete(ObjectKey("", "configmaps", "shop", "new"))
    seen = await changes(space, since, 2)
    assert [(change.kind, change.key.name) for change in seen] == [
        ("modified", "old"),
        ("deleted", "new"),
    ]
    [last] = await changes(space, seen[0].revision, 1)
    assert (last.kind, last.key) == (seen[1].kind, seen[1].key)


async def test_a_watch_tells_what_happens_while_it_runs(space):
    since = (await space.list()).revision
    async with asyncio.timeout(60), aclosing(space.watch(since)) as watched:
        made = await space.apply(config_map(a="1"), "me")
        change = await anext(watched)
        assert (change.kind, change.key, change.object) == ("added", SETTINGS, made)
        await space.apply(config_map(a="2"), "me")
        assert (await anext(watched)).kind == "modified"
        await space.delete(SETTINGS)
        gone = await anext(watched)
        assert (gone.kind, gone.object["metadata"]["uid"]) == ("deleted", made["metadata"]["uid"])
        await space.apply(config_map(a="3"), "me")
        assert (await anext(watched)).kind == "added"


async def test_a_resume_older_than_what_is_surely_known_is_refused(space, clock):
    since = (await space.list()).revision
    await space.apply(config_map(), "me")
    await space.delete(SETTINGS)
    clock.ahead += 3 * 3600
    await space.apply(config_map("other"), "me")
    await space.delete(ObjectKey("", "configmaps", "shop", "other"))
    with pytest.raises(ResumeTooOld):
        await changes(space, since, 1)


@pytest.mark.parametrize("since", ["nonsense", "999999", ""])
async def test_a_resume_from_what_never_was_is_refused(space, since):
    with pytest.raises(ResumeTooOld):
        await changes(space, since, 1)


async def test_an_object_over_the_limit_is_refused_with_size_and_limit(space):
    with pytest.raises(SpaceError, match="at most 1572864") as refused:
        await space.apply(config_map(a="x" * 1_600_000), "me")
    assert refused.value.reason == "RequestEntityTooLarge"


async def test_a_watch_tells_of_large_objects_what_it_tells_of_small_ones(space):
    since = (await space.list()).revision
    async with asyncio.timeout(60), aclosing(space.watch(since)) as watched:
        made = await space.apply(config_map(a=noise(1)), "me")
        change = await anext(watched)
        assert (change.kind, change.object) == ("added", made)
        small = await space.apply(config_map(a="small"), "me")
        assert (await anext(watched)).object == small
        await space.apply(config_map(a=noise(2)), "me")
        assert (await anext(watched)).object["data"] == {"a": noise(2)}
        await space.delete(SETTINGS)
        gone = await anext(watched)
        assert (gone.kind, gone.object["data"]) == ("deleted", {"a": noise(2)})
        await space.apply(config_map(a=noise(3)), "me")
        assert (await anext(watched)).kind == "added"
    [last] = await changes(space, since, 1)
    assert last.object["data"] == {"a": noise(3)}
