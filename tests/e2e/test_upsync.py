"""Objects that arise at edges come up to the parent, and are read there with the edge away."""

from __future__ import annotations

import re

import pytest

from relay.shell.asker import AskFailed
from schemas.objects.objects import ObjectKey
from schemas.reports.upsync import OBJECT_MAX_BYTES
from schemas.values.identity import NodePath
from tests.awaiting import eventually
from tests.memory_tree import config_map, memory_tree, placement
from tests.namespaces import namespace_object

PATHS = ["/r1", "/r1/s1", "/r1/s2"]
R1, S1, S2 = map(NodePath.parse, PATHS)
ONE = ("/r1/s1", "one")

UP = ObjectKey("edge.kubestellar.io", "edgeplacements", "", "up")


def clause(**said):
    default = {"apiGroup": "", "resources": ["configmaps"], "namespaces": ["scans"]}
    return {**default, "names": ["*"], **said}


@pytest.fixture
async def tree(tmp_path):
    async with memory_tree(tmp_path, PATHS) as grown:
        await grown.apply(placement("up", "shop", upsync=[clause()]), config_map("a", "shop"))
        await grown.until("up", lambda c: c.exact and c.summary.states == {"synced": 2})
        for cluster in grown.clusters.values():
            await cluster.apply(namespace_object("scans"), "scanner")
        yield grown


async def arise(tree, path, name, **data):
    await tree.clusters[path].apply(config_map(name, "scans", **data), "scanner")


async def end(tree, path, name):
    await tree.clusters[path].delete(ObjectKey("", "configmaps", "scans", name))


async def copies(tree, **said):
    """All copies that a relay tells of, by edge and name."""
    found, after = {}, ""
    while True:
        asked = {"resource": "configmaps", "after": after, **said}
        answer = await tree.asks.ask(R1, "upsynced", asked)
        for row in answer["copies"]:
            found[row["path"], row["object"]["metadata"]["name"]] = row
        after = answer["next"]
        if not after:
            return found


async def come(tree, *expected, holds=lambda _found: True):
    """Wait until just these copies are there, and meet the condition."""
    found = {}

    async def are_there():
        found.clear()
        found.update(await copies(tree))
        return set(found) == set(expected) and holds(found)

    await eventually(are_there, lambda: f"there are {found}")
    return found


async def restart(tree, path):
    await tree.stop(path)
    await tree.start(path, tree.group, attached=path in tree.clusters)
    await tree.drivers[path].until(lambda node: node.ready)


async def test_what_arises_at_an_edge_is_read_at_its_parent(tree):
    await arise(tree, S1, "one", failed="3")
    await arise(tree, S2, "two")

    found = await come(tree, ONE, ("/r1/s2", "two"))

    assert found[ONE]["object"]["data"] == {"failed": "3"}
    assert "managedFields" not in found[ONE]["object"]["metadata"]
    assert found[ONE]["object"]["metadata"]["uid"]
    assert set(await copies(tree, child="s2")) == {("/r1/s2", "two")}
    assert await copies(tree, name="two", namespace="scans") == {
        ("/r1/s2", "two"): found["/r1/s2", "two"]
    }
    assert await copies(tree, namespace="shop") == {}
    answer = await tree.asks.ask(NodePath(), "upsynced", {"resource": "configmaps"})
    assert answer == {"copies": [], "relays": ["r1"], "next": ""}


async def test_a_copy_changes_and_goes_as_at_the_edge(tree):
    await arise(tree, S1, "one", failed="3")
    await arise(tree, S1, "two")
    await come(tree, ONE, ("/r1/s1", "two"))

    await arise(tree, S1, "one", failed="4")
    await end(tree, S1, "two")

    await come(tree, ONE, holds=lambda found: found[ONE]["object"]["data"] == {"failed": "4"})


async def test_an_edge_that_is_away_is_read_as_of_when_it_was_heard(tree):
    await arise(tree, S1, "one")
    await come(tree, ONE)
    await tree.drivers[S1].until(lambda node: node._destination.upsync.observed.stated)
    await tree.stop(S1)
    gone_ms = tree.clock.now().wall_ms
    await end(tree, S1, "one")
    tree.clock.ahead += 1000

    found = await copies(tree)

    assert set(found) == {ONE}
    assert found[ONE]["asOfMs"] <= gone_ms


async def test_what_ended_while_the_edge_was_away_does_not_come_back(tree):
    await arise(tree, S1, "one")
    await arise(tree, S1, "two")
    await come(tree, ONE, ("/r1/s1", "two"))
    await tree.stop(S1)
    await end(tree, S1, "two")
    await tree.start(S1, tree.group, attached=True)

    await come(tree, ONE)

    tree.network.cut(S1)
    await end(tree, S1, "one")
    tree.network.heal(S1)
    await come(tree)


async def test_a_wiped_parent_is_filled_again(tree):
    await arise(tree, S1, "one")
    await come(tree, ONE)
    await tree.stop(R1)
    tree.network.streams(R1).copies.clear()

    await tree.start(R1, tree.group, attached=False)

    await come(tree, ONE)


async def test_a_wiped_edge_says_what_its_space_holds(tree):
    await arise(tree, S1, "one")
    await come(tree, ONE)
    await tree.stop(S1)
    kept = tree.network.streams(S1)
    kept.own.clear()
    kept.blobs.clear()
    kept.done.clear()
    await end(tree, S1, "one")
    await arise(tree, S1, "new")

    await tree.start(S1, tree.group, attached=True)

    await come(tree, ("/r1/s1", "new"))


async def test_a_clause_that_selects_no_more_takes_the_copies_away(tree):
    await arise(tree, S1, "one")
    await arise(tree, S1, "kept")
    await come(tree, ONE, ("/r1/s1", "kept"))

    await tree.apply(placement("up", "shop", upsync=[clause(names=["kept"])]))
    await come(tree, ("/r1/s1", "kept"))

    await tree.stop(S1)
    await tree.apply(placement("up", "shop"))
    await tree.start(S1, tree.group, attached=True)
    await come(tree)


async def test_an_object_that_is_too_large_is_named_and_holds_up_no_other(tree):
    await arise(tree, S1, "one", noise="x")
    await come(tree, ONE)
    await arise(tree, S1, "one", noise="x" * OBJECT_MAX_BYTES)
    await arise(tree, S1, "two")

    count = await tree.until("up", lambda c: c.summary.states == {"synced": 1, "failing": 1})

    (sample,) = count.summary.exceptions
    assert (sample.object, sample.path) == ("configmaps/scans/one", "/r1/s1")
    assert re.match(r"TooLarge: \d+ bytes, at most 1048576 of an object come up", sample.reason)
    await come(tree, ("/r1/s1", "two"))
    await arise(tree, S1, "one", noise="")
    await tree.until("up", lambda c: c.exact and c.summary.states == {"synced": 2})
    await come(tree, ONE, ("/r1/s1", "two"))


async def test_secrets_come_up_only_if_they_are_named_and_never_in_clear(tree):
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "door", "namespace": "scans"},
        "stringData": {"code": "1234-secret"},
    }
    await tree.clusters[S1].apply(secret, "scanner")
    await tree.apply(placement("up", "shop", upsync=[clause(resources=["*"])]))
    await arise(tree, S1, "one")
    await come(tree, ONE)
    count = await tree.until("up", lambda c: c.exact and c.summary.exceptions)
    assert count.summary.states == {"synced": 2}
    assert count.summary.exceptions[0].reason.startswith("Secrets stay: ")
    assert await copies(tree, resource="secrets") == {}

    await tree.apply(placement("up", "shop", upsync=[clause(resources=["*", "secrets"])]))

    async def came():
        return await copies(tree, resource="secrets")

    # Whoever may create a placement would read them: who runs the space allows it first.
    async def refused():
        found = await tree.workloads.get(UP)
        return "Secrets do not come up here" in str(found["status"]["conditions"])

    await eventually(refused)
    assert await came() == {}
    system = namespace_object("leafcast-system")
    system["metadata"]["annotations"] = {"leafcast.io/may-come-up": "secrets"}
    await tree.apply(system)
    found = await eventually(came)
    assert set(found) == {("/r1/s1", "door")}
    assert "1234-secret" not in str(found)
    assert "MTIzNC1zZWNyZXQ" not in str(found)


async def test_what_is_asked_wrong_is_said(tree):
    for said, reason in (
        ({"resource": ""}, "BadArguments"),
        ({"resource": "configmaps", "after": "s1/x"}, "BadArguments"),
        ({"resource": "configmaps", "child": "s9"}, "NoSuchNode"),
    ):
        with pytest.raises(AskFailed) as failed:
            await tree.asks.ask(R1, "upsynced", said)
        assert failed.value.fault.reason == reason


async def test_a_placement_that_only_brings_up_is_a_placement(tree):
    only = placement("only", "nowhere", upsync=[clause(namespaces=["other"])])
    del only["spec"]["downsync"]
    await tree.apply(only)
    await tree.until("only", lambda c: c.exact and c.summary.states == {"synced": 2})
    await tree.clusters[S1].apply(namespace_object("other"), "scanner")
    await tree.clusters[S1].apply(config_map("one", "other"), "scanner")

    await come(tree, ONE)


async def test_a_kind_that_an_edge_lacks_is_named_and_comes_up_once_it_is_there(tree):
    widgets = {"apiGroup": "test.io", "resources": ["widgets"], "namespaces": ["*"], "names": ["*"]}
    await tree.apply(placement("up", "shop", upsync=[clause(), widgets]))
    count = await tree.until("up", lambda c: c.exact and c.summary.exceptions)
    assert count.summary.states == {"synced": 2}
    assert {it.object for it in count.summary.exceptions} == {"widgets.test.io"}
    assert count.summary.exceptions[0].reason.startswith("NotServed: ")
    await arise(tree, S1, "one")
    await come(tree, ONE)

    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.test.io"},
        "spec": {
            "group": "test.io",
            "names": {"plural": "widgets", "kind": "Widget"},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                }
            ],
        },
    }
    widget = {
        "apiVersion": "test.io/v1",
        "kind": "Widget",
        "metadata": {"name": "w", "namespace": "scans"},
    }
    await tree.clusters[S1].apply(definition, "scanner")
    await tree.clusters[S1].apply(widget, "scanner")

    async def came():
        return set(await copies(tree, group="test.io", resource="widgets")) == {("/r1/s1", "w")}

    await eventually(came)


async def test_an_edge_without_a_clause_is_not_followed_for_it(tmp_path):
    async with memory_tree(tmp_path, ["/r1", "/r1/s1"]) as grown:
        followed = []
        cluster = grown.clusters[S1]
        follow = cluster.follow

        async def noted(interests, tell):
            followed.append(interests)
            await follow(interests, tell)

        cluster.follow = noted
        await grown.apply(placement("down", "shop"), config_map("a", "shop"))
        await grown.until("down", lambda c: c.exact and c.summary.states == {"synced": 1})
        assert len(followed) <= 1
        assert grown.network.streams(R1).copies == {}


def collector(name, **spec):
    source = {"upsync": clause()}
    return {
        "apiVersion": "control.kubestellar.io/v1alpha1",
        "kind": "StatusCollector",
        "metadata": {"name": name},
        "spec": {"source": source, **spec},
    }


async def results_are(tree, expected):
    """Wait until the CombinedStatus of what comes up says this, by collector."""
    found = {}

    async def are_there():
        found.clear()
        for obj in (await tree.workloads.list()).objects:
            if obj["kind"] == "CombinedStatus":
                found.update({it["name"]: _rows(it) for it in obj["results"]})
        return found == expected

    await eventually(are_there, lambda: f"it says {found}")


def _rows(result):
    rows = [
        [next(v for k, v in c.items() if k != "type") for c in r["columns"]] for r in result["rows"]
    ]
    return rows, [error["error"] for error in result.get("rowErrors", ())]


async def test_collectors_reduce_what_comes_up(tree):
    await arise(tree, S1, "one", failed="3")
    await arise(tree, S1, "two", failed="4")
    await arise(tree, S2, "one", failed="5")
    asked = placement("up", "shop", upsync=[clause(statusCollectors=["failed", "each"])])
    sums = [{"name": "all", "type": "SUM", "subject": "returned.data.failed"}]
    each = [
        {"name": "edge", "def": "inventory.name"},
        {"name": "object", "def": "returned.metadata.name"},
    ]
    await tree.apply(
        asked,
        collector("failed", combinedFields=sums),
        collector("each", filter='returned.data.failed != "4"', select=each),
    )

    await results_are(
        tree, {"failed": ([["12"]], []), "each": ([["r1-s1", "one"], ["r1-s2", "one"]], [])}
    )

    await arise(tree, S1, "two", failed="1")
    await end(tree, S2, "one")
    await results_are(
        tree, {"failed": ([["4"]], []), "each": ([["r1-s1", "one"], ["r1-s1", "two"]], [])}
    )

    await tree.apply(collector("each", filter="has(returned.spec)", select=each))
    await results_are(tree, {"failed": ([["4"]], []), "each": ([], [])})

    await restart(tree, S1)
    await arise(tree, S1, "three", failed="7")
    await results_are(tree, {"failed": ([["11"]], []), "each": ([], [])})
