"""What is unusual in a manifest and legal all the same reaches the edges as it was meant."""

import time

import pytest

from leafcast.demo.workload import load_files
from relay.space_errors import SpaceError
from schemas.content.carried import without_carried
from schemas.content.manifest import chunk_references, read_root
from schemas.objects.objects import BUILT_IN_KINDS, ObjectKey
from schemas.values.identity import SNAPSHOT_KEY, NodePath
from tests.awaiting import until_object
from tests.memory_tree import config_map, memory_tree, placement

SNAPSHOTS_BYTES_MAX = 4000
LONG, LABEL = "n" * 253, "v" * 63
EDGES = ["/r1", "/r1/s1", "/r1/s2", "/r2", "/r2/s1"]
HARD = f"""\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: services.hard.example.com}}
spec:
  group: hard.example.com
  scope: Namespaced
  names: {{kind: Service, plural: services}}
  versions: [{{name: v1, served: true, storage: true}}]
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Namespace
  metadata: {{name: hard}}
- apiVersion: v1
  kind: ConfigMapList
  items:
  - metadata: {{name: one-of-a-list, namespace: hard}}
    data: {{operator: =, day: 2024-01-31, octal: "0777", "yes": "no"}}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {LONG}
  namespace: hard
  labels: {{"{"p" * 63}.example.com/{LABEL}": {LABEL}, empty: ""}}
  annotations: {{words: "Grüße, 日本, 🌱, \\u0000-free", empty: ""}}
data: {{"": "", text: "ß\\n\\ttab \\U0001F331", blank: " "}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: "hard:reader:all"}}
rules: []
---
apiVersion: v1
kind: Service
metadata: {{name: same, namespace: hard}}
spec: {{ports: []}}
---
apiVersion: hard.example.com/v1
kind: Service
metadata: {{name: same, namespace: hard}}
spec:
  floats: [0.1, 1.0, -0.0, 1.0e+21, 1e-7]
  integers: [9223372036854775807, -9223372036854775808, 18446744073709551615, 0]
  nothing: {{}}
  items: [null, {{}}, [], {{here: null}}, {{}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: same, namespace: hard}}
data: {{}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: same}}
binaryData: {{bytes: AAEC}}
---
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {{name: {"p" * 253}}}
spec:
  locationSelectors: [{{}}]
  downsync:
  - {{namespaces: [hard]}}
  - {{apiGroup: "", resources: [configmaps], namespaces: [default]}}
  - {{resources: [clusterroles], objectNames: ["hard:reader:all"]}}
"""


def everywhere(count):
    def met(counted):
        summary = counted.summary
        same = summary.states == {"synced": count} and summary.health == {"healthy": count}
        return counted.exact and same

    return met


def head_of(tree, key):
    return tree.controllers.issuer.records[key]


def root_of(tree, key):
    """What the last gate of a placement admits to."""
    return tree.centre.node.records[key].body.gates[-1].arm


async def test_hard_manifests_reach_each_edge_as_the_centre_holds_them(tmp_path):
    file = tmp_path / "hard.yaml"
    file.write_text(HARD, encoding="utf-8")
    workload = load_files([str(file)], str)
    kinds = BUILT_IN_KINDS.extended_by(workload.objects)
    keys = [kinds.key_of(obj) for obj in workload.objects if obj["kind"] != "EdgePlacement"]
    assert len(set(keys)) == len(workload.objects) - 1 == 9
    async with memory_tree(tmp_path, EDGES) as tree:
        await tree.apply(*workload.objects)
        await tree.until("p" * 253, everywhere(3))
        for space in tree.spaces.values():
            for key in keys:
                held, found = await tree.workloads.get(key), await space.get(key)
                assert found is not None, key
                assert content(found) == content(held), key
                for part in ("labels", "annotations"):
                    wanted = held["metadata"].get(part, {})
                    assert wanted.items() <= found["metadata"].get(part, {}).items(), key
        one = await space.get(ObjectKey("", "configmaps", "hard", "one-of-a-list"))
        custom = await space.get(ObjectKey("hard.example.com", "services", "hard", "same"))
        default = await space.get(ObjectKey("", "configmaps", "default", "same"))
    assert one["data"] == {"operator": "=", "day": "2024-01-31", "octal": "0777", "yes": "no"}
    assert custom["spec"]["floats"] == [0.1, 1, 0, 1e21, 1e-7]
    assert custom["spec"]["integers"] == [2**63 - 1, -(2**63), 2**64 - 1, 0]
    assert custom["spec"]["items"] == [None, {}, [], {"here": None}, {}]
    assert default["binaryData"] == {"bytes": "AAEC"}


def content(obj):
    return {name: obj[name] for name in obj if name not in ("metadata", "status")}


@pytest.mark.parametrize("length", [63, 64, 253])
async def test_a_placement_may_have_a_name_of_any_length_that_kubernetes_allows(tmp_path, length):
    name = ("a.b-" * 64)[: length - 1] + "z"
    async with memory_tree(tmp_path, ["/r1", "/r1/s1"]) as tree:
        await tree.apply(config_map("c", "shop", text="1"), placement(name, "shop"))
        await tree.until(name, everywhere(1))
        status = ObjectKey("edge.kubestellar.io", "edgeplacements", "", name)
        await until_object(
            tree.workloads, status, lambda shop: shop.get("status", {}).get("synced")
        )
        await tree.workloads.delete(status)
        copy = ObjectKey("", "configmaps", "shop", "c")
        await until_object(tree.spaces[NodePath.parse("/r1/s1")], copy, lambda found: found is None)


async def test_what_differs_in_the_order_of_keys_or_in_nulls_only_is_no_change(tmp_path):
    async with memory_tree(tmp_path, ["/r1", "/r1/s1"]) as tree:
        obj = config_map("c", "shop", a="1", b="2", c="3")
        await tree.apply(obj, placement("shop", "shop"))
        await tree.until("shop", everywhere(1))
        key = await tree.placement_key("shop")
        before = head_of(tree, key).generation, tree.centre.counters.mail_written
        turned = {name: obj[name] for name in reversed(obj)}
        turned["data"] = {name: obj["data"][name] for name in reversed(obj["data"])}
        turned["binaryData"] = None
        await tree.apply(turned)
        await tree.controllers.caught_up()
        assert (head_of(tree, key).generation, tree.centre.counters.mail_written) == before
        await tree.apply({**turned, "binaryData": {}})
        await tree.controllers.caught_up()
        assert head_of(tree, key).generation > before[0]


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 10**40])
async def test_an_integer_beyond_64_bits_is_refused_by_its_place(tmp_path, number):
    async with memory_tree(tmp_path, ["/r1", "/r1/s1"]) as tree:
        obj = config_map("c", "shop") | {"spec": {"list": [{"number": number}]}}
        with pytest.raises(SpaceError, match=r"shop/c: \.spec\.list\[0\]\.number: an integer"):
            await tree.apply(obj)


async def test_one_change_sends_one_object_one_chunk_and_the_root_over_each_link(tmp_path):
    paths = [NodePath.parse(path) for path in EDGES]
    async with memory_tree(tmp_path, EDGES) as tree:
        await tree.apply(placement("shop", "shop"))
        objects = [config_map(f"c{at:03}", "shop", text=f"{at}" * 300) for at in range(400)]
        await tree.apply(*objects)
        await tree.controllers.caught_up()
        key = await tree.placement_key("shop")
        await tree.centre.until(
            lambda node: (
                key in node.records
                and node.records[key].generation == head_of(tree, key).generation
            )
        )
        former = root_of(tree, key)
        await tree.until(
            "shop", lambda c: everywhere(3)(c) and c.summary.arms == {former.address: 3}
        )
        blobs = {path: set(tree.network.streams(path).blobs) for path in paths}
        mail = {path: mailbox(tree, path) for path in paths}

        await tree.apply(config_map("c123", "shop", text="changed"))
        await tree.until(
            "shop", lambda c: everywhere(3)(c) and former.address not in c.summary.arms
        )

        expected = await added_content(tree, former, root_of(tree, key))
        for path in paths:
            held = tree.network.streams(path).blobs
            sent = {address: len(held[address]) for address in held.keys() - blobs[path]}
            assert expected.items() <= sent.items(), path
            # Besides, of each snapshot what leads to the changed placement.
            assert sum(sent.values()) - sum(expected.values()) < SNAPSHOTS_BYTES_MAX, path
            slots = {slot for slot, at in mailbox(tree, path).items() if at != mail[path].get(slot)}
            assert key in slots <= {key, SNAPSHOT_KEY}, path
            delta = tree.network.streams(path.parent).mail.get((path.name, key))
            record, carried = without_carried(delta.data)
            assert len(record) < 1024, path
            # What is small travels along with it, and nothing but what is new.
            assert {address: len(value) for address, value in carried}.items() <= sent.items(), path
    # One chunk of eight, and an object of a few bytes: a tenth of the whole list of objects.
    assert sum(expected.values()) < 10_000


def mailbox(tree, path):
    """Where each message to a node was last written, by mail key."""
    kept = tree.network.streams(path.parent).mail.items()
    return {key: at.sequence for (child, key), at in kept if child == path.name}


async def added_content(tree, former, now):
    """Stored sizes, by address, of the root, the one chunk and the one object that are new."""
    stored = tree.network.streams(NodePath()).blobs
    old, new = [set(read_root(await tree.centre.load(root)).chunks) for root in (former, now)]
    [was], [chunk] = old - new, new - old
    before, after = [set(chunk_references(await tree.centre.load(one))) for one in (was, chunk)]
    [entry] = after - before
    return {
        address: len(stored[address]) for address in (now.address, chunk.address, entry.address)
    }


@pytest.mark.timeout(300)
async def test_a_thousand_small_objects_take_seconds(tmp_path):
    async with memory_tree(tmp_path, ["/r1", "/r1/s1"]) as tree:
        began = time.process_time()
        await tree.apply(*[config_map(f"c{at:04}", "many", k=str(at)) for at in range(1000)])
        await tree.apply(placement("many", "many"))
        await tree.until("many", everywhere(1))
        spent = time.process_time() - began
        found = await tree.spaces[NodePath.parse("/r1/s1")].list("", "configmaps")
    assert len(found.objects) == 1000
    # Of the processor's time, so that others on the machine do not count; it takes about one.
    assert spent < 6
