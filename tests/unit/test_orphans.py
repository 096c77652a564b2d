"""What nodes hold and the centre does not know: kept, listed, and ended by a person's word."""

import asyncio
from collections import defaultdict
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from controllers.issuing.nodes import enrol_lost_nodes, enrol_nodes, node_record
from leafcast.ask.api import ApiError
from leafcast.ask.decode import BadAnswer, read_orphans
from leafcast.cli.commands import orphans as commands
from leafcast.daemon.verbs.orphans import Orphans
from leafcast.node.answers import ORPHANS_PAGE_MAX, orphans_answer
from relay.core.link.session import HELLO_SECONDS, ChildStatus
from relay.core.view import Orphan
from schemas.values.identity import NodePath, short_key
from tests.awaiting import eventually
from tests.doubles.memory.streams import SlotStream
from tests.memory_tree import config_map, memory_tree, placement
from tests.unit.centre_world import config_key, placement_key
from tests.unit.test_approvals import SITE, synced

pytestmark = pytest.mark.leaps

CENTRE = NodePath()
TERM = "0123456789abcdef"


class Holder:
    def __init__(self, count):
        self.records = defaultdict(lambda: SimpleNamespace(record=None))
        self.held = [
            Orphan(short_key(at.to_bytes(20, "big")), "delta", "", f"p{at}", at, TERM)
            for at in range(count)
        ]

    def orphans(self):
        return self.held

    def children(self):
        return ["s2", "s1", "s3"]

    def standing_of(self, child):
        return ChildStatus(0, left=False, in_session=False, joined=child != "s3")


def test_orphans_come_page_by_page_and_all_of_them_once():
    holder, after, found = Holder(2 * ORPHANS_PAGE_MAX + 3), "", []
    for _ in range(3):
        answer = orphans_answer(holder, {"after": after})
        page = read_orphans(answer, after)
        assert (page.children, page.absent) == (["s1", "s2", "s3"], {"s3"})
        found += page.found
        after = page.after
    assert after == ""
    assert [orphan.name for orphan in found] == [orphan.name for orphan in holder.held]


@pytest.mark.parametrize(
    "altered",
    [
        {"term": "no term"},
        {"generation": -1},
        {"generation": True},
        {"name": "n" * 2000},
        {"kind": 7},
        {"key": None},
        {"nkey": b"U"},
    ],
)
def test_an_answer_that_says_no_orphan_is_refused(altered):
    answer = orphans_answer(Holder(1), {})
    answer["orphans"][0] |= altered
    with pytest.raises(BadAnswer):
        read_orphans(answer, "")


def test_an_answer_that_names_no_child_is_refused():
    with pytest.raises(BadAnswer):
        read_orphans({"orphans": [], "children": ["../up"], "next": ""}, "")


async def lose_ledger(tree, *lost):
    """The centre begins again without what its store held, or without these records alone."""
    await tree.stop_controllers()
    await tree.stop(CENTRE)
    kept = tree.network.streams(CENTRE)
    nkeys = {CENTRE.child(name): nkey for name, nkey in kept.children.items()}
    for key in lost or tuple(kept.own):
        del kept.own[key]
    kept.mail = SlotStream()
    await tree.start(CENTRE, tree.group, attached=False)
    await tree.control(tree.group)
    await enrol_lost_nodes(tree.controllers.issuer, nkeys)


async def test_after_a_lost_ledger_all_stays_and_goes_when_its_term_is_withdrawn(tmp_path):
    async with memory_tree(tmp_path, ["/emea", "/emea/s1"]) as tree:
        await tree.apply(config_map("a", "shop", at="1"))
        await tree.apply(placement("shop", "shop"), placement("twin", "other"))
        await tree.until("shop", synced(1))
        edge, term = tree.drivers[SITE], tree.controllers.issuer.ledger.term
        key = await tree.placement_key("shop")
        # What the space says still is issued anew; of the other one nobody says anything.
        await tree.workloads.delete(placement_key("shop"))
        await lose_ledger(tree)
        orphans = Orphans(tree, tree.asks)

        async def reported():
            found = (await orphans.orphans())["orphans"]
            return {(it["kind"], it["name"], it["term"]) for it in found}

        # Of orphans a node tells in its next hello.
        await tree.leap(HELLO_SECONDS)
        await eventually_is(reported, {("delta", "shop", term), ("node", "/emea/s1", term)})
        assert await tree.clusters[SITE].get(config_key("a"))
        with pytest.raises(ApiError, match="no node reports"):
            await orphans.withdraw("f" * 16)
        assert await orphans.withdraw(every=True) == {"terms": [term], "nodes": ["/emea/s1"]}
        await eventually(lambda: key not in edge.node.records)
        await eventually_is(reported, set())
        assert await tree.placement_key("twin") in edge.node.records


async def test_a_record_lost_before_a_snapshot_listed_it_is_an_orphan_and_its_node_stays(tmp_path):
    async with memory_tree(tmp_path, ["/emea", "/emea/s1"]) as tree:
        await tree.apply(config_map("a", "shop", at="1"), placement("shop", "shop"))
        await tree.until("shop", synced(1))
        issuer = tree.controllers.issuer
        assert not issuer.is_partial
        record = node_record(issuer, NodePath.parse("/emea/s1"))
        # Anew, so that no snapshot lists it as it is.
        await enrol_nodes(issuer, {record.path: record.nkey})
        issued = issuer.ledger.highest
        await tree.apply(config_map("b", "shop", at="1"))
        await tree.until("shop", lambda found: found.exact and found.generation > issued)
        await lose_ledger(tree, record.source.key)
        assert tree.controllers.issuer.is_partial
        orphans = Orphans(tree, tree.asks)

        async def reported():
            return [(it["kind"], it["name"]) for it in (await orphans.orphans())["orphans"]]

        await eventually_is(reported, [("node", "/emea/s1")])
        assert (await orphans.withdraw(every=True))["nodes"] == ["/emea/s1"]
        await tree.until("shop", synced(1))
        await eventually_is(reported, [])


async def eventually_is(ask, expected):
    async with asyncio.timeout(60):
        while (found := await ask()) != expected:
            await asyncio.sleep(0.2)
    assert found == expected


def test_the_command_lists_terms_with_what_ends_each(monkeypatch):
    orphan = {"kind": "delta", "namespace": "", "name": "shop", "generation": 1, "term": TERM}
    listed = [{**orphan, "path": "/emea", "nodes": 1}, {**orphan, "path": "/apac", "nodes": 7}]
    found = {"orphans": listed, "silent": ["/apac"], "absent": ["/new"]}
    monkeypatch.setattr(commands, "_call", lambda _folder, _verb: found)
    said = CliRunner().invoke(commands.orphans).output
    assert f"term {TERM}: 2 records" in said
    assert "delta shop (at /emea)" in said
    assert "delta shop (at 7 nodes, e.g. /apac)" in said
    assert f"leafcast withdraw {TERM}" in said
    assert "1 node did not answer: /apac" in said
    assert "1 node has never joined: /new" in said


@pytest.mark.parametrize(
    ("kinds", "said"),
    [
        (("delta",), "to remove them everywhere: leafcast withdraw"),
        (("delta", "node"), "to remove all but the nodes everywhere: leafcast withdraw"),
        (("node",), "nodes stay; to have the centre know them again: leafcast withdraw"),
    ],
)
def test_what_a_withdrawal_does_is_said_of_the_records_there_are(monkeypatch, kinds, said):
    one = {"name": "one", "term": TERM, "path": "/emea", "nodes": 1}
    listed = [{**one, "kind": kind} for kind in kinds]
    monkeypatch.setattr(
        commands, "_call", lambda *_: {"orphans": listed, "silent": [], "absent": []}
    )
    assert f"  {said} {TERM}" in CliRunner().invoke(commands.orphans).output


@pytest.mark.parametrize("arguments", [[], [TERM, "--all"]])
def test_withdrawing_wants_a_term_or_all(arguments):
    assert CliRunner().invoke(commands.withdraw, arguments).exit_code == 2
