"""`why` names what stops a copy, of a whole tree in memory that runs the real parts."""

import ast
import asyncio
import json
import random
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest

from leafcast.ask.api import Api
from leafcast.changes.forms import pack_change
from leafcast.daemon.verbs.explaining import WhyVerbs
from leafcast.daemon.verbs.planning import PlanVerbs
from leafcast.show.stages import CopyStage
from relay.core.records.accepted import is_delta
from relay.core.upstream import Upstream
from relay.shell.publisher import CARRIED_MAX_BYTES
from relay.space_errors import SpaceError
from schemas.objects.objects import ObjectKey
from schemas.records.placements import placement_key
from schemas.values.faults import Fault
from schemas.values.groups import API_PLACEMENT
from schemas.values.identity import NodePath, mail_key
from tests.awaiting import eventually
from tests.doubles.memory.keeping_back import KeepingBack
from tests.doubles.memory_space import MemorySpace
from tests.memory_tree import (
    MANAGER,
    LeapingClock,
    config_map,
    inventory,
    memory_tree,
    placement,
)
from tests.namespaces import apply_in_namespaces

pytestmark = pytest.mark.leaps

REGION, ONE, TWO = (NodePath.parse(path) for path in ("/r1", "/r1/s1", "/r1/s2"))
PATHS = ["/r1", "/r1/s1", "/r1/s2"]
SETTINGS = ["", "configmaps", "shop", "settings"]


class Tree:
    """The centre of a tree in memory, as verbs find it."""

    def __init__(self, tree):
        self.controllers, self.workloads = tree.controllers, tree.workloads
        self.nodes = {}

    def hub_troubles(self):
        return {}


class Refusing(MemorySpace):
    """Takes no ConfigMap `refused`, and one that is `slow` only once `awake` is set."""

    def __init__(self, clock, dice):
        super().__init__(clock, dice)
        self.awake = asyncio.Event()

    async def apply(self, obj, manager, **options):
        if obj["metadata"]["name"] == "slow":
            await self.awake.wait()
        if obj["metadata"]["name"] == "refused":
            raise SpaceError("Forbidden", "exceeded quota: object-counts")
        return await super().apply(obj, manager, **options)


@pytest.fixture
async def tree(tmp_path):
    def prepare(tree):
        tree.spaces[ONE] = Refusing(tree.clock, tree.dice)
        tree.clocks[ONE] = LeapingClock()

    async with memory_tree(tmp_path, PATHS, KeepingBack, prepare) as grown:
        await grown.apply(placement("shop", "shop"), config_map("settings", "shop", a="1"))
        await grown.until("shop", lambda c: c.exact and c.summary.states == {"synced": 2})
        yield grown


def liar_of(tree):
    """The region's bus, which lies to the first edge."""
    bus = tree.network.bus(REGION)
    bus.lied_to = ONE.name
    return bus


async def why(tree, path=ONE, **said):
    """The answer, as a command is given it."""
    api = Api()
    api.serve(WhyVerbs(Tree(tree), tree.asks, tree.clock))
    words = json.dumps({"path": str(path), **said}).encode()
    return json.loads(await api.answer("leafcast.api.why", words))


async def stage(tree, path=ONE, **said):
    """The stage and the text of the one explanation."""
    answer = await why(tree, path, **said)
    [found] = answer["result"]["explanations"]
    assert answer["result"]["ok"] == (found["stage"] == "as-meant")
    return found["stage"], found["said"]


async def test_what_is_well_is_as_it_is_meant(tree):
    assert await stage(tree, placement="shop") == ("as-meant", "applied, and healthy")
    assert await stage(tree, object=SETTINGS) == ("as-meant", "applied, and healthy")


async def test_what_is_not_selected_says_which_requirement_and_which_value(tree):
    only = [{"matchLabels": {"id": "r1-s2"}}]
    await tree.apply(placement("there", "there", locationSelectors=only), config_map("a", "there"))
    await tree.until("there", lambda c: c.exact and c.summary.states == {"synced": 1})

    told = 'location.labels.id is "r1-s1" (r1-s1), the placement wants "r1-s2"'
    assert await stage(tree, placement="there") == ("not-selected", told)
    assert await stage(tree, object=["", "configmaps", "there", "a"]) == ("not-selected", told)
    assert (await stage(tree, TWO, placement="there"))[0] == "as-meant"


async def test_an_object_that_no_placement_selects_names_those_that_nearly_do(tree):
    await tree.apply(config_map("a", "elsewhere"))
    await eventually(
        lambda: (
            ObjectKey("", "configmaps", "elsewhere", "a")
            in tree.controllers.translator.workloads.resolver.objects
        )
    )
    said = await stage(tree, object=["", "configmaps", "elsewhere", "a"])
    assert said == ("not-selected", 'its namespace is "elsewhere", the placement wants "shop"')

    gone = await stage(tree, object=["", "configmaps", "shop", "nothing"])
    assert gone == ("not-selected", "shop/configmaps/nothing is not at the centre")


async def test_a_placement_that_selects_nothing_names_what_comes_nearest(tree):
    what = {"apiGroup": "", "namespaces": ["near"], "labelSelectors": [{"matchLabels": {"t": "a"}}]}
    near = config_map("one", "near")
    near["metadata"]["labels"] = {"T": "a"}
    await tree.apply(placement("none", "near", downsync=[what]), near)
    key = ObjectKey("", "configmaps", "near", "one")
    await eventually(lambda: key in tree.controllers.translator.workloads.resolver.objects)

    where, said = await stage(tree, placement="none")
    assert where == "not-selected"
    assert said == (
        "no object is selected; nearest is near/configmaps/one: "
        'metadata.labels.t is not there, "T" is, the placement wants "a"'
    )
    [found] = (await why(tree, placement="none"))["result"]["explanations"]
    assert found["remedy"].startswith("leafcast label configmaps one -n near t=a, or change")


async def test_of_two_placements_that_bring_an_object_each_has_to_be_well(tree, monkeypatch):
    await tree.apply(placement("twin", "shop"))
    await tree.until("twin", lambda c: c.exact and c.summary.states == {"synced": 2})
    assert (await why(tree, object=SETTINGS))["result"]["ok"]
    refused = {ObjectKey(*SETTINGS): Fault("data", "is not taken")}
    monkeypatch.setitem(tree.controllers.translator.placements.refused, "twin", refused)

    found = (await why(tree, object=SETTINGS))["result"]
    assert [each["stage"] for each in found["explanations"]] == ["as-meant", "held"]
    assert (found["ok"], found["more"]) == (False, 0)
    monkeypatch.setattr("leafcast.daemon.verbs.explaining.EXPLAINED_MAX", 1)
    first = (await why(tree, object=SETTINGS))["result"]
    assert (len(first["explanations"]), first["more"]) == (1, 1)


async def test_what_the_cluster_refuses_says_so_and_others_are_well(tree):
    await tree.apply(config_map("refused", "shop"))
    await tree.until("shop", lambda c: c.summary.states == {"synced": 1, "failing": 1})

    refused = await stage(tree, object=["", "configmaps", "shop", "refused"])
    assert refused == ("refused", "Forbidden: exceeded quota: object-counts")
    whole = await stage(tree, placement="shop")
    assert whole[0] == "refused"
    assert "shop/configmaps/refused" in whole[1]
    assert (await stage(tree, object=SETTINGS))[0] == "as-meant"
    assert (await stage(tree, TWO, placement="shop"))[0] == "as-meant"


async def test_what_a_cluster_takes_its_time_for_is_under_way(tree):
    await tree.apply(config_map("slow", "shop"))
    await tree.until("shop", lambda c: c.exact and c.summary.states == {"synced": 1, "pending": 1})

    slow = ["", "configmaps", "shop", "slow"]
    told = "/r1/s1 is about to apply it"
    assert await stage(tree, object=slow) == ("under-way", told)
    assert (await stage(tree, TWO, object=slow))[0] == "as-meant"
    tree.spaces[ONE].awake.set()
    await tree.until("shop", lambda c: c.exact and c.summary.states == {"synced": 2})
    assert (await stage(tree, object=slow))[0] == "as-meant"


async def test_what_another_hub_says_otherwise_is_overridden_and_names_who_counts(tmp_path):
    hubs = []

    def prepare(tree):
        hubs.extend(MemorySpace(tree.clock, tree.dice) for _ in range(2))
        tree.workloads = hubs

    async with memory_tree(tmp_path, PATHS, prepare=prepare) as tree:
        first, second = [await hub.identity() for hub in hubs]
        # Of two hubs the placement counts whose key comes first; commands ask about the first hub.
        counts = mail_key(API_PLACEMENT, second, "", "counts")
        loses = next(
            name
            for name in map("loses-{}".format, count())
            if mail_key(API_PLACEMENT, first, "", name) > counts
        )
        for hub, name in zip(hubs, (loses, "counts"), strict=True):
            said = placement(name, "shop"), config_map("settings", "shop", a=name)
            await apply_in_namespaces(hub, said, MANAGER)

        await eventually_stage(tree, "overridden", placement=loses)
        told = (await stage(tree, placement=loses))[1]
        assert "shop/configmaps/settings: edgeplacement/counts of space " in told
        assert (await stage(tree, object=SETTINGS))[0] == "overridden"


async def test_content_that_is_missing_says_which_blob_and_where(tree):
    tree.network.cut(ONE)
    # More than travels along with a record.
    before = set(tree.network.streams(NodePath()).blobs)
    text = random.Random(1).randbytes(3000).hex()
    await tree.apply(config_map("settings", "shop", text=text))
    await tree.until("shop", lambda c: c.summary.states.get("synced") == 1)
    kept = tree.network.streams(REGION).blobs
    [large] = [it for it in kept.keys() - before if len(kept[it]) > CARRIED_MAX_BYTES]
    genuine, kept[large] = kept[large], b"\0damaged"
    tree.network.heal(ONE)
    counters = tree.drivers[ONE].counters
    await tree.drivers[ONE].until(lambda _: counters.noted["BadBlob"] > 0)

    said = await stage(tree, object=SETTINGS)
    assert said == ("content", f"blob {large[:12]}... is not at /r1/s1")
    kept[large] = genuine
    await tree.until("shop", lambda c: c.exact and c.summary.states == {"synced": 2})
    assert (await stage(tree, object=SETTINGS))[0] == "as-meant"


async def test_what_is_cut_off_waits_for_its_mailbox(tree):
    tree.network.cut(ONE)
    await tree.apply(config_map("settings", "shop", a="2"))
    await tree.until("shop", lambda c: not c.exact)

    found, said = await stage(tree, placement="shop")
    assert (found, "/r1/s1" in said) == ("mailbox", True)
    tree.network.heal(ONE)


async def test_a_node_that_sees_an_old_view_says_so(tree, monkeypatch):
    upstream = tree.drivers[REGION].node._upstream
    assert isinstance(upstream, Upstream)
    monkeypatch.setattr(upstream, "stale", True)
    assert (await stage(tree, placement="shop"))[0] == "stale"


async def test_content_that_a_parent_keeps_back_is_withheld(tree):
    liar_of(tree).content_of = {await tree.placement_key("shop")}
    await tree.apply(config_map("settings", "shop", a="2"))
    await tree.until("shop", lambda c: c.summary.states == {"synced": 1, "failing": 1})

    told = "its content is in force, and missing from the mailbox of /r1/s1 at its parent"
    assert await stage(tree, placement="shop") == ("withheld", told)
    assert await stage(tree, object=SETTINGS) == ("withheld", told)
    assert (await stage(tree, TWO, placement="shop"))[0] == "as-meant"


async def test_a_record_that_a_parent_keeps_back_is_withheld_and_no_lag(tree):
    liar, shop = liar_of(tree), await tree.placement_key("shop")
    liar.all_of = {shop}
    await tree.apply(config_map("settings", "shop", a="2"))
    # It is on its way, as far as anybody knows, until a snapshot that lists it has stood for long.
    await eventually_stage(tree, "mailbox", placement="shop")
    await tree.until("shop", lambda c: c.summary.exceptions, seconds=2_000)

    told = "a newer version is in force, and missing from the mailbox of /r1/s1 at its parent"
    assert await stage(tree, placement="shop") == ("withheld", told)
    [found] = (await why(tree, object=SETTINGS))["result"]["explanations"]
    assert (found["stage"], found["at"]) == ("withheld", "/r1/s1")
    assert found["remedy"].startswith("start the relays above /r1/s1 again")
    assert (await stage(tree, TWO, placement="shop"))[0] == "as-meant"
    liar.show_all()
    await tree.until("shop", lambda c: c.exact and c.summary.states == {"synced": 2})
    assert (await stage(tree, placement="shop"))[0] == "as-meant"


async def test_who_does_not_know_what_it_is_meant_for_does_not_say_what_became_of_it(tree):
    selects = [{"matchLabels": {"tier": "gold"}}]
    await tree.apply(placement("gold", "gold", locationSelectors=selects), config_map("a", "gold"))
    # That it was labelled never comes to the edge.
    liar, held = liar_of(tree), tree.drivers[ONE].node.records
    liar.all_of = {key for key, it in held.items() if not is_delta(it)}
    for obj in inventory([ONE]):
        obj["metadata"]["labels"]["tier"] = "gold"
        await tree.inventory.apply(obj, MANAGER)

    said = "/r1/s1 does not say what became of it"
    await eventually_stage(tree, "unknown", placement="gold")
    assert await stage(tree, placement="gold") == ("unknown", said)
    assert await stage(tree, object=["", "configmaps", "gold", "a"]) == ("unknown", said)
    liar.show_all()
    await tree.until("gold", lambda c: c.exact and c.summary.states == {"synced": 1})
    assert (await stage(tree, placement="gold"))[0] == "as-meant"


async def test_a_clock_that_is_wrong_is_told_of(tree):
    clock = tree.clocks[ONE]
    clock.wall_ahead = 3 * 3600.0
    ahead = "the clock of /r1/s1 is more than two minutes ahead of ours"
    assert await stage(tree, placement="shop") == ("clock", ahead)

    clock.wall_ahead = -2 * 3600.0
    opened = datetime.now(UTC) - timedelta(minutes=30)
    window = {"cron": f"{opened.minute} {opened.hour} * * *", "duration": "6h", "zone": "UTC"}
    await tree.apply(rollout("shop", [{"name": "all", "percent": 100}], windows=[window]))
    await until_rolled(tree, "shop")
    await tree.apply(config_map("settings", "shop", a="2"))
    await tree.until("shop", lambda c: c.summary.states == {"synced": 1, "waiting": 1})
    behind = "the clock of /r1/s1 is 120m behind ours, so a window seems shut"
    assert await stage(tree, placement="shop") == ("clock", behind)
    assert (await stage(tree, object=SETTINGS))[0] == "clock"
    clock.wall_ahead = 0.0
    await tree.until("shop", lambda c: c.exact and c.summary.states == {"synced": 2})
    assert (await stage(tree, placement="shop"))[0] == "as-meant"


async def test_what_lies_there_and_is_nobodys_is_told_of(tree):
    await tree.spaces[TWO].apply(config_map("strange", "shop"), "somebody")
    found, said = await stage(tree, TWO, object=["", "configmaps", "shop", "strange"])
    assert (found, said.partition(":")[0]) == ("surplus", "somebody else put it there")


async def test_who_asks_of_what_is_not_there_is_told_what_there_is(tree):
    relay = (await why(tree, REGION, placement="shop"))["error"]
    assert relay["message"] == "/r1 is a relay, and no destination"
    assert relay["remedy"] == "name one below it, such as /r1/s1"
    nobody = (await why(tree, NodePath.parse("/r9"), placement="shop"))["error"]
    assert nobody["message"] == "no destination hangs at /r9"
    other = (await why(tree, placement="epl/other"))["error"]
    assert (other["message"], other["remedy"]) == (
        'there is no EdgePlacement "other"',
        "there are: epl/shop",
    )
    assert await stage(tree, placement="epl/shop") == ("as-meant", "applied, and healthy")


async def test_a_plan_of_a_place_that_is_not_there_is_refused_and_no_empty_one(tree):
    api = Api()
    api.serve(PlanVerbs(Tree(tree)))

    async def asked(verb, **said):
        return json.loads(await api.answer(f"leafcast.api.{verb}", json.dumps(said).encode()))

    same = await tree.workloads.get(ObjectKey(*SETTINGS))
    change = pack_change({ObjectKey(*SETTINGS): same}, ())
    number = (await asked("plan-make", change=change))["result"]["plan"]
    assert await asked("plan-rows-at", plan=number, path=str(ONE)) == {"result": {"rows": []}}
    for path, said in (("/r1/s9", "no destination hangs at /r1/s9"), ("/r1", "/r1 is a relay")):
        refused = (await asked("plan-rows-at", plan=number, path=path))["error"]
        assert refused["message"].startswith(said)


async def test_what_a_rollout_has_not_come_to_waits_for_its_wave(tree):
    await tree.apply(placement("rolled", "rolled"), config_map("a", "rolled", a="1"))
    await tree.until("rolled", lambda c: c.exact and c.summary.states == {"synced": 2})
    waves = [
        {"name": "first", "selector": {"matchLabels": {"id": "r1-s1"}}, "soak": "1h"},
        {"name": "rest", "percent": 100},
    ]
    await tree.apply(rollout("rolled", waves))
    await until_rolled(tree, "rolled")
    await tree.apply(config_map("a", "rolled", a="2"))

    await eventually_stage(tree, "gate", TWO, placement="rolled")
    [found] = (await why(tree, TWO, placement="rolled"))["result"]["explanations"]
    assert found["said"].startswith('it goes out by the waves of rollout "rolled": ')
    assert found["remedy"] == "leafcast rollout status rolled"
    await eventually_stage(tree, "as-meant", ONE, placement="rolled")


async def test_what_a_window_keeps_back_says_when_it_opens(tree):
    await tree.apply(placement("windows", "windows"), config_map("a", "windows", a="1"))
    await tree.until("windows", lambda c: c.exact and c.summary.states == {"synced": 2})
    # Open for a minute a year, in a month that is half a year away.
    month = (datetime.now(UTC).month + 5) % 12 + 1
    shut = [{"cron": f"0 2 1 {month} *", "duration": "1m", "zone": "UTC"}]
    await tree.apply(rollout("windows", [{"name": "all", "percent": 100}], windows=shut))
    await until_rolled(tree, "windows")
    await tree.apply(config_map("a", "windows", a="2"))

    await eventually_stage(tree, "window", ONE, placement="windows")
    said = (await stage(tree, placement="windows"))[1]
    assert said.startswith('the window of rollout "windows" opens at ')


async def test_a_place_without_a_zone_is_told_where_windows_go_by_it(tree):
    await tree.apply(placement("zoned", "zoned"), config_map("a", "zoned", a="1"))
    await tree.until("zoned", lambda c: c.exact and c.summary.states == {"synced": 2})
    shut = [{"cron": "0 2 * * *", "duration": "1m", "zone": "destination"}]
    await tree.apply(rollout("zoned", [{"name": "all", "percent": 100}], windows=shut))
    await until_rolled(tree, "zoned")
    await tree.apply(config_map("a", "zoned", a="2"))

    await eventually_stage(tree, "window", ONE, placement="zoned")
    [found] = (await why(tree, placement="zoned"))["result"]["explanations"]
    assert found["said"].endswith("it has no label zone")
    assert found["remedy"] == "label it with a time zone, such as Europe.Berlin"


async def test_a_removal_that_is_held_says_so_of_what_is_still_there(tree):
    await tree.stop_controllers()
    await tree.workloads.delete(ObjectKey(*SETTINGS))
    await tree.workloads.delete(placement_key("shop"))
    await tree.control(tree.group)
    await tree.controllers.caught_up()

    for said in ({"placement": "shop"}, {"object": SETTINGS}):
        [found] = (await why(tree, **said))["result"]["explanations"]
        assert found["stage"] == "leaving", found
        assert found["said"].startswith("RemovalHeld: ")
        assert found["remedy"] == "leafcast accept epl/shop"


async def test_a_hub_that_the_centre_may_not_work_on_comes_first(tree):
    troubled = Tree(tree)
    troubled.hub_troubles = lambda: {"workloads: https://hub": "another centre has it"}
    api = Api()
    api.serve(WhyVerbs(troubled, tree.asks, tree.clock))
    question = json.dumps({"path": str(ONE), "placement": "shop"}).encode()
    [found] = json.loads(await api.answer("leafcast.api.why", question))["result"]["explanations"]
    assert (found["stage"], found["remedy"]) == ("space", "leafcast doctor")
    assert "another centre has it" in found["said"]


async def test_a_person_who_works_there_holds_it(tree):
    until = f"{datetime.now(UTC) + timedelta(days=1):%Y-%m-%dT%H:%M:%SZ}"
    target = inventory([ONE])[0]
    target["metadata"]["annotations"]["leafcast.io/maintenance"] = until
    await tree.inventory.apply(target, MANAGER)
    await eventually_stage(tree, "held", placement="shop")
    assert until in (await stage(tree, placement="shop"))[1]


def test_every_stage_has_a_scene_of_real_nodes():
    """Here, or over real servers; one of made-up facts, as in test_explanation.py, is none."""
    scenes = [Path(__file__), Path(__file__).parents[1] / "e2e" / "test_why.py"]
    told = {word for file in scenes for word in asserted(file)}
    assert [stage.value for stage in CopyStage if stage.value not in told] == []


def asserted(file):
    """The texts with which a file compares, or for which it waits."""
    for node in ast.walk(ast.parse(file.read_text())):
        called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id
        if isinstance(node, ast.Assert) or called in ("eventually_stage", "until_explained"):
            inside = (it.value for it in ast.walk(node) if isinstance(it, ast.Constant))
            yield from (value for value in inside if isinstance(value, str))


def rollout(name, waves, **spec):
    placed = {"kind": "EdgePlacement", "name": name}
    return {
        "apiVersion": "leafcast.io/v1alpha1",
        "kind": "Rollout",
        "metadata": {"name": name},
        "spec": {"placement": placed, "success": {"of": "synced"}, "waves": waves, **spec},
    }


async def until_rolled(tree, name):
    """Wait until a Rollout steers its placement, and is done."""
    key = ObjectKey("leafcast.io", "rollouts", "", name)

    async def complete():
        obj = await tree.workloads.get(key)
        return (obj.get("status") or {}).get("phase") == "Complete"

    await eventually(complete)


async def eventually_stage(tree, wanted, path=ONE, **said):
    last = []

    async def there():
        answer = await why(tree, path, **said)
        # Until the centre has read what was applied it knows no such placement.
        last[:] = answer["result"]["explanations"] if "result" in answer else [answer["error"]]
        return [each.get("stage") for each in last] == [wanted]

    await eventually(there, lambda: str(last))
