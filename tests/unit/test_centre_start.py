"""How a tree begins, and how nodes come and go."""

import asyncio

import pytest

from controllers.keys import KeysUnusable, load_or_make_keys
from controllers.nodes import NodeRefused, add_node, nodes, remove_node
from relay.adapters.server.nkey_pairs import new_user_nkey
from schemas.identity import KEYS_KEY, SNAPSHOT_KEY, NodePath
from schemas.records import DeltaHead, KeysRecord
from tests.unit.centre_relay import WAIT_SECONDS
from tests.unit.centre_world import Centre, config, holds, placement


@pytest.fixture
def centre(tmp_path):
    return Centre(tmp_path / "keys")


async def test_a_first_start_issues_keys_and_then_an_empty_snapshot(centre):
    async with centre.running():
        await centre.relay.until(lambda relay: relay.snapshots)
    (first,) = centre.relay.history
    assert isinstance(first, KeysRecord)
    assert await centre.relay.listed() == {}


async def test_keys_are_signed_by_the_root_and_all_else_by_a_key_they_grant(centre):
    async with centre.running() as controllers:
        await centre.relay.until(lambda relay: relay.snapshots)
    keys = centre.relay.records[KEYS_KEY]
    assert keys.verify(centre.relay.tree, controllers.keys.root.public_key)
    (grant,) = centre.relay.record(KEYS_KEY).grants
    assert set(grant.kinds) == {"delta", "profile", "location", "node", "snapshot", "ask"}
    snapshot = centre.relay.records[SNAPSHOT_KEY]
    assert snapshot.key_id == grant.key_id
    assert snapshot.verify(centre.relay.tree, grant.public_key)


async def test_a_second_start_issues_no_record_and_begins_a_new_term(centre):
    for _ in range(2):
        async with centre.running() as controllers:
            seen = len(centre.relay.snapshots)
            await centre.apply(config("a"), placement())
            await centre.relay.until(holds("a"))
            await centre.relay.until(lambda relay, seen=seen: len(relay.snapshots) > seen)
    keys, delta = centre.relay.history
    assert (type(keys), type(delta)) == (KeysRecord, DeltaHead)
    assert controllers.issuer.ledger.term != delta.term == keys.term
    terms = await centre.relay.terms()
    assert terms[delta.term] >= delta.generation


async def test_a_second_start_may_come_before_the_relay_looked_at_what_the_first_one_issued(centre):
    controllers = await centre.controllers()
    del centre.relay.records[KEYS_KEY]
    await controllers.issuer.begin()
    assert len(centre.relay.history) == 1


async def test_keys_are_readable_by_their_owner_only(centre):
    path = centre.folder / "keys.json"
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    with pytest.raises(KeysUnusable, match="chmod 600"):
        load_or_make_keys(centre.folder, centre.dice)


async def test_a_ledger_signed_with_other_keys_is_refused(centre, tmp_path):
    await centre.controllers()
    other = Centre(tmp_path / "other")
    other.relay.records = centre.relay.records
    with pytest.raises(KeysUnusable, match="other keys"):
        await other.controllers()


async def test_a_node_is_added_below_a_node_only_and_removed_when_none_is_below_it(centre):
    controllers = await centre.controllers()
    issuer, tree = controllers.issuer, centre.relay.tree
    emea, site = NodePath.parse("/emea"), NodePath.parse("/emea/s1")
    with pytest.raises(NodeRefused, match="add /emea first"):
        await add_node(issuer, tree, site, centre.dice.entropy(32), new_user_nkey)
    for path in (emea, site):
        made = await add_node(issuer, tree, path, centre.dice.entropy(32), new_user_nkey)
        assert made.seed.startswith("SU")
    assert [str(node.path) for node in nodes(issuer)] == ["/emea", "/emea/s1"]
    with pytest.raises(NodeRefused, match="below"):
        await remove_node(issuer, tree, emea)
    await remove_node(issuer, tree, site)
    await remove_node(issuer, tree, emea)
    assert nodes(issuer) == []
    async with asyncio.timeout(WAIT_SECONDS), asyncio.TaskGroup() as group:
        running = group.create_task(controllers.run())
        await centre.relay.until(lambda relay: relay.snapshots and not relay.held())
        running.cancel()
