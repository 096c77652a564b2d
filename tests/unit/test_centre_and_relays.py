"""The controllers drive real relays: what they issue is believed, carried, and answered."""

import asyncio

from controllers.centre import Controllers
from controllers.keys import load_or_make_keys
from controllers.nodes import add_node
from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.server.nkey_pairs import new_user_nkey
from relay.core.config import NodeConfig
from relay.shell.driver import Driver
from schemas.values.identity import SNAPSHOT_KEY, NodePath, random_id
from tests.awaiting import until_object
from tests.doubles.memory.bus import MemoryBus, MemoryNetwork
from tests.doubles.memory_space import MemorySpace
from tests.namespaces import apply_in_namespaces
from tests.unit.centre_relay import WAIT_SECONDS
from tests.unit.centre_world import SHOP, USER, config, location, placement, target


def counted(shop):
    status = shop.get("status", {})
    return status.get("complete") and status.get("destinations")


async def test_counts_come_back_from_an_edge_and_a_restart_issues_nothing_again(tmp_path):
    clock, dice, network = SystemClock(), SystemDice(), MemoryNetwork()
    keys = load_or_make_keys(tmp_path, dice)
    roots = keys.roots

    def driver(path, *, attached=False):
        incarnation = random_id(dice.entropy(16))
        node = NodeConfig(path, keys.tree, roots, incarnation, attached)
        return Driver(MemoryBus(network, path), node, clock)

    wds, inventory = MemorySpace(clock, dice), MemorySpace(clock, dice)
    region, edge = NodePath.parse("/emea"), NodePath.parse("/emea/s1")
    await inventory.apply(target("s1", str(edge)), USER)
    await inventory.apply(location("all"), USER)
    await apply_in_namespaces(wds, [config("a")], USER)
    await wds.apply(placement(), USER)
    async with asyncio.timeout(WAIT_SECONDS), asyncio.TaskGroup() as group:
        centre = driver(NodePath())
        tasks = [group.create_task(centre.run())]
        await centre.started.wait()
        controllers = await Controllers.open(
            centre.publisher, wds, inventory, clock, dice, tmp_path
        )
        tasks.append(group.create_task(controllers.run()))
        for path in (region, edge):
            entropy = dice.entropy(32)
            await add_node(controllers.issuer, path, entropy, new_user_nkey)
        below = [driver(region), driver(edge, attached=True)]
        tasks += [group.create_task(node.run()) for node in below]
        shop = await until_object(wds, SHOP, counted)
        status = shop["status"]
        for task in tasks:
            task.cancel()
    assert (status["destinations"], status["pending"], status["synced"]) == (1, 1, 0)
    assert status["matchingLocationCount"] == 1
    await centre._bus.close()
    issued = {key: envelope.payload for key, envelope in centre.publisher.ledger().items()}
    async with asyncio.timeout(WAIT_SECONDS), asyncio.TaskGroup() as group:
        again = driver(NodePath())
        tasks = [group.create_task(again.run())]
        await again.started.wait()
        controllers = await Controllers.open(again.publisher, wds, inventory, clock, dice, tmp_path)
        tasks.append(group.create_task(controllers.run()))
        await wds.apply(placement("second"), USER)
        await again.until(lambda _: len(again.publisher.ledger()) > len(issued))
        for task in tasks:
            task.cancel()
    kept = {key: envelope.payload for key, envelope in again.publisher.ledger().items()}
    assert {key for key in issued if kept[key] != issued[key]} <= {SNAPSHOT_KEY}
