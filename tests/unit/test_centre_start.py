"""How a tree begins, and how nodes come and go."""

import asyncio
from types import SimpleNamespace

import pytest

from controllers.issuing.issuer import SecondCentre
from controllers.issuing.keys import KeysUnusable, load_or_make_keys
from controllers.issuing.nodes import NodeRefused, add_node, enrol_lost_nodes, nodes, remove_node
from controllers.work_queue import BURST_SECONDS, HOLD_SECONDS
from leafcast.ask.api import ApiError
from leafcast.daemon.verbs.approvals import Approvals
from relay.adapters.server.nkey_pairs import new_user_nkey
from relay.ports import BusBroken, first_of
from schemas.records.records import DeltaHead, KeysRecord
from schemas.values.identity import KEYS_KEY, SNAPSHOT_KEY, NodePath
from tests.awaiting import eventually
from tests.unit.centre_relay import WAIT_SECONDS
from tests.unit.centre_world import (
    Centre,
    config,
    holds,
    lists,
    lists_not,
    placement,
    placement_key,
)

pytestmark = pytest.mark.leaps


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
    assert keys.verify(centre.relay.tree, controllers.keys.ring.roots[0].public_key)
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


@pytest.mark.parametrize("name", ["keys.json", "sealing.json"])
async def test_keys_are_readable_by_their_owner_only(centre, name):
    path = centre.folder / name
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    with pytest.raises(KeysUnusable, match=f"chmod 600 {path}"):
        load_or_make_keys(centre.folder, centre.dice)


async def test_a_ledger_signed_with_other_keys_is_refused(centre, tmp_path):
    await centre.controllers()
    other = Centre(tmp_path / "other")
    other.relay.records = centre.relay.records
    with pytest.raises(KeysUnusable, match="other keys"):
        await other.controllers()


async def test_a_ledger_that_lost_its_keys_record_has_it_again_at_the_next_start(centre, tmp_path):
    await centre.controllers()
    await centre.apply(config("a"), placement())
    async with centre.running():
        await centre.relay.until(holds("a"))
    kept = centre.relay.records.pop(KEYS_KEY)
    with pytest.raises(BusBroken, match="lost the keys"):
        await centre.controllers()
    assert centre.relay.records[KEYS_KEY] == kept
    await centre.controllers()
    # Keys that did not sign it say nothing of it.
    del centre.relay.records[KEYS_KEY]
    other = Centre(tmp_path / "other")
    await other.controllers()
    other.relay.records = centre.relay.records
    with pytest.raises(KeysUnusable, match="another's"):
        await other.controllers()


async def test_a_node_is_added_below_a_node_only_and_removed_when_none_is_below_it(centre):
    controllers = await centre.controllers()
    issuer = controllers.issuer
    emea, site = NodePath.parse("/emea"), NodePath.parse("/emea/s1")
    with pytest.raises(NodeRefused, match="add /emea first"):
        await add_node(issuer, site, centre.dice.entropy(32), new_user_nkey)
    for path in (emea, site):
        made = await add_node(issuer, path, centre.dice.entropy(32), new_user_nkey)
        assert made.seed.startswith("SU")
    assert [str(node.path) for node in nodes(issuer)] == ["/emea", "/emea/s1"]
    with pytest.raises(NodeRefused, match="below"):
        await remove_node(issuer, emea)
    await remove_node(issuer, site)
    await remove_node(issuer, emea)
    assert nodes(issuer) == []
    async with asyncio.timeout(WAIT_SECONDS), asyncio.TaskGroup() as group:
        running = group.create_task(controllers.run())
        await centre.relay.until(lambda relay: relay.snapshots and not relay.held())
        running.cancel()


async def test_what_the_ledger_lost_stays_listed_until_it_is_said_again_or_let_go(
    centre,
):
    await centre.apply(config("a"), placement("shop"), placement("twin"))
    async with centre.running():
        await centre.relay.until(holds("a"))
        await centre.relay.until(holds("a", of="twin"))
    async with centre.running():
        await centre.relay.until(lambda relay: len(relay.snapshots) > 1)
    shop, twin = (centre.relay.delta(name) for name in ("shop", "twin"))
    for lost in (shop, twin):
        del centre.relay.records[lost.source.key]
    await centre.wds.delete(placement_key("twin"))
    approvals = Approvals(SimpleNamespace(controllers=None))
    async with centre.running() as controllers:
        approvals._centre.controllers = controllers
        await centre.relay.until(holds("a"))
        assert controllers.issuer.lost == {twin.source.key}
        assert "1 record" in (await approvals.held())["ledger"]
        await centre.relay.until(lambda relay: lists(relay, twin.source.key))
        # Nobody knows what it was before: whoever holds it may have had more.
        again = centre.relay.delta("shop")
        assert again.generation == again.last_loss > shop.generation
        assert "1 record" in (await approvals.accept(ledger=True))["accepted"]
        await centre.relay.until(lambda relay: lists_not(relay, twin.source.key))
        with pytest.raises(ApiError, match="no removal"):
            await approvals.accept(ledger=True)


async def test_all_is_issued_anew_above_a_snapshot_that_a_child_shows(centre):
    await centre.apply(config("a"), placement())
    async with centre.running() as controllers:
        await centre.relay.until(holds("a"))
        before = centre.relay.delta("shop")
        shown = before.generation + 10**9
        centre.relay.show(shown)
        await centre.relay.until(lambda relay: relay.delta("shop").generation > shown)
        await centre.relay.until(lambda relay: relay.record(KEYS_KEY).generation > shown)
        again, seen = centre.relay.delta("shop"), len(centre.relay.history)
        assert again.body_hash == before.body_hash
        # What it holds itself is none of another ledger's.
        centre.relay.show(shown)
        await centre.apply(config("b"))
        await centre.relay.until(holds("a", "b"))
        assert len(centre.relay.history) == seen + 1
        controllers.issuer.ledger.assert_invariants()


async def test_a_copy_of_a_centre_that_began_first_ends_and_says_so(centre):
    later = centre.clock.now().wall_ms + 10**6
    controllers = await centre.controllers()
    seen = len(centre.relay.history)
    centre.relay.show(2**62, "0" * 16, later)
    with pytest.raises(ExceptionGroup) as ended:
        await controllers.run()
    assert "another centre of this tree signed at" in str(first_of(ended.value))
    assert isinstance(first_of(ended.value), SecondCentre)
    assert len(centre.relay.history) == seen


async def test_a_centre_goes_on_when_a_copy_began_later(centre):
    await centre.apply(config("a"), placement())
    async with centre.running():
        await centre.relay.until(holds("a"))
        centre.relay.show(2**50, "f" * 16, centre.clock.now().wall_ms + 10**6)
        await centre.relay.until(lambda relay: relay.delta("shop").generation > 2**50)
        assert [(said[0], "stop that one" in said[2]) for said in centre.noted] == [
            ("SecondCentre", True)
        ]


async def test_nothing_is_dropped_while_an_apply_is_under_way(centre):
    await centre.apply(config("a"), placement())
    async with centre.running() as controllers:
        await centre.relay.until(holds("a"))
        key = centre.relay.delta("shop").source.key
        controllers.issuer.pause("one")
        await centre.wds.delete(placement_key("shop"))
        await eventually(lambda: key not in controllers.issuer.records)
        assert controllers.issuer.ledger.contains(key)
        assert key in centre.relay.records
        controllers.issuer.resume("one")
        await controllers.issuer.dropped([key])
        assert key not in centre.relay.records


async def test_what_is_applied_together_is_issued_as_one(centre):
    await centre.apply(config("a"), placement())
    async with centre.running() as controllers:
        await centre.relay.until(holds("a"))
        before = centre.relay.delta("shop").generation
        controllers.pause("one")
        await centre.apply(config("b"))
        await controllers.translator.seen()
        await centre.clock.sleep(2 * BURST_SECONDS)
        assert centre.relay.delta("shop").generation == before
        # What a later object of the batch freezes did not go out before.
        wrong = config("c") | {"data": {"text": "{{ wrong }}"}}
        wrong["metadata"]["annotations"] = {"control.kubestellar.io/expand-templates": "true"}
        await centre.apply(wrong)
        controllers.resume("one")
        await controllers.caught_up()
        assert centre.relay.delta("shop").generation == before
        assert "wrong" in controllers.translator.workloads.lack("shop").message


async def test_who_dies_amid_an_apply_holds_up_nothing_for_long(centre):
    await centre.apply(config("a"), placement())
    async with centre.running() as controllers:
        await centre.relay.until(holds("a"))
        controllers.pause("one")
        await centre.apply(config("b"))
        async with asyncio.timeout(HOLD_SECONDS + 5):
            await centre.relay.until(holds("a", "b"))


async def test_a_lost_ledger_lets_nodes_in_again_and_brings_no_removed_one_back(centre):
    paths = [NodePath.parse("/emea"), NodePath.parse("/apac")]
    controllers = await centre.controllers()
    kept = {}
    for path in paths:
        made = await add_node(controllers.issuer, path, centre.dice.entropy(32), new_user_nkey)
        kept[path] = made.nkey
    centre.relay.records = {}
    controllers = await centre.controllers()
    await enrol_lost_nodes(controllers.issuer, {paths[0]: kept[paths[0]]})
    assert [node.nkey for node in nodes(controllers.issuer)] == [kept[paths[0]]]
    controllers = await centre.controllers()
    await enrol_lost_nodes(controllers.issuer, kept)
    assert [node.path for node in nodes(controllers.issuer)] == [paths[0]]
