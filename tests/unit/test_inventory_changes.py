"""What the inventory says otherwise takes nothing from a destination that it gives again."""

import asyncio

import pytest

from tests.memory_tree import MANAGER, config_map, memory_tree, placement
from tests.unit.centre_world import config_key
from tests.unit.test_approvals import SITE, synced

pytestmark = pytest.mark.leaps

SELECTED = {"locationSelectors": [{"matchLabels": {"zone": "a"}}]}
PATH = {"leafcast.io/path": str(SITE)}


def inventory_object(kind, name, *, spec, labels, annotations=None):
    metadata = {"name": name, "labels": labels, "annotations": annotations or {}}
    group = "edge.kubestellar.io/v2alpha1"
    return {"apiVersion": group, "kind": kind, "metadata": metadata, "spec": spec}


def located(name, selected, **labels):
    resource = {"group": "edge.kubestellar.io", "version": "v2alpha1", "resource": "synctargets"}
    spec = {"resource": resource, "instanceSelector": {"matchLabels": selected}}
    return inventory_object("Location", name, spec=spec, labels=labels)


def hung(**labels):
    return inventory_object("SyncTarget", "emea-s1", spec={}, labels=labels, annotations=PATH)


NOWHERE = {"id": "nowhere"}
BEFORE = (located("l1", {"x": "1"}, zone="a"), located("l2", NOWHERE, zone="a"), hung(x="1"))
AFTERWARDS = {
    "another Location takes it over": (
        located("l1", NOWHERE, zone="a"),
        located("l2", {"x": "1"}, zone="a"),
    ),
    "two Locations change names": (
        located("l1", {"x": "1"}, zone="b"),
        located("l2", {"x": "1"}, zone="a"),
    ),
    "Location and SyncTarget are labelled anew": (hung(x="2"), located("l1", {"x": "2"}, zone="a")),
}


@pytest.mark.parametrize("paths", [("/emea", "/emea/s1"), ("/emea", "/emea/s1", "/emea/s2")])
@pytest.mark.parametrize("after", AFTERWARDS.values(), ids=AFTERWARDS.keys())
async def test_a_destination_that_a_list_shows_in_its_place_anew_keeps_what_it_has(
    tmp_path, after, paths
):
    """Each change alone takes the placement from it; they are read from the space at once."""
    async with memory_tree(tmp_path, paths) as tree:
        for obj in BEFORE:
            await tree.inventory.apply(obj, MANAGER)
        await tree.apply(config_map("a", "shop"), placement("shop", "shop", **SELECTED))
        await tree.until("shop", synced(1))
        there = (await tree.clusters[SITE].get(config_key("a")))["metadata"]["uid"]
        await tree.stop_controllers()
        for obj in after:
            await tree.inventory.apply(obj, MANAGER)
        await tree.control(tree.group)
        await tree.controllers.caught_up()
        newest = max(r.generation for r in tree.controllers.issuer.records.values())
        async with asyncio.timeout(60):
            await tree.drivers[SITE].until(
                lambda node: max(h.generation for h in node.records.values()) >= newest
            )
        await tree.until("shop", synced(1))
        assert (await tree.clusters[SITE].get(config_key("a")))["metadata"]["uid"] == there
