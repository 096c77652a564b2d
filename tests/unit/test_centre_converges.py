"""However often the centre restarts, and whatever happens: the ledger ends where the space ends."""

import random

import pytest

from controllers.core.workloads.selection import rules_of
from schemas.api.parsing import parse_wish
from schemas.objects.objects import BUILT_IN_KINDS
from schemas.records.records import DeltaHead
from tests.unit.centre_world import Centre, config, config_key, placement, placement_key

pytestmark = pytest.mark.leaps

STEPS = 40


@pytest.fixture
def centre(tmp_path):
    return Centre(tmp_path / "keys")


async def act(centre, chance):
    """One thing that a user does."""
    name, label = chance.choice("abcdef"), chance.choice("xy")
    match chance.randrange(6):
        case 0 | 1:
            await centre.apply(config(name, value=str(chance.random()), to=label))
        case 2:
            await centre.apply(config(name, to=label))
        case 3:
            await centre.wds.delete(config_key(name))
        case 4:
            clause = {"labelSelectors": [{"matchLabels": {"to": chance.choice("xy")}}]}
            await centre.apply(placement(chance.choice("pq"), clause))
        case _:
            await centre.wds.delete(placement_key(chance.choice("pq")))


async def wanted(centre):
    """What each placement selects, by going through everything."""
    objects = (await centre.wds.list()).objects
    keyed = {BUILT_IN_KINDS.key_of(obj): obj for obj in objects}
    found = {}
    for key, obj in keyed.items():
        if key.resource == "edgeplacements":
            rules = rules_of(parse_wish(obj).spec)
            found[key.name] = {
                other.name
                for other, item in keyed.items()
                if other.resource == "configmaps"
                and rules.flags_of(other, item["metadata"].get("labels", {}), None) is not None
            }
    return found


async def in_force(centre, controllers):
    return {
        record.source.name: set(await centre.relay.entries(record))
        for record in controllers.issuer.records.values()
        if isinstance(record, DeltaHead)
    }


@pytest.mark.parametrize("seed", range(6))
async def test_the_ledger_ends_where_the_space_ends(centre, seed):
    chance = random.Random(seed)
    # So that no kind ever vanishes: a deletion that nobody watched would be held.
    await centre.apply(config("kept", to="z"), placement("r", {"objectNames": ["kept"]}))
    for _ in range(4):
        async with centre.running() as controllers:
            for _ in range(STEPS // 4):
                await act(centre, chance)
            goal = await wanted(centre)

            async def reached(_, goal=goal, controllers=controllers):
                return await in_force(centre, controllers) == goal

            try:
                await centre.relay.until(reached)
            except TimeoutError:
                pytest.fail(
                    f"{await in_force(centre, controllers)} instead of {goal}; {controllers.errors}"
                )
