"""What `leafcast install` prints: for each role the least that works, and what is wide is said."""

import pytest
from click.testing import CliRunner

from leafcast.cli.commands.install import install
from leafcast.cli.install_manifests import NAMESPACE, ROLES, InstallOptions, manifests
from schemas.objects.objects import validate_object
from schemas.objects.yaml_documents import read_documents
from schemas.values.groups import PROPERTIES_NAMESPACE

OURS = (["control.kubestellar.io"], ["edge.kubestellar.io"], ["leafcast.io"])
READING = ["get", "list", "watch"]
WRITING = {"create", "delete", "deletecollection", "patch", "update", "*"}


LEASES = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}


def objects(**wish):
    return [one.object for one in manifests(InstallOptions(**wish))]


def rules(**wish):
    return [rule for obj in objects(**wish) for rule in obj.get("rules", ())]


def names(kind, **wish):
    return [obj["metadata"]["name"] for obj in objects(**wish) if obj["kind"] == kind]


@pytest.mark.parametrize("role", ROLES)
def test_every_object_is_valid_and_printed_as_it_is(role):
    result = CliRunner().invoke(install, ["--role", role])
    assert result.exit_code == 0, result.output
    printed = [document.root for document in read_documents(result.output, "install")]
    assert printed == objects(role=role)
    for obj in printed:
        validate_object(obj)


@pytest.mark.parametrize("role", ROLES)
def test_no_object_comes_before_what_it_lies_in(role):
    seen = set()
    for obj in objects(role=role):
        namespace = obj["metadata"].get("namespace")
        assert namespace is None or namespace in seen
        seen.add(obj["metadata"]["name"])


@pytest.mark.parametrize("role", ["workloads", "inventory", "all"])
def test_a_centre_writes_nothing_but_its_own_kinds_and_statuses_that_are_wanted_back(role):
    writing = [rule for rule in rules(role=role, statuses="none") if WRITING & set(rule["verbs"])]
    assert all(rule["apiGroups"] in [*OURS, LEASES["apiGroups"]] for rule in writing)
    for rule in rules(role=role):
        ours = [*OURS, LEASES["apiGroups"]]
        if WRITING & set(rule["verbs"]) and rule["apiGroups"] not in ours:
            assert rule["verbs"] == ["patch"]
            assert not {"*", "*/*", "secrets", "configmaps"} & set(rule["resources"])


@pytest.mark.parametrize("role", ["workloads", "inventory", "all"])
def test_a_centre_writes_its_own_leases_in_one_namespace(role):
    names = {"workloads": ["leafcast-workloads"], "inventory": ["leafcast-inventory"]}
    known, new = (rule for rule in rules(role=role) if rule["apiGroups"] == LEASES["apiGroups"])
    assert known["resourceNames"] == names.get(role, [*names["workloads"], *names["inventory"]])
    assert (known["verbs"], new["verbs"]) == (["get", "update"], ["create"])
    bound = [
        obj
        for obj in objects(role=role)
        if obj.get("roleRef", {}).get("name", "") == "leafcast-leases"
    ]
    assert [obj["metadata"].get("namespace") for obj in bound] == [NAMESPACE]


def test_an_inventory_space_lets_nobody_read_workloads():
    *_, reading, statuses, names_of_space, properties, viewing = rules(role="inventory")
    assert viewing["resources"] == ["locations", "synctargets"]
    assert viewing["verbs"] == ["get", "list", "watch"]
    ours = (reading, statuses)
    assert {*ours[0]["apiGroups"], *ours[1]["apiGroups"]} == {"edge.kubestellar.io"}
    assert names_of_space["resourceNames"] == ["kube-system"]
    assert properties == {"apiGroups": [""], "resources": ["configmaps"], "verbs": READING}
    bound = [obj for obj in objects(role="inventory") if obj["kind"].endswith("Binding")]
    where = {obj["roleRef"]["name"]: obj["metadata"].get("namespace") for obj in bound}
    assert where == {
        "leafcast-inventory": None,
        "leafcast-leases": NAMESPACE,
        "leafcast-properties": PROPERTIES_NAMESPACE,
    }
    assert names("CustomResourceDefinition", role="inventory") == [
        "locations.edge.kubestellar.io",
        "synctargets.edge.kubestellar.io",
    ]


def test_a_centre_may_read_only_the_kinds_that_are_named():
    read = rules(role="workloads", kinds=(("apps", "deployments"), ("", "configmaps")))
    listed = {(rule["apiGroups"][0], name) for rule in read for name in rule["resources"]}
    assert ("apps", "deployments") in listed
    assert ("", "secrets") not in listed
    assert ("*", "*") not in listed


def test_a_centre_that_reads_few_kinds_may_look_whether_objects_come_to_life_there():
    some = {"role": "workloads", "kinds": (("apps", "deployments"),)}
    said = [(rule["resources"], rule["verbs"]) for rule in rules(**some)]
    for resource, verb in (("nodes", "list"), ("leases", "get"), ("serviceaccounts", "list")):
        assert ([resource], [verb]) in said
    bound = {
        obj["metadata"]["namespace"] for obj in objects(**some) if obj["kind"] == "RoleBinding"
    }
    assert bound == {"kube-system", NAMESPACE}
    assert names("RoleBinding", role="workloads") == ["leafcast-leases"]


def test_an_edge_reads_and_writes_in_the_namespaces_that_are_named_and_nowhere_else():
    listed = objects(role="edge", namespaces=("shop", "web"))
    (wide,) = (obj for obj in listed if obj["kind"] == "ClusterRoleBinding")
    roles = {obj["metadata"]["name"]: obj for obj in listed if obj["kind"] == "ClusterRole"}
    wide_rules = roles[wide["roleRef"]["name"]]["rules"]
    assert [(rule["resources"], rule["verbs"], rule["resourceNames"]) for rule in wide_rules] == [
        (["namespaces"], ["get"], ["kube-system"]),
        (["namespaces"], ["get", "list", "watch"], ["shop", "web"]),
    ]
    bound = [
        (obj["roleRef"]["name"], obj["metadata"]["namespace"])
        for obj in listed
        if obj["kind"] == "RoleBinding"
    ]
    assert bound == [
        ("leafcast-edge-claim", NAMESPACE),
        ("leafcast-edge", "shop"),
        ("leafcast-edge", "web"),
    ]
    claim = roles["leafcast-edge-claim"]["rules"]
    assert claim[0]["resourceNames"] == ["leafcast-edge"]
    assert all(rule["resources"] == ["leases"] for rule in claim)


def test_the_namespaces_of_an_edge_are_made_before_any_right_and_bear_no_label_of_ours():
    listed = objects(role="edge", namespaces=("shop", "web"))
    first = [obj["kind"] for obj in listed].index("ServiceAccount")
    made = [obj for obj in listed[:first] if obj["kind"] == "Namespace"]
    assert [obj["metadata"]["name"] for obj in made] == [NAMESPACE, "shop", "web"]
    assert "labels" not in made[1]["metadata"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--role", "edge", "--namespace", "Shop_1"), "no name of a namespace"),
        (("--role", "edge", "--namespace", ""), "no name of a namespace"),
        (("--namespace", "shop"), "say --role edge"),
    ],
)
def test_a_namespace_that_is_none_or_is_no_edges_is_refused(words, said):
    result = CliRunner().invoke(install, words)
    assert (result.exit_code, said in result.output) == (2, True)


def test_every_binding_names_a_role_and_an_account_that_are_printed():
    for role in ROLES:
        listed = objects(role=role)
        there = {(obj["kind"], obj["metadata"]["name"]) for obj in listed}
        for obj in listed:
            if "roleRef" in obj:
                assert ("ClusterRole", obj["roleRef"]["name"]) in there
                (subject,) = obj["subjects"]
                assert ("ServiceAccount", subject["name"]) in there
                assert subject["namespace"] == NAMESPACE


@pytest.mark.parametrize("word", ["Deployment", "apps/deployments", "deployments.", ""])
def test_what_is_no_resource_is_refused_with_how_to_write_it(word):
    result = CliRunner().invoke(install, ["--kind", word])
    assert result.exit_code == 2
    assert "deployments.apps" in result.output
