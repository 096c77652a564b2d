"""What `leafcast plan` says of a tree on real servers, beside what `apply` then does to it."""

import asyncio
import json
import os

import pytest

from leafcast.cli.commands.plan import NOTES_MAX
from leafcast.node.credentials.account_seeds import account_seeds
from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.spaces.connection import space_connection
from relay.adapters.spaces.embedded_space import EmbeddedSpace
from schemas.objects.objects import ObjectKey
from schemas.values.identity import NodePath
from tests.awaiting import until
from tests.e2e.program import Program, did
from tests.e2e.test_approvals import NAMES, applied, delete_unseen
from tests.memory_tree import config_map
from tests.namespaces import namespace_object

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(240)]

ONE, TWO = "/region-1/site-1", "/region-1/site-2"
HELD_UP = "frozen with shop/configmaps/greeting"
EXPANDED = {"control.kubestellar.io/expand-templates": "true"}


@pytest.fixture
def written(tmp_path):
    def write(*objects):
        file = tmp_path / "objects.json"
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        return str(file)

    return write


def edge_placement(name, *clauses, selectors=({},)):
    kind = {"apiVersion": "edge.kubestellar.io/v2alpha1", "kind": "EdgePlacement"}
    spec = {"locationSelectors": list(selectors), "downsync": list(clauses)}
    return {**kind, "metadata": {"name": name}, "spec": spec}


def greeting(namespace, text, **annotations):
    obj = config_map("greeting", namespace, text=text)
    return {**obj, "metadata": {**obj["metadata"], "annotations": {**EXPANDED, **annotations}}}


def nowhere(name, path):
    """A SyncTarget where no node is, and its Location, which placements select."""
    kind = {"apiVersion": "edge.kubestellar.io/v2alpha1"}
    resource = {"group": "edge.kubestellar.io", "version": "v2alpha1", "resource": "synctargets"}
    spec = {"resource": resource, "instanceSelector": {"matchLabels": {"id": name}}}
    metadata = {"name": name, "labels": {"id": name}}
    hangs = {**metadata, "annotations": {"leafcast.io/path": path}}
    return [
        {**kind, "kind": "SyncTarget", "metadata": hangs, "spec": {}},
        {**kind, "kind": "Location", "metadata": metadata, "spec": spec},
    ]


def copies(tree, namespace):
    """By path and name what the edges hold of a namespace."""
    return {
        (path, item["metadata"]["name"]): item["data"]
        for path in (ONE, TWO)
        for item in tree.json("get", "cm", "-n", namespace, "--at", path)["items"]
    }


def became(before, after):
    keys = before.keys() | after.keys()
    word = {(True, False): "delete", (False, True): "create", (True, True): "update"}
    return {
        key: word[key in before, key in after] for key in keys if before.get(key) != after.get(key)
    }


def planned(tree, *words, code=1):
    return json.loads(did(tree, "plan", *words, "-o", "json", "--all", code=code).stdout)


def said(plan):
    """By path and name what is to become of ConfigMaps."""
    return {
        (row["destination"], row["key"][3]): row["action"]
        for row in plan["rows"]
        if row["key"][1] == "configmaps" and row["action"] in ("create", "update", "delete")
    }


def goes_as_planned(tree, plan, namespace, verb, file):
    """Do it, and wait until it has become what was said; give back what there is."""
    before = copies(tree, namespace)
    did(tree, verb, "-f", file)
    until(lambda: became(before, copies(tree, namespace)) == said(plan), lambda: said(plan))
    return copies(tree, namespace)


def why(plan, path, name):
    (row,) = (r for r in plan["rows"] if (r["destination"], r["key"][3]) == (path, name))
    return row


def test_what_was_planned_is_what_is_done(tree, written):
    plain = config_map("plain", "shop", at="1")
    here = {"matchLabels": {"region": "region-1"}}
    place = edge_placement("shop", {"apiGroup": "", "namespaces": ["shop"]}, selectors=[here])
    first = [namespace_object("shop"), place, plain, greeting("shop", "hello")]
    plan = planned(tree, "-f", written(*first))
    assert (plan["placements"], plan["destinations"]) == (1, 2)
    # With them goes the Namespace that they lie in.
    assert plan["counts"]["create"] == 6
    goes_as_planned(tree, plan, "shop", "apply", written(*first))
    assert did(tree, "plan", "-f", written(*first)).stdout.startswith(
        "0 placements, 0 destinations: nothing changes\n"
    )

    properties = config_map("region-1-site-1", "customization-properties", till="7")
    tilled = [namespace_object("customization-properties"), properties]
    did(tree, "apply", "-f", written(*tilled))
    one = [config_map("plain", "shop", at="2"), greeting("shop", "till {{ .till }}")]
    shown = did(tree, "plan", "-f", written(*one), code=1).stdout.splitlines()
    assert shown[:2] == [
        "1 placement, 2 destinations: 2 updates, 2 frozen",
        "at the centre: 2 configured",
    ]
    assert [" ".join(line.split()) for line in shown[3:]] == [
        f'{TWO} shop/configmaps/greeting frozen no property "till" for data.text',
        f"{TWO} shop/configmaps/plain frozen {HELD_UP}",
        f"{ONE} shop/configmaps/greeting update data.text",
        f"{ONE} shop/configmaps/plain update data.at",
    ]
    plan = planned(tree, "-f", written(one[1]))
    there = goes_as_planned(tree, plan, "shop", "apply", written(one[1]))
    assert there[ONE, "greeting"] == {"text": "till 7"}
    assert there[TWO, "greeting"] == {"text": "hello"}
    assert why(planned(tree, "-f", written(one[0])), TWO, "plain")["action"] == "frozen"

    did(tree, "apply", "-f", written(greeting("shop", "hello")))
    did(tree, "wait", "shop", "--for", "synced")
    location = tree.json("get", "location", "region-1-site-2")
    location["metadata"] = {"name": "region-1-site-2", "labels": {"region": "elsewhere"}}
    plan = planned(tree, "-f", written(location))
    assert plan["counts"]["delete"] == 3
    reason = "label region=elsewhere of Location region-1-site-2 no longer matches"
    assert why(plan, TWO, "plain")["why"] == reason
    goes_as_planned(tree, plan, "shop", "apply", written(location))

    plan = planned(tree, "--delete", "-f", written(plain))
    assert why(plan, ONE, "plain")["why"] == "it is deleted at the centre"


def test_what_cannot_be_planned_is_an_error_of_its_own(tree, written):
    wrong = edge_placement("wrong", {"apigroup": ""})
    refused = did(tree, "plan", "-f", written(wrong), code=2)
    assert "spec.downsync[0].apigroup" in refused.stderr
    assert refused.stdout == ""
    assert did(tree, "plan", "-f", "/nowhere", code=2).stdout == ""


def test_a_change_of_several_messages_that_goes_nowhere_is_one_at_the_centre(tree, written):
    large = config_map("large", "default", noise=os.urandom(400_000).hex())
    shown = did(tree, "plan", "-f", written(large), code=1).stdout
    told = "0 placements, 0 destinations: nothing changes at destinations"
    assert shown == f"{told}\nat the centre: 1 created\n"


def test_objects_of_one_name_in_several_namespaces_are_told_apart(tree, written):
    spaces = [namespace_object(name) for name in ("twin-a", "twin-b")]
    first = [config_map("twin", name, at="1") for name in ("twin-a", "twin-b")]
    did(tree, "apply", "-f", written(*spaces, *first))
    files = written(config_map("twin", "twin-a", at="2"), first[1])
    plan = planned(tree, "-f", files)
    assert plan["centre"] == {
        "twin-a/configmaps/twin": "configured",
        "twin-b/configmaps/twin": "unchanged",
    }
    assert "at the centre: 1 configured" in did(tree, "plan", "-f", files, code=1).stdout
    gone = did(tree, "plan", "--delete", "-f", written(*spaces, *first), code=1).stdout
    assert "at the centre: 4 deleted" in gone
    did(tree, "delete", "-f", written(*spaces))


async def by_hand(tree, path, *objects):
    """Write to an edge's own cluster, as someone with access to it does."""
    folder = tree.place.node(NodePath.parse(path))
    url = f"nats://127.0.0.1:{json.loads((folder / 'ports.json').read_text())['client']}"
    clock, dice = SystemClock(), SystemDice()
    async with space_connection(url, account_seeds(folder, dice).space, "test") as client:
        space = EmbeddedSpace(client, "wec", clock, dice, domain=NodePath.parse(path).domain)
        for obj in objects:
            await space.apply(obj, "somebody")


def test_live_tells_what_is_at_the_edges(tree, written):
    mine = config_map("greeting", "live", text="by hand")
    asyncio.run(by_hand(tree, TWO, namespace_object("live"), mine))
    place = edge_placement("live", {"apiGroup": "", "namespaces": ["live"]})
    refusing = greeting("live", "one", **{"leafcast.io/existing": "refuse"})
    objects = [namespace_object("live"), place, refusing]
    plan = planned(tree, "--live", "-f", written(*objects))
    live = {row["destination"]: row["live"] for row in plan["rows"] if row["key"][3] == "greeting"}
    assert live[ONE] == "not there"
    assert live[TWO].startswith("there already, other: data.text")

    did(tree, "apply", "-f", written(*objects))
    until(lambda: (ONE, "greeting") in copies(tree, "live"), lambda: copies(tree, "live"))
    plan = planned(tree, "--live", "-f", written(*objects))
    live = {row["destination"]: row["live"] for row in plan["rows"] if row["key"][3] == "greeting"}
    assert live[ONE] == "as meant"
    assert live[TWO].startswith("drift: data.text")
    assert plan["noAnswer"] == {}

    nobody = nowhere("nobody", "/region-1/nobody")
    assert said(planned(tree, "-f", written(*nobody))) == {
        ("/region-1/nobody", name): "create" for name in ("greeting",)
    }
    did(tree, "apply", "-f", written(*nobody))
    # Its parent counts it, and tells of its children only.
    said_by_doctor = "run `leafcast node add /region-1/nobody`"
    until(lambda: said_by_doctor in " ".join(tree.run("doctor").stdout.split()))
    plan = planned(tree, "--live", "-f", written(greeting("live", "two")))
    assert list(plan["noAnswer"]) == ["/region-1/nobody"]
    assert why(plan, "/region-1/nobody", "greeting")["live"] == "no answer"
    clause = {"apiGroup": "", "namespaces": ["lone"]}
    only = edge_placement("lone", clause, selectors=({"matchLabels": {"id": "nobody"}},))
    lone = [namespace_object("lone"), config_map("here", "lone", a="1"), only]
    did(tree, "apply", "-f", written(*lone))
    assert "nothing changes" in did(tree, "plan", "-f", written(*lone)).stdout
    silent = did(tree, "plan", "--live", "-f", written(*lone), code=1)
    assert "No answer: /region-1/nobody" in silent.stderr
    did(tree, "delete", "-f", written(*lone, *nobody))


def test_notes_do_not_hide_how_far_a_change_reaches(tree, written):
    count = NOTES_MAX + 3
    far = [obj for at in range(count) for obj in nowhere(f"far-{at}", f"/region-1/far-{at}")]
    for all_of_them in ((), ("--all",)):
        said = tree.run("plan", "-f", written(*far), *all_of_them).stderr.splitlines()
        notes = sum(line.startswith("Note: synctarget/far-") for line in said)
        assert notes == (count if all_of_them else NOTES_MAX)
        assert ("3 more notes: --all" in said) is not bool(all_of_them)


def test_a_removal_that_is_held_is_told_as_such(tmp_path, written):
    program = Program(tmp_path / "data")
    try:
        applied(program, tmp_path, NAMES)
        did(program, "down")
        keys = [ObjectKey("", "configmaps", "shop", name) for name in NAMES[:12]]
        asyncio.run(delete_unseen(program, keys))
        did(program, "up")
        until(lambda: "12 of 15 objects" in program.run("accept").stdout, "nothing is held")
        change = written(config_map(NAMES[14], "shop", at="2"))
        plan = planned(program, "-f", change)
        assert (plan["counts"]["held"], plan["counts"]["update"]) == (12, 1)
        assert plan["rows"][0]["action"] == "held"
        assert "12 of 15 objects would go at once" in plan["rows"][0]["why"]
        did(program, "apply", "-f", change)
        here = program.json("get", "cm", "-n", "shop", "--at", ONE)["items"]
        assert len(here) == 15
        shown = did(program, "plan", "--delete", "-f", change, code=1)
        assert "10 more: --all" not in shown.stdout
        assert "2 more: --all" in shown.stdout
        assert "RemovalHeld: 12 of 15" in shown.stderr
    finally:
        program.run("down")
