"""How a tree begins, and how nodes come and go."""

import pytest

from controllers.keys import KeysUnusable, load_or_make_keys
from controllers.nodes import NodeRefused, add_node, nodes, remove_node
from relay.adapters.server.nkey_pairs import new_user_nkey
from schemas.identity import INDEX_KEY, KEYS_KEY, NodePath
from schemas.records import KeysRecord
from tests.unit.centre_world import Centre


@pytest.fixture
def centre(tmp_path):
    return Centre(tmp_path / "keys")


async def test_a_first_start_issues_keys_and_then_an_empty_index(centre):
    await centre.controllers().start()
    first, second = centre.relay.history
    assert isinstance(first, KeysRecord)
    assert second.source.api == "leafcast.io/Index"
    assert await centre.relay.index() == {}


async def test_keys_are_signed_by_the_root_and_all_else_by_a_key_they_grant(centre):
    controllers = centre.controllers()
    await controllers.start()
    keys = centre.relay.records[KEYS_KEY]
    assert keys.verify(centre.relay.tree, controllers.keys.root.public_key)
    (grant,) = centre.relay.record(KEYS_KEY).grants
    assert set(grant.kinds) == {"delta", "profile", "location", "node", "index", "ask"}
    index = centre.relay.records[INDEX_KEY]
    assert index.key_id == grant.key_id
    assert index.verify(centre.relay.tree, grant.public_key)


async def test_a_second_start_issues_nothing_new(centre):
    await centre.controllers().start()
    await centre.controllers().start()
    assert len(centre.relay.history) == 2


async def test_a_second_start_may_come_before_the_relay_looked_at_what_the_first_one_issued(centre):
    controllers = centre.controllers()
    await controllers.start()
    del centre.relay.records[KEYS_KEY]
    await controllers.start()
    assert len(centre.relay.history) == 2


async def test_keys_are_readable_by_their_owner_only(centre):
    path = centre.folder / "keys.json"
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    with pytest.raises(KeysUnusable, match="chmod 600"):
        load_or_make_keys(centre.folder, centre.dice)


async def test_a_ledger_signed_with_other_keys_is_refused(centre, tmp_path):
    await centre.controllers().start()
    other = Centre(tmp_path / "other")
    other.relay.records = centre.relay.records
    with pytest.raises(KeysUnusable, match="other keys"):
        await other.controllers().start()


async def test_a_node_is_added_below_a_node_only_and_removed_when_none_is_below_it(centre):
    controllers = centre.controllers()
    await controllers.start()
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
    assert centre.relay.history[-1].deleted
