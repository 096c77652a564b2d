"""Waiting for a share of the destinations, for all but some, and until it is ready."""

import asyncio
import json

import pytest

from leafcast.ask.api import Api
from leafcast.daemon.verbs import waits
from leafcast.daemon.verbs.waits import register_wait
from relay.space_errors import SpaceError
from schemas.values.identity import NodePath
from tests.doubles.memory_space import MemorySpace
from tests.memory_tree import config_map, memory_tree, placement
from tests.unit.test_caught_up import Tree

pytestmark = pytest.mark.leaps

REFUSING = NodePath.parse("/r1/s2")
TIME_UP = 0.5


class Refusing(MemorySpace):
    """A cluster whose rights do not suffice for ConfigMaps, until they do."""

    refuses = True

    async def apply(self, obj, manager, **options):
        if self.refuses and obj["kind"] == "ConfigMap":
            raise SpaceError("Forbidden", "configmaps is forbidden")
        return await super().apply(obj, manager, **options)


@pytest.fixture
async def tree(tmp_path):
    """One of its two edges takes no ConfigMaps."""

    def prepare(tree):
        tree.spaces[REFUSING] = Refusing(tree.clock, tree.dice)

    async with memory_tree(tmp_path, ["/r1", "/r1/s1", "/r1/s2"], prepare=prepare) as grown:
        await grown.apply(placement("shop", "shop"), config_map("settings", "shop"))
        yield grown


async def asked(tree, *conditions, placements=("shop",), timeout=60.0, **said):
    api = Api()
    register_wait(api, Tree(tree), tree.clock)
    words = {"placements": list(placements), "conditions": list(conditions), "timeout": timeout}
    return json.loads(await api.answer("leafcast.api.wait", json.dumps({**words, **said}).encode()))


async def test_a_share_is_enough_and_more_than_there_is_never_comes(tree):
    half = await asked(tree, "synced", at_least="50%")
    assert half["result"]["met"] == ["shop"]
    for more in ("51%", "100%", ""):
        answer = await asked(tree, "synced", at_least=more, timeout=TIME_UP)
        assert answer["result"]["met"] == []


async def test_all_conditions_have_to_be_met_and_without_names_by_all_placements(tree):
    secret = {**config_map("a", "other"), "kind": "Secret", "data": {"a": "YQ=="}}
    await tree.apply(placement("other", "other"), secret)
    both = await asked(tree, "synced", "healthy", placements=["other"])
    assert both["result"]["met"] == ["other"]
    every = await asked(tree, "synced", placements=[], at_least="50%")
    assert every["result"]["met"] == ["other", "shop"]
    whole = await asked(tree, "synced", placements=[], timeout=TIME_UP)
    assert whole["result"]["met"] == ["other"]


async def test_who_is_excepted_is_named_so_that_it_can_be_looked_up(tree):
    without = [{"matchLabels": {"id": "r1-s2"}}]
    answer = await asked(tree, "synced", excepted=without)
    [form] = answer["result"]["placements"]
    assert (answer["result"]["met"], form["excepted"]) == (["shop"], ["/r1/s2"])
    none = await asked(tree, "synced", excepted=[{"matchLabels": {"id": "x"}}], timeout=TIME_UP)
    assert none["result"]["met"] == []


async def test_to_except_everyone_is_refused(tree):
    answer = await asked(tree, "synced", excepted=[{"matchLabels": {"region": "r1"}}])
    assert answer["error"]["code"] == "Invalid"
    assert "all of its destinations are excepted" in answer["error"]["message"]


async def test_a_wait_for_ready_goes_on_while_an_edge_refuses_and_ends_at_once_if_it_is_wrong(tree):
    answer = await asked(tree, "ready", timeout=TIME_UP)
    [form] = answer["result"]["placements"]
    assert answer["result"]["met"] == []
    assert "configmaps is forbidden" in form["ready"]
    tree.spaces[REFUSING].refuses = False
    answer = await asked(tree, "ready")
    assert answer["result"]["met"] == ["shop"]
    assert "2 of 2 destinations" in answer["result"]["placements"][0]["ready"]
    wrong = placement("shop", "shop", readiness={"maxUnavailable": "all"})
    await tree.apply(wrong)
    answer = await asked(tree, "ready")
    assert answer["error"]["code"] in ("Held", "Stalled")
    assert "readiness.maxUnavailable" in answer["error"]["message"]


async def test_what_goes_nowhere_is_not_waited_for(tree):
    nowhere = {"locationSelectors": [{"matchLabels": {"region": "none"}}]}
    await tree.apply(placement("far", "shop", **nowhere))
    for condition in ("synced", "healthy", "ready"):
        answer = await asked(tree, condition, placements=["far"])
        assert answer["error"]["code"] == "NoDestinations"
        assert "match no Location that has a SyncTarget" in answer["error"]["message"]
        assert answer["error"]["remedy"].startswith("next: leafcast get ")
    await tree.apply(placement("far", "shop", **nowhere, readiness={"allowEmpty": True}))
    assert (await asked(tree, "ready", placements=["far"]))["result"]["met"] == ["far"]


MANY = [config_map(f"c{number}", "many") for number in range(8)]


def narrowed(*, to, **annotations):
    obj = placement("many", "many")
    obj["metadata"]["annotations"] = annotations
    if to:
        obj["spec"]["downsync"] = [{"namespaces": ["many"], "objectNames": [to]}]
    return obj


async def test_a_held_removal_that_goes_by_itself_is_waited_for(tree):
    tree.spaces[REFUSING].refuses = False
    await tree.apply(narrowed(to=""), *MANY)
    assert (await asked(tree, "synced", placements=["many"]))["result"]["met"] == ["many"]
    await tree.apply(narrowed(to="c0"))
    answer = await asked(tree, "synced", placements=["many"])
    assert "is held: RemovalHeld" in answer["error"]["message"]
    await tree.apply(narrowed(to="nothing-there"))
    answer = await asked(tree, "synced", placements=["many"])
    assert "is held: RemovalHeld" in answer["error"]["message"]
    assert "leafcast accept" in answer["error"]["remedy"]
    await tree.apply(narrowed(to="c0", **{"leafcast.io/removal-grace": "2s"}))
    answer = await asked(tree, "synced", "ready", placements=["many"])
    assert answer["result"]["met"] == ["many"]
    assert answer["result"]["placements"][0]["held"] == []


@pytest.mark.parametrize("wrong", ["0%", "101%", "abc"])
async def test_no_share_is_a_clear_error_of_the_tree_too(tree, wrong):
    answer = await asked(tree, "synced", at_least=wrong)
    assert answer["error"]["code"] == "Invalid"
    assert wrong in answer["error"]["message"]
    assert "such as 95%" in answer["error"]["remedy"]


class Behind:
    """A centre that does not know for long what was applied."""

    def __init__(self, controllers, known):
        self._controllers = controllers
        self._known = known

    def __getattr__(self, name):
        return getattr(self._controllers, name)

    async def caught_up(self):
        await self._known.wait()


async def test_who_does_not_know_in_time_what_was_applied_says_of_nothing_that_it_is_met(
    tree, monkeypatch
):
    assert (await asked(tree, "synced", at_least="50%"))["result"]["met"] == ["shop"]
    known = asyncio.Event()
    monkeypatch.setattr(tree, "controllers", Behind(tree.controllers, known))
    monkeypatch.setattr(waits, "CATCH_UP_SECONDS", 0.1)
    answer = await asked(tree, "synced", at_least="50%", timeout=0.1)
    assert answer["result"]["met"] == []
    known.set()
    answer = await asked(tree, "synced", at_least="50%", timeout=0.0)
    assert answer["result"]["met"] == ["shop"]
