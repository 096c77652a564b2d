"""A tree that is started again on its data finds everything, and does nothing twice."""

import asyncio
import shutil
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from controllers.issuing.nodes import remove_node
from leafcast.centre.centre import Centre
from leafcast.data_dir import DataDir
from leafcast.demo.workload import load_shop
from leafcast.local.tree import local_tree
from leafcast.local.views import TreeShape
from schemas.values.identity import NodePath

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(240)]

EDGES = [NodePath.parse(path) for path in ("/region-1/site-1", "/region-1/site-2")]
CENTRE = NodePath()
WAIT_SECONDS = 80
ONE_REGION, TWO_REGIONS = TreeShape(1, 2, 3), TreeShape(2, 1, 3)


@asynccontextmanager
async def running(folder, shape=ONE_REGION):
    tree = local_tree(shape, folder)
    async with asyncio.TaskGroup() as group:
        run = group.create_task(tree.run())
        async with asyncio.timeout(WAIT_SECONDS):
            await tree.up.wait()
        try:
            yield tree
        finally:
            run.cancel()


async def until_healthy(tree):
    async with asyncio.timeout(WAIT_SECONDS):
        while not any(p.complete and p.healthy == 2 for p in tree.view().placements):
            await tree.centre.changed()


async def versions(space):
    """What lies in a space, and at which revision each object was last written."""
    listing = await space.list()
    return {
        (obj["kind"], obj["metadata"].get("namespace"), obj["metadata"]["name"]): (
            obj["metadata"]["uid"],
            obj["metadata"]["resourceVersion"],
        )
        for obj in listing.objects
    }


async def held_by_edges(tree):
    async with AsyncExitStack() as stack:
        return {
            path: await versions(await tree.centre.nodes[path].hosted.space("wec", stack))
            for path in EDGES
        }


def issued(tree):
    """All that the ledger holds, by key."""
    return {
        key: record.generation for key, record in tree.centre.controllers.issuer.records.items()
    }


async def test_a_second_start_does_nothing_twice(tmp_path):
    async with running(tmp_path) as tree:
        await tree.centre.apply(load_shop().objects)
        await until_healthy(tree)
        ledger, inventory = issued(tree), await versions(tree.centre.inventory)
        objects = await held_by_edges(tree)
    async with running(tmp_path) as tree:
        await until_healthy(tree)
        assert issued(tree) == ledger
        assert await versions(tree.centre.inventory) == inventory
        assert await held_by_edges(tree) == objects
        for path, runtime in tree.centre.nodes.items():
            counters = runtime.driver.counters
            assert counters.mail_written == 0, path
            # A child gets it in its new session, and an edge if it was not due for the last one.
            each = 1 if path.is_root else 2
            assert counters.snapshots_written <= each * len(runtime.node.children()), path
        assert tree.centre.nodes[CENTRE].server.starts == 1


async def test_a_centre_runs_without_any_node_below_it_on_its_machine(tmp_path):
    centre = Centre(DataDir(tmp_path))
    async with asyncio.TaskGroup() as group:
        run = group.create_task(centre.run())
        async with asyncio.timeout(WAIT_SECONDS):
            await centre.up.wait()
            await centre.apply(load_shop().objects)
        assert set(centre.nodes) == {CENTRE}
        assert not any(centre.unready().values())
        run.cancel()


async def test_a_removed_node_stays_removed(tmp_path):
    async with running(tmp_path) as tree:
        await remove_node(tree.centre.controllers.issuer, EDGES[1])
        region = await tree.centre.nodes[EDGES[1].parent].running()
        async with asyncio.timeout(WAIT_SECONDS):
            await region.until(lambda node: EDGES[1].name not in node.children())
    async with running(tmp_path) as tree:
        assert EDGES[0] in tree.centre.nodes
        assert EDGES[1] not in tree.centre.nodes


async def test_the_controllers_begin_anew_with_each_run_of_the_centres_relay(tmp_path):
    async with running(tmp_path) as tree:
        first, centre = tree.centre.controllers, tree.centre.nodes[CENTRE]
        driver = await centre.running()
        await driver._bus.close()
        async with asyncio.timeout(WAIT_SECONDS):
            # Who waits for the node waits through the end of its run.
            await centre.until(lambda _: centre.driver is not driver)
            while tree.centre.controllers is first:
                await tree.centre.changed()
        await tree.centre.apply(load_shop().objects)
        await until_healthy(tree)


async def test_a_centre_that_lost_its_ledger_alone_starts_all_its_regions_again(tmp_path):
    """Its mailboxes are there still: its run ends over what it finds in them, and begins anew."""
    async with running(tmp_path, TWO_REGIONS) as tree:
        await tree.centre.apply(load_shop().objects)
        await until_healthy(tree)
        nodes, ledger = set(tree.centre.nodes), set(issued(tree))
    shutil.rmtree(tmp_path / "centre" / "jetstream" / "jetstream" / "RELAY" / "streams" / "OWN")
    async with running(tmp_path, TWO_REGIONS) as tree:
        await until_healthy(tree)
        assert set(tree.centre.nodes) == nodes
        assert set(issued(tree)) == ledger


async def test_a_first_start_goes_on_when_the_centres_run_ends_as_nodes_are_registered(tmp_path):
    ended = []

    def progress(said):
        if said == "the centre is running":
            closing = tree.centre.nodes[CENTRE].driver._bus.close()
            ended.append(asyncio.get_running_loop().create_task(closing))

    tree = local_tree(TWO_REGIONS, tmp_path, progress)
    async with asyncio.TaskGroup() as group:
        run = group.create_task(tree.run())
        async with asyncio.timeout(WAIT_SECONDS):
            await tree.up.wait()
            await ended[0]
        assert len(tree.centre.nodes) == 5
        run.cancel()
