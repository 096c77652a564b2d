"""Each copy fits its place: expressions, Customizers and properties, through a whole tree."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from controllers.core.status.status import CUSTOMIZED
from schemas.objects.objects import ObjectKey
from schemas.values.identity import NodePath
from tests.memory_tree import MANAGER, config_map, memory_tree, placement

ONE, TWO = NodePath.parse("/r1/s1"), NodePath.parse("/r1/s2")
GREETING = ObjectKey("", "configmaps", "shop", "greeting")
PLAIN = ObjectKey("", "configmaps", "shop", "plain")
TEMPLATES = {"control.kubestellar.io/expand-templates": "true"}
PARAMETERS = {"edge.kubestellar.io/expand-parameters": "true"}
ALL_SYNCED = {"synced": 2}
CONTROL = {"apiVersion": "edge.kubestellar.io/v2alpha1"}


def annotated(obj: dict[str, Any], annotations: dict[str, str]) -> dict[str, Any]:
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


def greeting(text: str, annotations: dict[str, str] = TEMPLATES) -> dict[str, Any]:
    return annotated(config_map("greeting", "shop", text=text), annotations)


def customizer(*replacements: tuple[str, str], **metadata: Any) -> dict[str, Any]:
    said = [{"path": path, "value": value} for path, value in replacements]
    named = {"name": "per-site", "namespace": "shop", **metadata}
    return {**CONTROL, "kind": "Customizer", "metadata": named, "replacements": said}


async def label(tree: Any, path: NodePath, **labels: str) -> None:
    """Say labels of a SyncTarget, beside those that say where it belongs."""
    name = "-".join(path.names)
    metadata = {
        "name": name,
        "labels": {"id": name, "region": path.names[0], **labels},
        "annotations": {"leafcast.io/path": str(path)},
    }
    await tree.inventory.apply(
        {**CONTROL, "kind": "SyncTarget", "metadata": metadata, "spec": {}}, MANAGER
    )


async def held(tree: Any, path: NodePath, key: ObjectKey = GREETING) -> dict[str, Any]:
    found = await tree.spaces[path].get(key)
    return found or {}


async def says(tree: Any, path: NodePath, text: str, name: str = "text") -> dict[str, Any]:
    """Wait until the copy at an edge says this; the copy."""
    async with asyncio.timeout(60):
        while (found := await held(tree, path)).get("data", {}).get(name) != text:
            await tree.clock.sleep(0.01)
    return found


async def synced(tree: Any) -> None:
    await tree.until("shop", lambda c: c.exact and c.summary.states == ALL_SYNCED)


async def condition(tree: Any, type_: str, status: str, said: str = "") -> dict[str, Any]:
    """Wait until the placement's condition has this status, and says this."""
    key = ObjectKey("edge.kubestellar.io", "edgeplacements", "", "shop")
    async with asyncio.timeout(60):
        while True:
            obj = await tree.workloads.get(key)
            for item in (obj.get("status") or {}).get("conditions", ()):
                if (item["type"], item["status"]) == (type_, status) and said in item["message"]:
                    return dict(item)
            await tree.clock.sleep(0.01)


@pytest.fixture
async def tree(tmp_path):
    async with memory_tree(tmp_path, ["/r1", "/r1/s1", "/r1/s2"]) as grown:
        await label(grown, ONE, zone="north")
        await label(grown, TWO, zone="south")
        yield grown


async def test_each_copy_says_where_it_is(tree):
    text = "{{ .clusterName }} in {{.zone}} of {{ .region }}"
    await tree.apply(placement("shop", "shop"), greeting(text))
    await synced(tree)
    await says(tree, ONE, "r1-s1 in north of r1")
    await says(tree, TWO, "r1-s2 in south of r1")


async def test_parameters_are_expanded_and_what_is_unknown_stays(tree):
    text = "%(zone) %%(zone) 100%% %(no/such) 5 % %(open"
    await tree.apply(placement("shop", "shop"), greeting(text, PARAMETERS))
    await says(tree, ONE, "north %(zone) 100% %(no/such) 5 % %(open")


async def test_a_customizer_replaces_after_expressions_were_expanded(tree):
    named = {**PARAMETERS, "edge.kubestellar.io/customizer": "per-site"}
    by = customizer(
        ("$.data.size", '"large"'), ('$["data"]["%(zone)"]', '"%(clusterName)"'),
        annotations=PARAMETERS,
    )  # fmt: skip
    await tree.apply(by, placement("shop", "shop"), greeting("%(zone)", named))
    data = (await says(tree, ONE, "north"))["data"]
    assert data == {"text": "north", "size": "large", "north": "r1-s1"}
    await tree.apply({**by, "replacements": [{"path": "$.data.size", "value": '"small"'}]})
    data = (await says(tree, ONE, "small", "size"))["data"]
    assert data == {"text": "north", "size": "small"}


async def test_a_new_label_rewrites_just_what_uses_it(tree):
    other = annotated(config_map("plain", "shop", text="{{ .region }}"), TEMPLATES)
    await tree.apply(placement("shop", "shop"), greeting("{{ .zone }}"), other)
    await synced(tree)
    before = await held(tree, ONE, PLAIN)
    elsewhere = await held(tree, TWO)
    await label(tree, ONE, zone="west")
    await says(tree, ONE, "west")
    await synced(tree)
    assert await held(tree, ONE, PLAIN) == before
    assert await held(tree, TWO) == elsewhere


async def test_a_config_map_beats_annotations_and_labels(tree):
    await tree.apply(placement("shop", "shop"), greeting("{{ .zone }}"))
    await says(tree, ONE, "north")
    space = {"apiVersion": "v1", "kind": "Namespace"}
    await tree.inventory.apply({**space, "metadata": {"name": "customization-properties"}}, MANAGER)
    said = config_map("r1-s1", "customization-properties", zone="from the map")
    await tree.inventory.apply(said, MANAGER)
    await says(tree, ONE, "from the map")
    await says(tree, TWO, "south")
    await tree.inventory.delete(ObjectKey("", "configmaps", "customization-properties", "r1-s1"))
    await says(tree, ONE, "north")


async def test_who_lacks_a_property_keeps_all_as_it_was_and_the_others_go_on(tree):
    plain = config_map("plain", "shop", text="1")
    gone = config_map("gone", "shop")
    await tree.apply(placement("shop", "shop"), greeting("{{ .zone }}"), plain, gone)
    await synced(tree)
    await label(tree, TWO, zone="south", till="7")
    await tree.apply(greeting("till {{ .till }}"), config_map("plain", "shop", text="2"))
    await tree.workloads.delete(ObjectKey("", "configmaps", "shop", "gone"))
    await says(tree, TWO, "till 7")
    count = await tree.until(
        "shop", lambda c: c.exact and c.summary.states == {"synced": 1, "frozen": 1}
    )
    (sample,) = count.summary.exceptions
    assert sample.object == "configmaps/shop/greeting"
    assert sample.reason.startswith('Frozen: data.text: no property "till"; say it as')
    assert sample.path == str(ONE)
    assert (await held(tree, ONE))["data"] == {"text": "north"}
    assert (await held(tree, ONE, PLAIN))["data"] == {"text": "1"}
    assert await held(tree, ONE, ObjectKey("", "configmaps", "shop", "gone"))
    await label(tree, ONE, zone="north", till="3")
    await says(tree, ONE, "till 3")
    await synced(tree)
    assert (await held(tree, ONE, PLAIN))["data"] == {"text": "2"}
    assert not await held(tree, ONE, ObjectKey("", "configmaps", "shop", "gone"))


async def test_a_property_that_goes_removes_nothing(tree):
    await tree.apply(placement("shop", "shop"), greeting("{{ .zone }}"))
    await synced(tree)
    await label(tree, ONE)
    await tree.until("shop", lambda c: c.summary.states == {"synced": 1, "frozen": 1})
    assert (await held(tree, ONE))["data"] == {"text": "north"}
    await tree.stop(ONE)
    await tree.start(ONE, tree.group, attached=True)
    await tree.until("shop", lambda c: c.exact and c.summary.states == {"synced": 1, "frozen": 1})
    assert (await held(tree, ONE))["data"] == {"text": "north"}
    await tree.workloads.delete(ObjectKey("edge.kubestellar.io", "edgeplacements", "", "shop"))
    async with asyncio.timeout(60):
        while await held(tree, ONE):
            await tree.clock.sleep(0.01)


async def test_an_expression_that_is_wrong_stops_the_placement_everywhere(tree):
    await tree.apply(placement("shop", "shop"), greeting("{{ .zone }}"))
    await synced(tree)
    await tree.apply(greeting("{{ if .zone }}"), config_map("plain", "shop"))
    said = await condition(tree, CUSTOMIZED, "False")
    assert said["reason"] == "Frozen"
    assert "configmaps/shop/greeting: data.text: " in said["message"]
    assert (await condition(tree, "Synced", "False"))["reason"] == "Frozen"
    assert (await held(tree, ONE))["data"] == {"text": "north"}
    assert not await held(tree, ONE, PLAIN)
    await tree.apply(greeting("now {{ .zone }}"))
    await says(tree, ONE, "now north")
    await synced(tree)
    assert await held(tree, ONE, PLAIN)


async def test_a_customizer_that_is_not_there_is_said_and_its_object_goes_out_as_it_is(tree):
    named = {**PARAMETERS, "edge.kubestellar.io/customizer": "per-site"}
    await tree.apply(placement("shop", "shop"), greeting("%(zone)", named))
    await says(tree, ONE, "%(zone)")
    said = await condition(tree, CUSTOMIZED, "False")
    assert "Customizer shop/per-site is not there: 1 object goes out as it" in said["message"]
    await tree.apply(customizer(("$.data.size", '"large"')))
    await says(tree, ONE, "north")
    await tree.apply(customizer(("$", "1")))
    wrong = "customizers.edge.kubestellar.io/shop/per-site: replacements[0].path"
    await condition(tree, CUSTOMIZED, "False", wrong)
    assert (await held(tree, TWO))["data"] == {"text": "south", "size": "large"}


async def test_an_edge_in_step_writes_nothing_when_it_starts_again(tree):
    await tree.apply(placement("shop", "shop"), greeting("{{ .zone }}"))
    await synced(tree)
    before = await held(tree, ONE)
    await tree.stop(ONE)
    await tree.start(ONE, tree.group, attached=True)
    await tree.drivers[ONE].until(lambda node: node.ready)
    await synced(tree)
    assert await held(tree, ONE) == before


async def test_drift_is_repaired_to_what_the_copy_said(tree):
    await tree.apply(placement("shop", "shop"), greeting("{{ .zone }}"))
    await synced(tree)
    drifted = config_map("greeting", "shop", text="someone else's")
    await tree.spaces[ONE].apply(drifted, "someone", force=True)
    await says(tree, ONE, "north")


async def test_two_locations_that_disagree_are_said_where_it_matters(tree):
    for name, zone in (("east", "sunrise"), ("west", "sunset")):
        resource = {"group": "edge.kubestellar.io", "version": "v2alpha1"}
        spec = {
            "resource": {**resource, "resource": "synctargets"},
            "instanceSelector": {"matchLabels": {"id": "r1-s1"}},
        }
        metadata = {"name": name, "labels": {"sky": zone, "idle": zone}}
        await tree.inventory.apply(
            {**CONTROL, "kind": "Location", "metadata": metadata, "spec": spec}, MANAGER
        )
    locations = [{"matchLabels": {"id": "r1-s1"}}]
    await tree.apply(
        placement("shop", "shop", locationSelectors=locations), greeting("%(sky)", PARAMETERS)
    )
    await says(tree, ONE, "sunrise")
    count = await tree.until("shop", lambda c: bool(c.summary.exceptions))
    assert count.summary.states == {"synced": 1}
    (sample,) = count.summary.exceptions
    assert sample.reason == (
        'Clash: "sky" is "sunrise" by Location east and "sunset" by Location west; '
        "the first by name counts"
    )
