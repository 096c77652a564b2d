"""What all edges hold: each that is there is asked, who is not there is named."""

import asyncio

import pytest

from leafcast.ask.edges import ASKED_AT_ONCE, brought_up, edges_of_tree, objects_of_edges
from leafcast.ask.failures import CallFailed
from leafcast.ask.upsynced import CopiesWanted
from schemas.reports.states import NEVER_JOINED

WANTED = CopiesWanted("apps", "deployments", "shop", "web")
SINCE_MS = 1_800_000_000_000


def node(path, state="up", since=None, role="edge"):
    return {"path": path, "role": role, "state": state, "silent_since_ms": since}


class QuickClock:
    async def sleep(self, _seconds):
        await asyncio.sleep(0)


class Tree:
    """Answers for these edges: with objects, or with errors by their codes."""

    def __init__(self, nodes, answers):
        self.nodes, self.answers = nodes, answers
        self.asked, self.at_once, self.most = [], 0, 0
        self.clock = QuickClock()

    async def call(self, verb, /, **said):
        if verb == "tree":
            return {"nodes": self.nodes}
        self.asked.append(said["path"])
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await self.clock.sleep(0)
        self.at_once -= 1
        answer = self.answers[said["path"]]
        if isinstance(answer, str):
            raise CallFailed("ask", answer, f"{said['path']} cannot be reached", "")
        return {"objects": [{"metadata": {"name": name}} for name in answer], "next": ""}


async def told(tree):
    edges = await edges_of_tree(tree)
    found = [(path, len(held)) async for path, held in objects_of_edges(tree, edges, WANTED)]
    return edges, found


async def test_each_edge_that_is_there_is_asked_and_the_others_are_named():
    nodes = [
        node("/", role="centre"),
        node("/r", role="relay"),
        node("/r/b"),
        node("/r/a"),
        node("/r/off", "stopped", SINCE_MS),
        node("/r/new", NEVER_JOINED),
        node("/r/mute"),
        node("/r/other"),
    ]
    answers = {"/r/a": ["web"], "/r/b": [], "/r/mute": "Unreachable", "/r/other": "NotFound"}
    tree = Tree(nodes, answers)
    edges, found = await told(tree)
    assert found == [("/r/a", 1), ("/r/b", 0), ("/r/other", 0)]
    assert edges.silent == {
        "/r/off": "stopped since 2027-01-15T08:00:00Z",
        "/r/mute": "cannot be reached",
    }
    assert edges.never_joined == ["/r/new"]
    assert edges.count == 5


async def test_not_more_are_asked_at_once_than_there_is_room_for_however_many_there_are():
    paths = [f"/r/s{number:04}" for number in range(5 * ASKED_AT_ONCE + 1)]
    tree = Tree(list(map(node, paths)), {path: ["web"] for path in paths})
    _, found = await told(tree)
    assert [path for path, _ in found] == paths
    assert tree.most <= ASKED_AT_ONCE


@pytest.mark.parametrize("code", ["Busy", "NoAnswer"])
async def test_who_may_answer_soon_is_asked_again_and_named_at_last(code):
    tree = Tree([node("/r/a")], {"/r/a": code})
    edges, found = await told(tree)
    assert not found
    assert len(tree.asked) > 1
    assert list(edges.silent) == ["/r/a"]


def test_what_a_clause_names_is_brought_up():
    clause = {"apiGroup": "wgpolicyk8s.io", "resources": ["policyreports"]}
    placements = [{"spec": {}}, {"spec": {"upsync": [clause]}}]
    assert brought_up(placements, "wgpolicyk8s.io", "policyreports")
    assert not brought_up(placements, "", "policyreports")
    assert not brought_up([], "wgpolicyk8s.io", "policyreports")
