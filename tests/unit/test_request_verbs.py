"""What a person asks of a Rollout, or says of an edge, is written on what was read."""

import asyncio
import json

import pytest

from leafcast.ask.maintenance import MAINTAIN
from leafcast.ask.rollouts import REQUEST
from relay.space_errors import SpaceError
from schemas.objects.annotations import ROLLOUT_REQUEST
from schemas.objects.objects import ObjectKey
from schemas.values.groups import DENATURED_GROUP, GROUP, VERSION
from tests.contract.spaces import HandClock, SeededDice
from tests.doubles.changing_daemon import ChangingDaemon
from tests.doubles.memory_space import MemorySpace

ROLLOUT = ObjectKey(DENATURED_GROUP, "rollouts", "", "r")
TARGET = ObjectKey(GROUP, "synctargets", "", "t")


class Interrupted(MemorySpace):
    """Has others write between a reading and the writing that follows from it."""

    def __init__(self):
        super().__init__(HandClock(), SeededDice())
        self.readers, self.all_read = 1, asyncio.Event()
        self.between = []

    async def get(self, key):
        obj = await super().get(key)
        self.readers -= 1
        if self.readers <= 0:
            self.all_read.set()
        await self.all_read.wait()
        if self.between:
            await self.between.pop()()
        return obj


@pytest.fixture
async def spaces():
    workloads, inventory = Interrupted(), Interrupted()
    rollout = {"apiVersion": "leafcast.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "r"}}
    await workloads.apply(rollout | {"spec": {"placement": {"name": "shop"}}}, "me")
    target = {"apiVersion": f"{GROUP}/{VERSION}", "kind": "SyncTarget", "metadata": {"name": "t"}}
    await inventory.apply(target, "me")
    return workloads, inventory


def pause(number):
    return {"rollout": "r", "request": {"id": number, "action": "pause"}}


async def test_of_two_requests_at_once_one_is_refused_and_the_other_stays(spaces):
    spaces[0].readers = 2
    daemon = ChangingDaemon(*spaces)
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(daemon.call(REQUEST, **pause(number))) for number in ("1", "2")]
    answers = [task.result() for task in asked]
    assert sorted(answer.get("code", "") for answer in answers) == ["", "Conflict"]
    obj = await spaces[0].get(ROLLOUT)
    assert json.loads(obj["metadata"]["annotations"][ROLLOUT_REQUEST])["id"] == str(
        1 + answers.index({})
    )


async def test_a_request_is_written_though_the_rollout_was_changed_meanwhile(spaces):
    async def change():
        await spaces[0].set_status(ROLLOUT, {"phase": "Progressing"})

    spaces[0].between.append(change)
    assert await ChangingDaemon(*spaces).call(REQUEST, **pause("1")) == {}
    assert (await spaces[0].get(ROLLOUT))["metadata"]["annotations"][ROLLOUT_REQUEST]


async def test_a_synctarget_that_is_deleted_meanwhile_is_not_made_anew(spaces):
    async def delete():
        await spaces[1].delete(TARGET)

    spaces[1].between.append(delete)
    answer = await ChangingDaemon(*spaces).call(MAINTAIN, targets=["t"], until_ms=1)
    assert answer["refused"]["kind"] == "Conflict"
    with pytest.raises(SpaceError, match="there is no such object"):
        await spaces[1].set_status(TARGET, {})
