"""What stays at an edge that is wanted no more, and what was put right there, as people see it."""

import asyncio
import json

import pytest

from schemas.objects.annotations import ON_REMOVAL
from tests.awaiting import until
from tests.e2e.program import did
from tests.e2e.test_plan import ONE, TWO, by_hand, edge_placement
from tests.memory_tree import config_map
from tests.namespaces import namespace_object

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(240)]


@pytest.fixture
def written(tmp_path):
    def write(*objects):
        file = tmp_path / "objects.json"
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        return str(file)

    return write


def claim(namespace):
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    metadata = {"name": "data", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def saying(obj, word):
    return {**obj, "metadata": {**obj["metadata"], "annotations": {ON_REMOVAL: word}}}


def at(path):
    return {"matchLabels": {"id": path.strip("/").replace("/", "-")}}


def kept(tree, kind, path):
    answer = tree.json("get", kind, "-n", "data", "--kept", "--at", path)
    return {item["metadata"]["name"]: item["metadata"]["uid"] for item in answer["items"]}


def moved(*paths):
    where = [at(path) for path in paths]
    return edge_placement("data", {"apiGroup": "", "namespaces": ["data"]}, selectors=where)


def test_a_claim_stays_where_it_was_and_is_taken_again_when_it_comes_back(tree, written):
    word = saying(config_map("word", "data", a="1"), "keep")
    loose = saying(config_map("loose", "data", a="1"), "orphan")
    gone = config_map("gone", "data", a="1")
    objects = [namespace_object("data"), claim("data"), word, loose, gone]
    did(tree, "apply", "-f", written(*objects, moved(ONE)))
    did(tree, "wait", "data", "--for", "synced")
    [before] = tree.json("get", "pvc", "-n", "data", "--at", ONE)["items"]
    plan = json.loads(did(tree, "plan", "-f", written(moved(TWO)), "-o", "json", code=1).stdout)
    said = {row["key"][3]: row["action"] for row in plan["rows"] if row["destination"] == ONE}
    wanted = {"data": "keep", "word": "keep", "loose": "orphan", "gone": "delete"}
    assert {name: said[name] for name in wanted} == wanted

    did(tree, "apply", "-f", written(moved(TWO)))
    until(lambda: kept(tree, "pvc", ONE) == {"data": before["metadata"]["uid"]})
    until(lambda: kept(tree, "cm", ONE).keys() == {"word"})

    def left():
        found = tree.json("get", "cm", "-n", "data", "--at", ONE)["items"]
        return {item["metadata"]["name"] for item in found}

    until(lambda: left() == {"word", "loose"}, left)
    for said in ("2 copies that nothing wants", f"data/persistentvolumeclaims/data at {ONE}"):
        until(lambda said=said: said in did(tree, "status", "data").stdout)
    until(lambda: tree.json("get", "epl", "data")["status"].get("kept", {}).get("count") == 2)

    did(tree, "apply", "-f", written(moved(ONE)))
    did(tree, "wait", "data", "--for", "synced")
    until(lambda: kept(tree, "pvc", ONE) == {})
    [after] = tree.json("get", "pvc", "-n", "data", "--at", ONE)["items"]
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    until(lambda: kept(tree, "pvc", TWO).keys() == {"data"})

    freed = did(tree, "delete", "ns", "data")
    assert "of which 3 are kept there" in freed.stderr
    assert "the Namespace data stays around them" in freed.stderr
    until(lambda: kept(tree, "pvc", ONE) == {"data": before["metadata"]["uid"]})
    did(tree, "delete", "epl", "data")
    until(lambda: kept(tree, "pvc", ONE) == {"data": before["metadata"]["uid"]})
    # The Namespace stays around it, and says why.
    until(lambda: "namespaces/data: left in place: kept" in did(tree, "events").stdout)
    assert tree.json("get", "ns", "data", "--at", ONE)


def test_drift_that_is_put_right_leaves_a_trace(tree, written):
    objects = [namespace_object("drift"), config_map("settings", "drift", a="1")]
    clause = {"apiGroup": "", "namespaces": ["drift"]}
    did(tree, "apply", "-f", written(*objects, edge_placement("drift", clause)))
    did(tree, "wait", "drift", "--for", "synced")
    assert "repaired" not in did(tree, "status", "drift").stdout
    asyncio.run(by_hand(tree, TWO, config_map("settings", "drift", a="by hand")))
    until(lambda: tree.json("get", "epl", "drift")["status"].get("repairs", {}).get("count") == 1)
    [last] = tree.json("get", "epl", "drift")["status"]["repairs"]["last"]
    assert (last["object"], last["path"], last["field"]) == (
        "drift/configmaps/settings",
        TWO,
        "data.a",
    )
    repaired = f"repaired:  1 time, last: {TWO} drift/configmaps/settings data.a by"
    until(lambda: repaired in did(tree, "status", "drift").stdout)
    told = "drift/configmaps/settings: data.a was changed there by someone"
    until(lambda: told in did(tree, "events", "--for", "drift").stdout)
