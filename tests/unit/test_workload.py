"""What the demo delivers: what it reads and completes, the placement it makes, what it refuses."""

import pytest

from leafcast.demo.workload import load_files, load_shop, prepare
from leafcast.manifest_sources import BadManifests
from schemas.api.parsing import parse_kind
from schemas.api.placement import EdgePlacement
from schemas.objects.manifest_files import load_manifests

CONFIG_MAP = "{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}}\n"
MIXED = """\
{apiVersion: v1, kind: Namespace, metadata: {name: lamps}}
---
{apiVersion: v1, kind: Service, metadata: {name: lamp, namespace: lamps}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: lamp}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: lamp, namespace: lamps}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: lighter}}
"""
PLACEMENT = """\
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {name: mine}
spec:
  locationSelectors: [{matchLabels: {region: region-1}}]
  downsync: [{apiGroup: ""}]
"""


def prepared(text: str):
    return prepare(load_manifests(text, "test"), "test")


def no_stdin() -> str:
    raise AssertionError("standard input was not asked for")


def test_the_made_placement_names_exactly_what_is_found():
    made = prepared(MIXED).objects[-1]
    assert made["metadata"] == {"name": "demo"}
    assert made["spec"] == {
        "locationSelectors": [{}],
        "downsync": [
            {
                "apiGroup": "",
                "resources": ["configmaps"],
                "namespaces": ["default"],
                "objectNames": ["lamp"],
            },
            {"apiGroup": "", "resources": ["namespaces"], "objectNames": ["lamps"]},
            {
                "apiGroup": "",
                "resources": ["services"],
                "namespaces": ["lamps"],
                "objectNames": ["lamp"],
            },
            {
                "apiGroup": "apps",
                "resources": ["deployments"],
                "namespaces": ["lamps"],
                "objectNames": ["lamp"],
            },
            {
                "apiGroup": "rbac.authorization.k8s.io",
                "resources": ["clusterroles"],
                "objectNames": ["lighter"],
            },
        ],
    }
    assert isinstance(parse_kind(made), EdgePlacement)


def test_no_namespace_is_selected_that_was_not_given():
    made = prepared(CONFIG_MAP % "a").objects[-1]
    resources = [clause["resources"] for clause in made["spec"]["downsync"]]
    assert resources == [["configmaps"]]


def test_custom_kinds_go_by_their_definition():
    text = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: oxen.farm.example}
spec: {group: farm.example, scope: Namespaced, names: {kind: Ox, plural: oxen}}
---
{apiVersion: farm.example/v1, kind: Ox, metadata: {name: bill}}
"""
    workload = prepared(text)
    assert workload.objects[1]["metadata"]["namespace"] == "default"
    clauses = {clause["apiGroup"]: clause for clause in workload.objects[-1]["spec"]["downsync"]}
    assert clauses["farm.example"]["resources"] == ["oxen"]
    assert clauses["farm.example"]["namespaces"] == ["default"]


def test_namespaces_are_completed_as_kubectl_does():
    found = {obj["kind"]: obj["metadata"].get("namespace") for obj in prepared(MIXED).objects}
    assert found["ConfigMap"] == "default"
    assert found["Deployment"] == "lamps"
    assert found["Namespace"] is None
    assert found["ClusterRole"] is None


def test_a_placement_of_the_users_is_used_as_it_is():
    workload = prepared(f"{PLACEMENT}---\n{CONFIG_MAP % 'a'}")
    assert workload.placements == ("mine",)
    assert workload.everywhere == frozenset()
    assert [obj["kind"] for obj in workload.objects] == ["ConfigMap", "EdgePlacement"]
    assert workload.objects[-1]["spec"]["downsync"] == [{"apiGroup": ""}]


def test_the_shop_brings_its_own_placement():
    workload = load_shop()
    assert workload.placements == ("shop",)
    assert workload.everywhere == {"shop"}
    assert workload.delivered == len(workload.objects) - 1


def test_objects_that_are_never_sent_are_told_and_not_selected():
    node = "{apiVersion: v1, kind: Node, metadata: {name: one}}"
    workload = prepared(f"{node}\n---\n{CONFIG_MAP % 'a'}")
    assert [str(key) for key in workload.kept] == ["nodes/one"]
    assert workload.delivered == 1
    resources = [clause["resources"] for clause in workload.objects[-1]["spec"]["downsync"]]
    assert resources == [["configmaps"]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PLACEMENT, "nothing that can be sent"),
        ("{apiVersion: v1, kind: Node, metadata: {name: one}}", "nothing that can be sent"),
        (PLACEMENT.replace("downsync", "downSync"), "test:1: .*spec.downSync"),
        (
            "{apiVersion: edge.kubestellar.io/v2alpha1, kind: SyncTarget, metadata: {name: x}}",
            "test:1: .*inventory",
        ),
    ],
)
def test_what_cannot_be_delivered_is_refused_by_name(text, said):
    with pytest.raises(BadManifests, match=said):
        prepared(text)


def test_folders_are_read_whole_and_hidden_and_other_files_are_not(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    (tmp_path / "one.yaml").write_text(CONFIG_MAP % "one")
    (tmp_path / "a" / "two.yml").write_text(CONFIG_MAP % "two")
    (tmp_path / "a" / "b" / "three.json").write_text(
        '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "three"}}'
    )
    (tmp_path / "notes.txt").write_text("nothing")
    (tmp_path / ".git" / "x.yaml").write_text("[")
    workload = load_files([str(tmp_path)], no_stdin)
    names = {obj["metadata"]["name"] for obj in workload.objects}
    assert names == {"one", "two", "three", "demo"}


def test_files_and_standard_input_are_read_together(tmp_path):
    file = tmp_path / "one.manifest"
    file.write_text(CONFIG_MAP % "one")
    workload = load_files([str(file), "-", "-"], lambda: CONFIG_MAP % "two")
    assert [obj["metadata"]["name"] for obj in workload.objects] == ["one", "two", "demo"]


def test_every_fault_of_every_file_is_told_with_its_place(tmp_path):
    (tmp_path / "a.yaml").write_text("kind: [\n")
    (tmp_path / "b.yaml").write_text(f"{CONFIG_MAP % 'a'}---\n{CONFIG_MAP % 'Not_Good'}")
    with pytest.raises(BadManifests) as refused:
        load_files([str(tmp_path), str(tmp_path / "absent.yaml")], no_stdin)
    first, second, third = refused.value.faults
    assert first.startswith(f"{tmp_path}/a.yaml:2:")
    assert second.startswith(f"{tmp_path}/b.yaml:3:")
    assert third.startswith(f"{tmp_path}/absent.yaml: No such file")


def test_a_folder_without_manifests_is_told(tmp_path):
    with pytest.raises(BadManifests, match="no objects in"):
        load_files([str(tmp_path)], no_stdin)
    (tmp_path / "picture.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadManifests, match="not UTF-8"):
        load_files([str(tmp_path)], no_stdin)
