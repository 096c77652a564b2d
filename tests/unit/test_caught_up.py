"""What was applied before a wait counts in it: no earlier state is taken for the one awaited."""

import asyncio
import json

import pytest

from controllers.work_queue import WorkQueue
from controllers.workloads.preparation import Preparation
from leafcast.ask.api import Api
from leafcast.daemon.verbs.tree import TreeVerbs
from leafcast.daemon.verbs.waits import register_wait
from relay.shell.inbox import Inbox
from schemas.objects.objects import ObjectKey
from schemas.values.identity import NodePath
from tests.leaping_time import LoopClock
from tests.memory_tree import config_map, memory_tree, placement

pytestmark = pytest.mark.leaps


class Runtime:
    def __init__(self, driver):
        self.driver = driver
        self.attached = None

    @property
    def node(self):
        return self.driver.node

    async def running(self):
        return self.driver


class Tree:
    """A tree in memory as the verbs of the daemon see one."""

    def __init__(self, grown):
        self.controllers = grown.controllers
        self.workloads = grown.workloads
        self.nodes = {path: Runtime(driver) for path, driver in grown.drivers.items()}

    async def changed(self):
        await asyncio.Event().wait()  # Its nodes run as long as the test does.


@pytest.fixture
async def tree(tmp_path):
    async with memory_tree(tmp_path, ["/r1", "/r1/s1", "/r1/s2"]) as grown:
        yield grown


async def waited(tree, names, condition="synced", timeout=60.0):
    api = Api()
    register_wait(api, Tree(tree), tree.clock)
    asked = json.dumps({"placements": names, "conditions": [condition], "timeout": timeout})
    return json.loads(await api.answer("leafcast.api.wait", asked.encode()))


async def test_a_change_applied_just_before_has_arrived_everywhere_when_the_wait_ends(tree):
    await tree.apply(placement("shop", "shop"))
    edges = [NodePath.parse(path) for path in ("/r1/s1", "/r1/s2")]
    for at in range(10):
        await tree.apply(config_map("settings", "shop", text=str(at)))
        answer = await waited(tree, ["shop"])
        assert answer["result"]["met"] == ["shop"]
        for edge in edges:
            held = await tree.spaces[edge].get(ObjectKey("", "configmaps", "shop", "settings"))
            assert held["data"] == {"text": str(at)}
        key = ObjectKey("edge.kubestellar.io", "edgeplacements", "", "shop")
        status = (await tree.workloads.get(key))["status"]
        assert (status["synced"], status["complete"]) == (2, True)


async def test_where_a_placement_goes_is_asked_of_its_newest_selectors(tree, monkeypatch):
    """What the centre issued its relay has still to read: it reads late here."""
    next_batch = Inbox.next_batch

    async def late(inbox, *arguments):
        batch = await next_batch(inbox, *arguments)
        await asyncio.sleep(0.05)
        return batch

    monkeypatch.setattr(Inbox, "next_batch", late)
    nobody = [{"matchLabels": {"nonesuch": "x"}}]
    await tree.apply(config_map("settings", "shop"))
    for name in ("a", "b", "c"):
        await tree.apply(placement(name, "shop", locationSelectors=nobody))
        answer = await waited(tree, [name])
        assert answer["error"]["code"] == "NoDestinations"
        await tree.apply(placement(name, "shop"))
        answer = await waited(tree, [name])
        assert answer["result"]["met"] == [name]


async def test_a_placement_applied_just_before_is_known_to_who_asks_for_its_status(tree):
    verbs = TreeVerbs(Tree(tree), None, None, tree.clock, str)
    await tree.apply(placement("shop", "shop"))
    [form] = (await verbs.status("shop"))["placements"]
    assert form["name"] == "shop"


async def test_a_centre_that_starts_again_lists_what_there_is_before_it_tells_of_it(tree):
    await tree.apply(placement("shop", "shop"), config_map("settings", "shop"))
    await waited(tree, ["shop"])
    await tree.stop_controllers()
    await tree.control(tree.group)
    [form] = (await TreeVerbs(Tree(tree), None, None, tree.clock, str).status())["placements"]
    assert (form["name"], form["selected"]) == ("shop", 1)


async def test_who_waits_for_the_ledger_waits_for_what_takes_long_to_prepare(tree, monkeypatch):
    rounds, prepare = 0, Preparation.prepare

    async def slowly(preparation, placements, names, is_sealed):
        nonlocal rounds
        rounds += "shop" in names
        waiting = await prepare(preparation, placements, names, is_sealed)
        return waiting | (names & {"shop"} if rounds < 4 else frozenset())

    monkeypatch.setattr(Preparation, "prepare", slowly)
    await tree.apply(placement("shop", "shop"), config_map("settings", "shop"))
    async with asyncio.timeout(60):
        await tree.controllers.caught_up()
    assert rounds >= 4
    assert tree.controllers.translator.placements.in_force("shop")


async def test_a_placement_without_destinations_is_never_synced(tree):
    nowhere = placement("shop", "shop")
    nowhere["spec"]["locationSelectors"] = [{"matchLabels": {"region": "none"}}]
    await tree.apply(nowhere, config_map("settings", "shop"))
    answer = await waited(tree, ["shop"])
    assert answer["error"]["code"] == "NoDestinations"


async def test_a_placement_that_does_not_exist_is_told_at_once(tree):
    answer = await waited(tree, ["nope"])
    assert answer["error"]["code"] == "NotFound"
    assert "nope" in answer["error"]["message"]


async def test_work_is_done_when_the_worker_comes_back_for_more():
    queue = WorkQueue(LoopClock())
    queue.add(["a"])
    queue.read_to("7.1234")
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        done = group.create_task(queue.wait_caught_up("7"))
        late = group.create_task(queue.wait_caught_up("8.1"))
        assert await queue.take() == {"a"}
        assert not done.done()
        worker = group.create_task(queue.take())
        await done
        assert not late.done()
        queue.read_to("9")
        await late
        worker.cancel()


async def test_what_failed_is_reconciled_again_and_holds_up_nothing_else():
    queue, seen = WorkQueue(LoopClock()), []

    async def reconcile(keys):
        seen.append(set(keys))
        return ["a"] if len(seen) == 1 else []

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        worker = group.create_task(queue.work(reconcile))
        queue.add(["a"])
        await queue.wait_caught_up()
        queue.add(["b"])
        await queue.wait_caught_up()
        assert seen == [{"a"}, {"b"}]
        while len(seen) < 3:
            await queue.wait_caught_up()
            await asyncio.sleep(0.05)
        worker.cancel()
    assert seen[2] == {"a"}
