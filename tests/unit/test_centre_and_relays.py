"""The controllers drive real relays: what they issue is believed, carried, and answered."""

import asyncio

import pytest

from controllers.centre import Controllers
from controllers.issuing.keys import load_or_make_keys
from controllers.issuing.nodes import add_node
from relay.adapters.clock import SystemDice
from relay.adapters.server.nkey_pairs import new_user_nkey
from relay.core.config import NodeConfig
from relay.core.records import acceptance
from relay.shell.driver import Driver
from schemas.records.records import API_NODE, Source
from schemas.records.signing import Envelope
from schemas.values import wire
from schemas.values.identity import NodePath, random_id
from tests.awaiting import until_object
from tests.doubles.memory.bus import MemoryBus, MemoryNetwork
from tests.doubles.memory_space import MemorySpace
from tests.leaping_time import LoopClock
from tests.memory_tree import MemoryTree, config_map, inventory
from tests.memory_tree import placement as everywhere
from tests.namespaces import apply_in_namespaces
from tests.unit.centre_relay import WAIT_SECONDS
from tests.unit.centre_world import SHOP, USER, config, location, placement, target

pytestmark = pytest.mark.leaps


def counted(shop):
    status = shop.get("status", {})
    return status.get("complete") and status.get("destinations")


async def test_counts_come_back_from_an_edge_and_a_restart_issues_nothing_again(tmp_path):
    clock, dice, network = LoopClock(), SystemDice(), MemoryNetwork()
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
    issued = centre.publisher.ledger().envelopes()
    async with asyncio.timeout(WAIT_SECONDS), asyncio.TaskGroup() as group:
        again = driver(NodePath())
        tasks = [group.create_task(again.run())]
        await again.started.wait()
        controllers = await Controllers.open(again.publisher, wds, inventory, clock, dice, tmp_path)
        tasks.append(group.create_task(controllers.run()))
        await wds.apply(placement("second"), USER)
        await again.until(lambda _: len(again.publisher.ledger().records) > len(issued))
        for task in tasks:
            task.cancel()
    kept = again.publisher.ledger().envelopes()
    assert {key for key in issued if kept[key] != issued[key]} == set()


async def test_what_the_centre_issues_it_neither_decodes_nor_verifies(tmp_path, monkeypatch):
    tree, region = MemoryTree(tmp_path), NodePath.parse("/emea")
    edge = region.child("s1")
    decoded, verified = [], []
    decoder, verify, read = wire._decoder, Envelope.verify, acceptance.read_snapshot

    def count(seen, work):
        return lambda *said: seen.append(said) or work(*said)

    async with asyncio.timeout(WAIT_SECONDS), tree.group as group:
        await tree.start(NodePath(), group, attached=False)
        await tree.control(group)
        for path in (region, edge, NodePath.parse("/spare")):
            await tree.add(path)
        for obj in inventory([edge]):
            await tree.inventory.apply(obj, USER)
        await tree.apply(config_map("a", "shop", text="first"), everywhere("shop", "shop"))
        await tree.until("shop", lambda count: count.summary.destinations == 1)
        node, key = tree.centre.node, await tree.placement_key("shop")
        issuer, spare = tree.controllers.issuer, Source(API_NODE, tree.keys.tree, "", "/spare").key
        monkeypatch.setattr(wire, "_decoder", count(decoded, decoder))
        monkeypatch.setattr(Envelope, "verify", count(verified, verify))
        monkeypatch.setattr(acceptance, "read_snapshot", count(decoded, read))
        for text in ("second", "third"):
            former = node.records[key].generation
            await tree.apply(config_map("a", "shop", text=text))
            await tree.centre.until(lambda node, at=former: node.records[key].generation > at)
        await issuer.delete([spare])
        await tree.centre.until(lambda node: spare not in node.records)
        assert (decoded, verified) == ([], [])
        held = node.records[key]
        assert issuer.ledger.records[key] is held.record
        assert issuer.ledger.bodies[key].value is held.body
        for task in (tree.controlling, *(t for each in tree.running.values() for t in each)):
            task.cancel()
    await tree.close()
