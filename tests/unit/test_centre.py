"""The controllers of a centre over spaces in memory and an honest ledger."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from controllers.centre import Controllers
from controllers.core.cleaning import EXECUTING_COUNT_LABEL
from controllers.keys import KeysUnusable, load_or_make_keys
from controllers.nodes import NodeRefused, add_node, nodes, remove_node
from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.memory_space import MemorySpace
from relay.adapters.nkey_pairs import new_user_nkey
from schemas import codec
from schemas.identity import INDEX_KEY, KEYS_KEY, NodePath
from schemas.objects import ObjectKey
from schemas.records import KeysRecord, LocationRecord, Profile
from schemas.reports import ExceptionSample, ObjectResult, Summary
from tests.unit.centre_relay import WAIT_SECONDS, LedgerRelay

USER = "user"
SHOP = ObjectKey("edge.kubestellar.io", "edgeplacements", "", "shop")


class Centre:
    """What outlives a run of the controllers: the spaces, the ledger, the folder of keys."""

    def __init__(self, folder):
        self.folder = folder
        self.clock, self.dice = SystemClock(), SystemDice()
        self.wds = MemorySpace(self.clock, self.dice)
        self.inventory = MemorySpace(self.clock, self.dice)
        self.relay = LedgerRelay(load_or_make_keys(folder, self.dice).tree)

    def controllers(self):
        return Controllers(self.relay, self.wds, self.inventory, self.clock, self.dice, self.folder)

    @asynccontextmanager
    async def running(self):
        controllers = self.controllers()
        async with asyncio.TaskGroup() as group:
            task = group.create_task(controllers.run())
            yield controllers
            task.cancel()

    async def until_status(self, key, predicate, space=None):
        async with asyncio.timeout(WAIT_SECONDS):
            while True:
                obj = await (space or self.wds).get(key)
                if obj is not None and predicate(obj):
                    return obj
                await asyncio.sleep(0.01)

    async def apply(self, *objects):
        for obj in objects:
            await self.wds.apply(obj, USER)


@pytest.fixture
def centre(tmp_path):
    return Centre(tmp_path / "keys")


def config(name, namespace="shop", value="1", **labels):
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"key": value}}


def config_key(name, namespace="shop"):
    return ObjectKey("", "configmaps", namespace, name)


def deployment(name):
    metadata = {"name": name, "namespace": "shop"}
    spec = {"replicas": 1}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def placement(name="shop", clause=None, selectors=({},), **spec):
    said = {"locationSelectors": list(selectors), "downsync": [clause or {"namespaces": ["shop"]}]}
    return ours("EdgePlacement", name, {**said, **spec})


def ours(kind, name, spec, **metadata):
    return {
        "apiVersion": "edge.kubestellar.io/v2alpha1",
        "kind": kind,
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }


def target(name, path=None, **labels):
    annotations = {"leafcast.io/path": path} if path else {}
    return ours("SyncTarget", name, {}, labels=labels, annotations=annotations)


def location(name, selector=None, **labels):
    resource = {"group": "edge.kubestellar.io", "version": "v2alpha1", "resource": "synctargets"}
    spec = {"resource": resource, "instanceSelector": selector or {}}
    return ours("Location", name, spec, labels=labels)


def holds(*names, of="shop"):
    async def predicate(relay):
        head = relay.delta(of)
        if head is None or head.deleted:
            return False
        return set(await relay.entries(head)) == set(names)

    return predicate


def condition(obj, type_):
    listed = obj.get("status", {}).get("conditions", [])
    return next((item for item in listed if item["type"] == type_), None)


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


async def test_a_placement_and_its_objects_become_one_delta_that_the_index_lists(centre):
    await centre.apply(*(config(f"c{at}") for at in range(30)), placement())
    async with centre.running():
        await centre.relay.until(holds(*(f"c{at}" for at in range(30))))
        head = centre.relay.delta("shop")
        await centre.relay.until(lambda relay: _indexed(relay, head))
    assert len(centre.relay.deltas()) == 1


async def _indexed(relay, head):
    return (await relay.index()).get(head.source.key) == head.generation


async def test_a_burst_of_objects_makes_few_deltas(centre):
    await centre.apply(placement())
    async with centre.running():
        await centre.relay.until(holds())
        await centre.apply(*(config(f"c{at}") for at in range(30)))
        await centre.relay.until(holds(*(f"c{at}" for at in range(30))))
    assert len(centre.relay.deltas()) <= 4


async def test_a_changed_object_costs_its_own_blob_and_its_part_of_the_manifest(centre):
    await centre.apply(*(config(f"c{at}") for at in range(500)), placement())
    async with centre.running():
        await centre.relay.until(holds(*(f"c{at}" for at in range(500))))
        before = centre.relay.delta("shop")
        await centre.apply(config("c7", value="2"))
        await centre.relay.until(lambda relay: relay.delta("shop") != before)
    writes = [item for item in centre.relay.blob_writes if item]
    assert len(writes[1]) > 500
    change = [item for item in writes if len(item) == 3]
    assert change, [len(item) for item in writes]


async def test_a_restart_issues_no_delta_again(centre):
    await centre.apply(config("a"), placement())
    async with centre.running():
        await centre.relay.until(holds("a"))
    before = centre.relay.deltas()
    await centre.wds.set_status(config_key("a"), {"seen": "yes"})
    async with centre.running():
        await centre.until_status(SHOP, lambda obj: "status" in obj)
        await centre.apply(config("b"))
        await centre.relay.until(holds("a", "b"))
    (new,) = centre.relay.deltas()[len(before) :]
    assert new.generation > before[-1].generation


async def test_a_new_status_is_no_news_to_destinations(centre):
    await centre.apply(config("a"), placement())
    async with centre.running():
        await centre.relay.until(holds("a"))
        await centre.wds.set_status(config_key("a"), {"ready": "yes"})
        await centre.apply(config("b"))
        await centre.relay.until(holds("a", "b"))
    first, second = [await centre.relay.entries(head) for head in centre.relay.deltas()]
    assert first["a"] == second["a"]


async def test_a_deleted_object_is_lost_and_the_delta_says_when(centre):
    await centre.apply(config("a"), config("b"), placement())
    async with centre.running():
        await centre.relay.until(holds("a", "b"))
        assert centre.relay.delta("shop").last_loss == 0
        await centre.wds.delete(config_key("a"))
        await centre.relay.until(holds("b"))
        lost = centre.relay.delta("shop")
        await centre.apply(config("c"))
        await centre.relay.until(holds("b", "c"))
    assert lost.last_loss == lost.generation
    assert centre.relay.delta("shop").last_loss == lost.generation


async def test_a_deleted_placement_leaves_a_tombstone_and_the_index(centre):
    await centre.apply(config("a"), placement())
    async with centre.running():
        await centre.relay.until(holds("a"))
        key = centre.relay.delta("shop").source.key
        await centre.relay.until(lambda relay: _lists(relay, key))
        await centre.wds.delete(SHOP)
        await centre.relay.until(lambda relay: relay.delta("shop").deleted)
        await centre.relay.until(lambda relay: _lists_not(relay, key))
    assert centre.relay.records[key].body is None


async def _lists(relay, key):
    return key in await relay.index()


async def _lists_not(relay, key):
    return key not in await relay.index()


async def test_a_placement_made_again_supersedes_its_tombstone(centre):
    await centre.apply(config("a"), placement())
    async with centre.running():
        await centre.relay.until(holds("a"))
        await centre.wds.delete(SHOP)
        await centre.relay.until(lambda relay: relay.delta("shop").deleted)
        gone = centre.relay.delta("shop").generation
        await centre.apply(placement())
        await centre.relay.until(holds("a"))
    assert centre.relay.delta("shop").generation > gone


async def test_who_gains_an_object_is_told_before_who_loses_it(centre):
    clauses = {name: {"labelSelectors": [{"matchLabels": {"to": name}}]} for name in "ab"}
    await centre.apply(*(placement(name, clause) for name, clause in clauses.items()))
    await centre.apply(config("moving", to="b"), config("a", to="a"), config("b", to="b"))
    async with centre.running():
        await centre.relay.until(holds("moving", "b", of="b"))
        before = len(centre.relay.deltas())
        await centre.apply(config("moving", to="a"))
        await centre.relay.until(holds("b", of="b"))
    gaining, losing = centre.relay.deltas()[before:]
    assert (gaining.source.name, losing.source.name) == ("a", "b")


async def test_a_bad_placement_says_so_and_its_last_good_state_stays_in_force(centre):
    await centre.apply(config("a"), placement())
    async with centre.running() as controllers:
        await centre.relay.until(holds("a"))
        good = centre.relay.delta("shop")
        await centre.apply(placement(clause={"resources": ["*"]}))
        bad = await centre.until_status(
            SHOP, lambda obj: (condition(obj, "Valid") or {}).get("status") == "False"
        )
        assert "edgeplacement/shop" in controllers.errors
        await centre.apply(placement())
        await centre.until_status(
            SHOP, lambda obj: (condition(obj, "Valid") or {}).get("status") == "True"
        )
    assert condition(bad, "Valid")["reason"] == "Invalid"
    assert "spec.downsync[0]" in condition(bad, "Valid")["message"]
    assert "narrow apiGroup" in condition(bad, "Valid")["message"]
    assert centre.relay.delta("shop") == good


async def test_a_small_deletion_while_the_centre_was_down_is_honoured(centre):
    await centre.apply(config("a"), config("b"), placement())
    async with centre.running():
        await centre.relay.until(holds("a", "b"))
    await centre.wds.delete(config_key("a"))
    async with centre.running():
        await centre.relay.until(holds("b"))


async def test_a_kind_that_vanished_unseen_is_held_until_someone_accepts(centre):
    await centre.apply(config("a"), deployment("web"), placement())
    async with centre.running():
        await centre.relay.until(holds("a", "web"))
    await centre.wds.delete(config_key("a"))
    async with centre.running() as controllers:
        obj = await centre.until_status(SHOP, lambda obj: condition(obj, "RemovalHeld"))
        assert set(await centre.relay.entries(centre.relay.delta("shop"))) == {"a", "web"}
        controllers.translator.accept_removals("shop")
        await centre.relay.until(holds("web"))
        await centre.until_status(SHOP, lambda obj: condition(obj, "RemovalHeld") is None)
    assert "configmaps" in condition(obj, "RemovalHeld")["message"]


async def test_many_deletions_on_a_watch_are_taken_at_their_word(centre):
    names = [f"c{at}" for at in range(30)]
    await centre.apply(*(config(name) for name in names), placement())
    async with centre.running():
        await centre.relay.until(holds(*names))
        for name in names:
            await centre.wds.delete(config_key(name))
        await centre.relay.until(holds())


async def test_an_empty_space_after_a_restart_withdraws_nothing(centre):
    names = [f"c{at}" for at in range(30)]
    await centre.apply(*(config(name) for name in names), placement())
    async with centre.running():
        await centre.relay.until(holds(*names))
    before = centre.relay.delta("shop")
    for name in names:
        await centre.wds.delete(config_key(name))
    await centre.wds.delete(SHOP)
    async with centre.running() as controllers:
        async with asyncio.timeout(WAIT_SECONDS):
            while "edgeplacement/shop" not in controllers.errors:
                await asyncio.sleep(0.01)
    assert centre.relay.delta("shop") == before


async def test_another_space_withdraws_nothing_of_the_first_one(centre):
    await centre.apply(config("a"), placement())
    async with centre.running():
        await centre.relay.until(holds("a"))
    first = centre.relay.delta("shop")
    centre.wds = MemorySpace(centre.clock, centre.dice)
    await centre.apply(config("b"), placement("other"))
    async with centre.running():
        await centre.relay.until(holds("b", of="other"))
        await centre.relay.until(lambda relay: _lists(relay, relay.delta("other").source.key))
        assert first.source.key in await centre.relay.index()
    assert centre.relay.delta("shop") == first


async def test_counts_come_back_into_the_placement(centre):
    await centre.inventory.apply(location("l1", env="prod"), USER)
    await centre.inventory.apply(location("l2", env="test"), USER)
    await centre.apply(config("a"), placement(selectors=[{"matchLabels": {"env": "prod"}}]))
    sample = ExceptionSample(0, "deployments.apps/shop/web", "ImagePullBackOff", 3, "/emea/s1")
    async with centre.running():
        await centre.relay.until(holds("a"))
        summary = Summary({"synced": 2, "failing": 3}, {"healthy": 2}, {}, (sample,))
        await centre.relay.report(centre.relay.delta("shop").source.key, summary)
        obj = await centre.until_status(SHOP, lambda obj: obj.get("status", {}).get("destinations"))
        await centre.until_status(SHOP, lambda obj: obj["status"]["matchingLocationCount"] == 1)
    status = obj["status"]
    assert (status["destinations"], status["synced"], status["failing"]) == (5, 2, 3)
    assert status["complete"] is True
    assert status["errors"] == [
        "shop/deployments.apps/web: ImagePullBackOff (3 destinations, e.g. /emea/s1)"
    ]
    assert condition(obj, "Synced")["reason"] == "Failing"


async def test_a_singleton_has_the_status_of_its_one_copy_and_loses_it_with_a_second(centre):
    web = ObjectKey("apps", "deployments", "shop", "web")
    await centre.apply(deployment("web"), placement(wantSingletonReportedState=True))
    returned = codec.canonical({"readyReplicas": 1})
    async with centre.running():
        await centre.relay.until(holds("web"))
        key = centre.relay.delta("shop").source.key
        one = ObjectResult(web, 1, "d1", returned)
        await centre.relay.report(key, Summary({"synced": 1}), (one,))
        obj = await centre.until_status(web, lambda obj: obj.get("status") and _count(obj))
        assert (obj["status"], _count(obj)) == ({"readyReplicas": 1}, "1")
        await centre.relay.report(key, Summary({"synced": 2}), (ObjectResult(web, 2),))
        await centre.until_status(web, lambda obj: not obj.get("status") and _count(obj) == "2")
        await centre.relay.report(key, Summary({"synced": 1}), (one,))
        await centre.until_status(web, lambda obj: obj.get("status") and _count(obj) == "1")
        await centre.apply(placement())
        await centre.until_status(web, lambda obj: not obj.get("status") and not _count(obj))
    assert EXECUTING_COUNT_LABEL not in obj["metadata"].get("annotations", {})


def _count(obj):
    return obj["metadata"].get("labels", {}).get(EXECUTING_COUNT_LABEL)


async def test_the_inventory_becomes_profiles_and_location_records(centre):
    await centre.inventory.apply(target("s1", "/emea/s1", site="s1"), USER)
    await centre.inventory.apply(location("emea", region="emea"), USER)
    async with centre.running():
        await centre.relay.until(lambda relay: len(_inventory(relay)) == 2)
    profile = next(item for item in _inventory(centre.relay) if isinstance(item, Profile))
    place = next(item for item in _inventory(centre.relay) if isinstance(item, LocationRecord))
    space = await centre.inventory.identity()
    assert profile.destination.startswith(f"{space}-mb-")
    assert (str(profile.path), profile.labels) == ("/emea/s1", {"site": "s1"})
    assert place.labels == {"region": "emea"}
    assert place.instance_selector.is_everything


def _inventory(relay):
    records = [relay.record(slot) for slot in relay.records]
    kinds = (Profile, LocationRecord)
    return [item for item in records if isinstance(item, kinds) and not item.deleted]


async def test_a_deleted_sync_target_leaves_a_tombstone(centre):
    await centre.inventory.apply(target("s1", "/emea/s1"), USER)
    async with centre.running():
        await centre.relay.until(lambda relay: len(_inventory(relay)) == 1)
        await centre.inventory.delete(ObjectKey("edge.kubestellar.io", "synctargets", "", "s1"))
        await centre.relay.until(lambda relay: not _inventory(relay))
    assert centre.relay.history[-1].deleted


async def test_an_inventory_that_vanished_unseen_is_kept(centre):
    await centre.inventory.apply(target("s1", "/emea/s1"), USER)
    async with centre.running():
        await centre.relay.until(lambda relay: len(_inventory(relay)) == 1)
    await centre.inventory.delete(ObjectKey("edge.kubestellar.io", "synctargets", "", "s1"))
    async with centre.running() as controllers:
        async with asyncio.timeout(WAIT_SECONDS):
            while "synctargets/RemovalHeld" not in controllers.errors:
                await asyncio.sleep(0.01)
        assert len(_inventory(centre.relay)) == 1
        controllers.mailboxes.accept_removals()
        await centre.relay.until(lambda relay: not _inventory(relay))


async def test_a_path_has_one_claimant_and_the_other_is_told_of_both(centre):
    key = ObjectKey("edge.kubestellar.io", "synctargets", "", "s2")
    await centre.inventory.apply(target("s1", "/emea/s1"), USER)
    await centre.inventory.apply(target("s2", "/emea/s1"), USER)
    async with centre.running():
        told = await centre.until_status(
            key, lambda obj: condition(obj, "Registered"), centre.inventory
        )
        await centre.relay.until(lambda relay: len(_inventory(relay)) == 1)
        await centre.inventory.delete(ObjectKey("edge.kubestellar.io", "synctargets", "", "s1"))
        await centre.until_status(
            key, lambda obj: condition(obj, "Registered")["status"] == "True", centre.inventory
        )
        await centre.relay.until(lambda relay: [p.source.name for p in _inventory(relay)] == ["s2"])
    message = condition(told, "Registered")["message"]
    assert '"s1"' in message
    assert '"s2"' in message
    assert condition(told, "Registered")["reason"] == "PathTaken"


async def test_a_sync_target_without_a_path_is_told_how_to_get_one(centre):
    key = ObjectKey("edge.kubestellar.io", "synctargets", "", "s1")
    await centre.inventory.apply(target("s1"), USER)
    async with centre.running():
        told = await centre.until_status(
            key, lambda obj: condition(obj, "Registered"), centre.inventory
        )
    assert "leafcast.io/path" in condition(told, "Registered")["message"]
    assert not _inventory(centre.relay)


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
