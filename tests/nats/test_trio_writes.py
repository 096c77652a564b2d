"""Through an election all that is written is written once; else it is said what became of it."""

import asyncio
import os
import signal
from contextlib import AsyncExitStack, contextmanager

import pytest

from relay.adapters.jetstream.fence import FencedPublisher, Unconfirmed
from relay.adapters.spaces import entry_writes
from relay.adapters.spaces.bucket import stream_of
from relay.space_errors import SpaceError
from schemas.objects.objects import ObjectKey
from tests.awaiting import eventually
from tests.nats.conftest import Grove
from tests.nats.test_trio_fence import KEPT, asked, client_at, config_map, space_of
from tests.nats.trio import NAMES, trio

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(120)]

STREAM = stream_of("workloads")


class LosingAnswers:
    """Publishes, and loses so many answers."""

    def __init__(self, fenced: FencedPublisher) -> None:
        self._fenced, self.left = fenced, 0

    async def publish(self, messages, answer_seconds=None):
        answer = await self._fenced.publish(messages, answer_seconds)
        if self.left:
            self.left -= 1
            raise Unconfirmed("the answer was lost")
        return answer


@pytest.fixture
async def members(tmp_path):
    async with Grove(tmp_path) as grove, trio(grove, tmp_path) as members:
        yield members


@pytest.fixture
async def stack():
    async with AsyncExitStack() as stack:
        yield stack


@contextmanager
def frozen(members, *names):
    """Their servers stand still."""
    pids = [members.servers[name].pid for name in names]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


async def leader(members):
    """The member whose server leads the bucket."""
    async with client_at(members.url("m1"), members.seeds.space) as client:
        found = await asked(client, f"STREAM.INFO.{STREAM}")
    return found["cluster"]["leader"].rpartition(".")[2]


async def test_what_is_written_while_the_leader_stands_still_is_there_once_or_refused(
    members, stack
):
    lost = await leader_once_made(members, stack)
    here = next(name for name in NAMES if name != lost)
    space = await space_of(members, here, "two", stack)
    first = await space.apply(config_map("kept"), "me")
    keys = [KEPT, *(ObjectKey("", "configmaps", KEPT.namespace, f"more-{n}") for n in range(3))]
    with frozen(members, lost):
        made = await asyncio.gather(
            space.apply(config_map("kept", "new"), "me"),
            *(space.apply(config_map(key.name), "me") for key in keys[1:]),
            return_exceptions=True,
        )
    for key, said in zip(keys, made, strict=True):
        there = said
        if isinstance(said, SpaceError):
            # What it was to be made from was asked of the server that stood still.
            assert str(said).endswith("; accepted: nothing")
            there = first if key == KEPT else None
        elif key == KEPT:
            assert said["metadata"]["uid"] == first["metadata"]["uid"]
        # Who stood still catches up, and may be the one that is asked.
        await eventually(lambda it=key, there=there: holds(space, it, there), f"{key} is lost")


async def holds(space, key, there) -> bool:
    try:
        return await space.get(key) == there
    except SpaceError:
        return False


async def leader_once_made(members, stack):
    await space_of(members, "m1", "one", stack)
    return await leader(members)


async def test_what_landed_without_an_answer_is_what_it_is(members, stack):
    space = await space_of(members, "m1", "one", stack)
    losing = space._bucket._fenced = LosingAnswers(space._bucket._fenced)
    losing.left = 1
    made = await space.apply(config_map("kept"), "me")
    assert made == await space.get(KEPT)
    losing.left = 1
    assert await space.delete(KEPT)
    assert await space.get(KEPT) is None
    assert not await space.delete(KEPT)


async def test_without_two_of_three_it_says_what_became_of_a_write(members, stack, monkeypatch):
    monkeypatch.setattr(entry_writes, "AGAIN_SECONDS", 1.0)
    monkeypatch.setattr(entry_writes, "ANSWER_SECONDS", 0.5)
    lost = await leader_once_made(members, stack)
    others = [name for name in NAMES if name != lost]
    space = await space_of(members, lost, "two", stack)
    made = await space.apply(config_map("kept"), "me")
    with frozen(members, *others), pytest.raises(SpaceError) as failure:
        await space.apply(config_map("kept", "new"), "me")
    said = str(failure.value)
    assert said.startswith(f"{KEPT}: the space workloads is not served now ("), said
    assert said.endswith("; whether it was written is not known"), said
    again = await space.apply(config_map("kept", "new"), "me")
    assert again["metadata"]["uid"] == made["metadata"]["uid"]
