"""What is wrong with a Rollout is said with its field and a remedy, before anything changes."""

import pytest

from leafcast.changes.conflicts import second_rollouts
from relay.adapters.clock import SystemClock, SystemDice
from schemas.api.parsing import parse_kind
from schemas.objects.objects import ObjectKey
from schemas.values.faults import InvalidObject
from tests.doubles.memory_space import MemorySpace

ALL = {"name": "all", "percent": 100}


def made(waves=(ALL,), **spec):
    return {
        "apiVersion": "leafcast.io/v1alpha1",
        "kind": "Rollout",
        "metadata": {"name": "shop"},
        "spec": {"placement": {"name": "shop"}, "waves": list(waves), **spec},
    }


def window(cron="0 2 * * 2-5", duration="3h", zone="destination"):
    return {"windows": [{"cron": cron, "duration": duration, "zone": zone}]}


MANY = [{**ALL, "name": f"w{n}", "percent": n} for n in range(1, 23)]
FALLING = [{"name": "a", "percent": 9}, {"name": "b", "percent": 8}]
WRONG = {
    "too many waves": (
        made([{**ALL, "name": f"w{n}", "percent": n} for n in range(1, 23)]),
        "waves",
    ),
    "a name twice": (made([{**ALL, "percent": 5}, ALL]), "spec.waves[1].name"),
    "no percent": (made([{**ALL, "percent": 0}]), "spec.waves[0].percent"),
    "over all": (made([{**ALL, "percent": 101}]), "spec.waves[0].percent"),
    "falling": (
        made([{"name": "a", "percent": 9}, {"name": "b", "percent": 8}]),
        "spec.waves[1].percent",
    ),
    "nobody": (made([{"name": "a"}]), "spec.waves[0]"),
    "no waves": (made([]), "spec.waves"),
    "minimum": (made(success={"minimum": "101%"}), "spec.success.minimum"),
    "soak": (made([{**ALL, "soak": "-1s"}]), "spec.waves[0].soak"),
    "long soak": (made([{**ALL, "soak": "721h"}]), "spec.waves[0].soak"),
    "no rate": (made([{**ALL, "rate": {}}]), "spec.waves[0].rate"),
    "none at a time": (made([{**ALL, "maxConcurrent": "0%"}]), "spec.waves[0].maxConcurrent"),
    "zone": (made(**window(zone="Mars/Base")), "spec.windows[0]"),
    "cron": (made(**window(cron="whenever")), "spec.windows[0]"),
    "never": (made(**window(cron="0 0 31 2 *")), "spec.windows[0]"),
    "history": (made(history=51), "spec.history"),
    "unknown": (made(speed="fast"), "spec.speed"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named_with_field_and_remedy(name):
    obj, path = WRONG[name]
    with pytest.raises(InvalidObject) as raised:
        parse_kind(obj)
    fault = raised.value.faults[0]
    assert path in fault.path
    assert fault.remedy


@pytest.mark.parametrize(
    "spec",
    [
        window(zone="Europe/Berlin"),
        {"success": {"of": "synced", "minimum": "99.5%"}},
        {"failures": {"maximum": 3}},
        {"placement": {"kind": "BindingPolicy", "name": "shop"}},
    ],
)
def test_what_is_right_is_read(spec):
    assert parse_kind(made(**spec)).spec.waves[0].percent == 100


async def test_a_second_rollout_of_a_placement_is_refused():
    space = MemorySpace(SystemClock(), SystemDice())
    first, second = (ObjectKey("leafcast.io", "rollouts", "", name) for name in ("one", "two"))
    obj = made()
    assert await second_rollouts(space, {first: obj}) == []
    await space.apply({**obj, "metadata": {"name": "one"}}, "user")
    assert await second_rollouts(space, {first: obj}) == []
    [(key, said)] = await second_rollouts(space, {second: obj})
    assert key == second
    assert '"one"' in said
    other = made(placement={"kind": "BindingPolicy", "name": "shop"})
    assert await second_rollouts(space, {second: other}) == []
