"""A centre that lost its ledger deletes nothing, and never issues below what it issued before."""

import asyncio
import json

import pytest

from controllers import recovery
from controllers.core.recovery import missing, newest_index, read_recalled
from controllers.issuing import keys_draft
from controllers.keys import load_or_make_keys
from controllers.ledger_notes import LedgerNotes
from controllers.recovery import ChildAway
from leafcast.ask.recall import AskedChildren
from relay.adapters.clock import SystemDice
from schemas.identity import INDEX_KEY, NodePath
from schemas.objects import ObjectKey
from schemas.records import encode_payload
from schemas.subjects import CURSOR_KEY
from tests.memory_tree import config_map, memory_tree, placement
from tests.unit.centre_world import config_key
from tests.unit.centre_world import placement_key as key_of

CENTRE, EMEA, SITE = (NodePath.parse(path) for path in ("/", "/emea", "/emea/s1"))
TREE = ("/emea", "/emea/s1")
A = ObjectKey("", "configmaps", "shop", "a")


def synced(count):
    return lambda summary: summary.complete and summary.states == {"synced": count}


async def deliver(tree, *names, count=1, of="shop"):
    await tree.apply(*(config_map(name, of, at="1") for name in names), placement(of, of))
    await tree.until(of, synced(count))


async def lose(tree, *, own=True):
    """Stop the centre, and lose what its streams hold; what else it is made of stays."""
    await tree.stop_controllers()
    await tree.stop(CENTRE)
    streams, fresh = tree.network.streams(CENTRE), type(tree.network.streams(CENTRE))()
    streams.mail, streams.stat, streams.blobs = fresh.mail, fresh.stat, fresh.blobs
    streams.acknowledged = {}
    if own:
        streams.own = fresh.own


async def come_back(tree):
    await tree.start(CENTRE, tree.group, attached=False)
    await tree.control(tree.group)


async def recovered(tree):
    async with asyncio.timeout(60):
        await tree.recovery.done.wait()
        await tree.controllers.caught_up()


async def until_site(tree, names):
    async with asyncio.timeout(60):
        while set(await revisions(tree)) != names:
            await tree.drivers[SITE].progress()


async def revisions(tree, path=SITE):
    found = (await tree.clusters[path].list("", "configmaps")).objects
    return {obj["metadata"]["name"]: obj["metadata"]["resourceVersion"] for obj in found}


async def all_is_as_it_was(tree, before, held):
    """Records as they were signed, what is known of nodes and destinations; nothing is touched."""
    after = tree.centre.node.records
    key = await tree.placement_key("shop")
    assert after[key].data == before[key].data
    assert {k for k, h in before.items() if not h.record.deleted} <= set(after)
    assert await revisions(tree) == held


async def test_a_centre_lost_and_restored_from_its_objects_touches_nothing(tmp_path):
    async with memory_tree(tmp_path, TREE) as tree:
        await deliver(tree, "a", "b")
        held, before = await revisions(tree), tree.centre.node.records
        await lose(tree)
        await come_back(tree)
        assert tree.recovery.lost
        await recovered(tree)
        await tree.until("shop", synced(1))
        # No child was counted on before it had said that it holds nothing beyond its mailbox.
        assert CURSOR_KEY in tree.network.streams(CENTRE).own
        await all_is_as_it_was(tree, before, held)
        # And it goes on: content that only the tree kept is served again, changes go out.
        await deliver(tree, "a", "b", "c")
        await until_site(tree, {"a", "b", "c"})
        assert not tree.recovery.notes.recovered
        assert tree.controllers.translator.orphans() == ()


async def test_generations_never_run_backwards_also_if_the_clock_did(tmp_path):
    async with memory_tree(tmp_path, TREE) as tree:
        tree.clock.wall_ahead = 100_000.0
        await deliver(tree, "a")
        key = await tree.placement_key("shop")
        before = tree.centre.node.records[key].generation
        await lose(tree)
        tree.clock.wall_ahead = 0.0
        await come_back(tree)
        await recovered(tree)
        await tree.apply(config_map("a", "shop", at="2"))
        async with asyncio.timeout(60):
            while (await tree.clusters[SITE].get(A))["data"]["at"] != "2":
                await tree.drivers[SITE].progress()
        assert tree.centre.node.records[key].generation > before
        index = tree.centre.node.records["_index"].generation
        assert index > before


def knows_by_index(node, key):
    """Whether its index is newer than this record."""
    held = node.records
    return INDEX_KEY in held and held[INDEX_KEY].generation > held[key].generation


async def test_a_ledger_older_than_what_a_child_was_shown_is_read_back(tmp_path, monkeypatch):
    monkeypatch.setattr(recovery, "VERIFY_SECONDS", 30.0)
    async with memory_tree(tmp_path, TREE) as tree:
        await deliver(tree, "a")
        backup = dict(tree.network.streams(CENTRE).own)
        await deliver(tree, "x", of="other")
        other = await tree.placement_key("other")
        async with asyncio.timeout(60):
            await tree.drivers[EMEA].until(lambda node: knows_by_index(node, other))
        await lose(tree)
        tree.network.streams(CENTRE).own = backup
        (tmp_path / "ledger.json").unlink()
        # The space is as old as the ledger, and knows nothing of the second placement.
        await tree.workloads.delete(key_of("other"))
        await tree.workloads.delete(config_key("x", "other"))
        await come_back(tree)
        await recovered(tree)
        (orphan,) = tree.controllers.translator.orphans()
        assert (orphan.name, orphan.here) == ("other", True)
        assert set(await revisions(tree)) == {"a", "x"}
        assert "leafcast adopt other" in tree.controllers.translator.held["other"]
        # It stays so over another start.
        await tree.stop_controllers()
        await tree.control(tree.group)
        await recovered(tree)
        assert [item.name for item in tree.controllers.translator.orphans()] == ["other"]
        assert set(await revisions(tree)) == {"a", "x"}


async def test_what_a_child_only_says_of_its_index_is_not_believed(tmp_path):
    async with memory_tree(tmp_path, TREE) as tree:
        await deliver(tree, "a")
        await tree.stop_controllers()
        tree.centre.node._state.children["emea"].index_shown = 2**62
        await tree.control(tree.group)
        await recovered(tree)
        assert not tree.recovery.notes.recovered
        await deliver(tree, "a", "b")
        await until_site(tree, {"a", "b"})


async def test_an_object_missing_from_a_placement_that_was_read_back_is_held(tmp_path):
    async with memory_tree(tmp_path, TREE) as tree:
        await deliver(tree, "a", "b", "c")
        await lose(tree)
        await tree.workloads.delete(config_key("b"))
        await come_back(tree)
        await recovered(tree)
        assert "configmaps/shop/b" in tree.controllers.translator.held["shop"]
        assert set(await revisions(tree)) == {"a", "b", "c"}


async def test_content_lost_with_the_centre_is_taken_from_the_space_again(tmp_path):
    async with memory_tree(tmp_path, TREE) as tree:
        await deliver(tree, "a", "b")
        key = await tree.placement_key("shop")
        address = tree.drivers[SITE].node.wanted[A].reference.address
        before = tree.centre.node.records[key].generation
        held = await revisions(tree)
        await lose(tree)
        # Neither has any child the object, though each has the delta that leads to it.
        for path in (EMEA, SITE):
            tree.network.streams(path).blobs.pop(address)
        await come_back(tree)
        await recovered(tree)
        await tree.until("shop", synced(1))
        assert address in tree.network.streams(CENTRE).blobs
        assert tree.centre.node.records[key].generation > before
        assert await revisions(tree) == held


async def half_read(tree):
    """Begin a region anew as it is when it has read its mailbox for the first time, in part."""
    await tree.stop(EMEA)
    tree.network.streams(EMEA).own.pop(CURSOR_KEY)
    await tree.start(EMEA, tree.group, attached=False)


async def go_on_without_emea(tree):
    """The centre waits for the region, which is there and never ready; someone goes on."""
    async with asyncio.timeout(60):
        await tree.centre.until(lambda node: "emea" in node.shown_indexes())
        while tree.recovery.awaited != {"emea"}:
            await tree.centre.progress()
    assert not tree.drivers[EMEA].node.ready
    tree.recovery.go_on_without("emea")
    await recovered(tree)


async def test_what_a_child_that_is_never_ready_can_show_is_read_back_all_the_same(tmp_path):
    async with memory_tree(tmp_path, TREE) as tree:
        await deliver(tree, "a", "b")
        held, before = await revisions(tree), tree.centre.node.records
        await lose(tree)
        await half_read(tree)
        await come_back(tree)
        await go_on_without_emea(tree)
        await tree.until("shop", synced(1))
        await all_is_as_it_was(tree, before, held)
        await deliver(tree, "a", "b", "c")
        await until_site(tree, {"a", "b", "c"})


async def test_nobody_waits_for_content_of_a_child_that_someone_goes_on_without(
    tmp_path, monkeypatch
):
    asked = []

    async def silent(_self, child, reference):
        asked.append((child, reference.kind))
        raise ChildAway(f"/{child} cannot be reached")

    monkeypatch.setattr(AskedChildren, "content", silent)
    async with memory_tree(tmp_path, TREE) as tree:
        await deliver(tree, "a", "b")
        await deliver(tree, "x", of="other")
        held, keys = await revisions(tree), [await tree.placement_key(n) for n in ("shop", "other")]
        before = tree.centre.node.records
        await lose(tree)
        await half_read(tree)
        await come_back(tree)
        await go_on_without_emea(tree)
        # Once for all that two placements lead to. Nobody can tell what either held: both stay.
        assert len(asked) == 1
        after = tree.centre.node.records
        assert [after[key].data for key in keys] == [before[key].data for key in keys]
        assert "content" in tree.controllers.translator.held["shop"]
        assert await revisions(tree) == held


def test_only_what_this_centre_signed_is_read_back_and_of_each_key_the_newest(tmp_path):
    keys = load_or_make_keys(tmp_path / "one", SystemDice())
    others = load_or_make_keys(tmp_path / "two", SystemDice())
    assert read_recalled(b"junk", "emea", keys.root, keys.signing) is None
    assert newest_index([]) == 0
    record = keys_draft(others).stamped(5)
    forged = others.root.seal("keys", encode_payload(record)).encode()
    assert read_recalled(forged, "emea", keys.root, keys.signing) is None
    own = keys.root.seal("keys", encode_payload(keys_draft(keys).stamped(5))).encode()
    recalled = read_recalled(own, "emea", keys.root, keys.signing)
    assert recalled is not None
    assert missing([recalled], {}) == []


def test_damaged_notes_are_as_none(tmp_path):
    (tmp_path / "ledger.json").write_text(json.dumps({"generation": "x"}))
    assert LedgerNotes(tmp_path).generation == 0
    (tmp_path / "ledger.json").write_text("{")
    notes = LedgerNotes(tmp_path)
    notes.issued(7)
    assert LedgerNotes(tmp_path).generation == 7
    with pytest.raises(AssertionError):
        assert LedgerNotes(tmp_path).recovered
