"""Members of a trio that are cut from each other, or from the parent, under changes."""

import json

import pytest

from leafcast.members.settings import FILE
from tests.nats.chaos_member import until
from tests.nats.own_network import GROUPS, Partition, own_network
from tests.nats.trio_changes import changing_tree
from tests.nats.trio_leaders import hang

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(300)]

EDGES = ("/edge-a", "/edge-b")


def ports_of(members):
    """Of each member by name all ports at which it listens."""
    found = {}
    for name, member in members.items():
        listens = json.loads((member.node_folder / "ports.json").read_text())
        route = json.loads((member.folder / FILE).read_text())["port"]
        found[name] = (listens["client"], listens["leaf"], route)
    return found


async def holds(tree, edge, values):
    """Whether an edge holds at least these."""
    space = (await tree.look([edge]))[edge]
    return values.items() <= space.values.items()


@pytest.mark.long
async def test_an_active_member_that_is_cut_from_the_others_changes_nothing(tmp_path):
    with own_network():
        async with changing_tree(tmp_path, EDGES, groups=GROUPS) as (
            tree,
            applies,
        ):
            network, first = Partition(ports_of(tree.centres)), tree.active()
            others = tree.centres.keys() - {first}
            # One child hangs at each side.
            await hang(tree, EDGES[0].strip("/"), first)
            await hang(tree, EDGES[1].strip("/"), min(others))
            # No command waits there for an answer that never comes.
            tree.cut_off.add(first)
            await applies.more(2)
            network.cut(first, *others)
            await tree.until_active(beside=first)
            await applies.more(5)
            assert not tree.is_active(first)
            network.mend()
            tree.cut_off.clear()
            await until(lambda: tree.stands_by(first), lambda: str(tree.said()))


@pytest.mark.long
async def test_an_active_member_that_is_cut_from_the_parent_goes_on_by_another_ones_link(tmp_path):
    region, edge = "/region-1", "/region-1/edge"
    with own_network():
        async with changing_tree(tmp_path, [edge], region=True, groups=GROUPS) as (tree, applies):
            network, active = Partition(ports_of(tree.trios[region])), tree.active(region)
            parents = [port for ports in ports_of(tree.centres).values() for port in ports]
            network.cut_from(active, *parents)
            await applies.more(10)
            held = await tree.centre_values()
            await until(lambda: holds(tree, edge, held), f"{edge} does not hold what was applied")
            assert tree.active(region) == active, tree.said(region)
            network.mend()
