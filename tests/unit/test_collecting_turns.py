"""What collectors ask for is evaluated in turns, and everything else goes between them."""

import math

import pytest
import yaml

from relay.core.collectors import collected_results
from relay.core.collectors.ports import BOUND_BYTES_MAX
from relay.core.collectors.turns import STEPS_PER_SECOND, TURN_STEPS, Turns, Unfinished
from relay.shell.evaluator import BoundProgram
from tests.memory_tree import config_map, memory_tree, placement
from tests.unit.test_collecting_tree import combined

OBJECTS = 60
NUMBERS = ", ".join(map(str, range(60)))
DEAR = f"""
apiVersion: control.kubestellar.io/v1alpha1
kind: StatusCollector
metadata: {{name: dear}}
spec:
  scope: Placement
  limit: 1000
  filter: obj.kind == 'ConfigMap' && [{NUMBERS}].map(a, a * 2).size() == 60
  select:
  - {{name: what, def: obj.metadata.name}}
  - {{name: who, def: inventory.name}}
"""


def may(turns):
    try:
        turns.check()
    except Unfinished:
        return False
    return True


def test_a_turn_ends_and_time_brings_the_next_one():
    turns = Turns()
    turns.spend(10**9)
    assert may(turns), "who begins no turn has no end of it"
    turns.begin(100.0)
    turns.spend(TURN_STEPS + 5000)
    assert not may(turns)
    again = turns.next()
    assert again == 100.0 + (TURN_STEPS / 2 + 5000) / STEPS_PER_SECOND
    turns.begin(100.0 + 4000 / STEPS_PER_SECOND)
    assert not may(turns), "what was taken too much is taken off the next ones"
    turns.begin(again)
    assert may(turns)
    assert turns.next() <= again
    turns.begin(again + 1000)
    turns.spend(TURN_STEPS)
    assert not may(turns), "what nobody took is not kept"


def test_time_that_goes_back_gives_and_takes_nothing():
    turns = Turns()
    turns.begin(50.0)
    turns.spend(TURN_STEPS)
    turns.begin(10.0)
    assert not may(turns)
    assert math.isclose(turns.next(), 10.0 + TURN_STEPS / 2 / STEPS_PER_SECOND)


@pytest.mark.parametrize("room", [1, BOUND_BYTES_MAX])
async def test_what_is_dear_over_many_objects_delays_no_sibling_and_is_whole_in_the_end(
    room, tmp_path, monkeypatch
):
    """Each node evaluates every object; no batch of events makes it evaluate more than its turn.

    Also where there is room for one program that is ready: it is used before it is gone.
    """
    monkeypatch.setattr(collected_results, "BOUND_BYTES_MAX", room)
    of_turn, most = [0], [0]
    evaluate, begin = BoundProgram.outcome, Turns.begin

    def outcome(self, seen):
        said = evaluate(self, seen)
        of_turn[0] += self.spent
        most[0] = max(most[0], of_turn[0])
        return said

    def begun(self, now):
        of_turn[0] = 0
        begin(self, now)

    monkeypatch.setattr(BoundProgram, "outcome", outcome)
    monkeypatch.setattr(Turns, "begin", begun)
    async with memory_tree(tmp_path, ["/r1", "/r1/s1"]) as tree:
        dear = placement("many", "many")
        dear["spec"]["downsync"][0]["statusCollectors"] = ["dear"]
        maps = [config_map(f"c{at:02}", "many", text="y") for at in range(OBJECTS)]
        await tree.apply(*maps, yaml.safe_load(DEAR), dear)
        await tree.apply(config_map("one", "few"), placement("few", "few"))
        await tree.until("few", lambda count: count.exact and count.summary.states == {"synced": 1})
        key = await tree.placement_key("many")
        assert not tree.centre.node.count(key).exact, "nothing says that all is told before it is"

        def whole(obj):
            return len(obj["results"][0]["rows"]) == OBJECTS and not obj.get("partial")

        obj = await combined(tree, whole, seconds=60)
        assert not obj["results"][0].get("rowErrors")
        await tree.until("many", lambda count: count.exact)
    assert TURN_STEPS < most[0] < TURN_STEPS + 100_000
