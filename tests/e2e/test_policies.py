"""BindingPolicy, EdgePlacement v1alpha1 and CustomTransform, as YAML in and out on real servers."""

import json

import pytest

from tests.awaiting import until
from tests.e2e.program import EDGES, did

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(240)]

HERE, THERE = EDGES
APP = """\
apiVersion: v1
kind: Namespace
metadata: {{name: {name}, labels: {{app: {name}}}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: settings, namespace: {name}, labels: {{app: {name}}}}}
data: {{a: "1"}}
"""
POLICY = """\
apiVersion: control.kubestellar.io/v1alpha1
kind: BindingPolicy
metadata: {{name: {name}}}
spec:
  clusterSelectors: [{where}]
  downsync: [{clause}]
"""
PLACEMENT = """\
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {{name: {name}}}
spec:
  locationSelectors: [{where}]
  downsync: [{clause}]
"""
OLDER = """\
apiVersion: edge.kubestellar.io/v1alpha1
kind: EdgePlacement
metadata: {{name: {name}}}
spec:
  locationSelectors: [{{}}]
  namespaceSelector: {{matchLabels: {{app: {name}}}}}
  nonNamespacedObjects:
  - {{apiGroup: rbac.authorization.k8s.io, resources: [clusterroles], resourceNames: [{name}]}}
"""
ROLE = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: {name}}}
rules: []
"""
TRANSFORM = """\
apiVersion: control.kubestellar.io/v1alpha1
kind: CustomTransform
metadata: {{name: {name}}}
spec: {{apiGroup: apps, resource: deployments, remove: [{remove}]}}
"""
OTHER = """\
apiVersion: v1
kind: ConfigMap
metadata: {{name: other, namespace: {name}}}
"""
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: till, namespace: {name}, labels: {{app: {name}}}}}
spec:
  replicas: 1
  selector: {{matchLabels: {{app: till}}}}
  template:
    metadata: {{labels: {{app: till}}}}
    spec:
      containers:
      - {{name: main, image: "till:1", env: [{{name: a, value: "1"}}]}}
      - {{name: side, image: "side:1", env: [{{name: b, value: "2"}}]}}
"""


@pytest.fixture
def apply(tree, tmp_path, request):
    """Applies texts in which {name} is the test's own name; what came of it."""
    name = f"p-{abs(hash(request.node.name)) % 10**8}"

    def applied(*texts, code=0, **values):
        file = tmp_path / "manifests.yaml"
        file.write_text("---\n".join(text.format(name=name, **values) for text in texts))
        return did(tree, "apply", "-f", str(file), code=code)

    applied.name = name
    return applied


def got(tree, *arguments):
    return json.loads(did(tree, "get", *arguments, "-o", "json").stdout)


def is_there(tree, edge, *arguments):
    return tree.run("get", *arguments, "--at", edge).returncode == 0


def conditions(tree, *arguments):
    return {item["type"]: item for item in got(tree, *arguments)["status"]["conditions"]}


def said(tree, type_, *arguments):
    return conditions(tree, *arguments).get(type_, {}).get("message", "")


def target_at(tree, path):
    found = got(tree, "synctargets")["items"]
    return next(it for it in found if it["metadata"]["annotations"]["leafcast.io/path"] == path)


def relabelled(tree, tmp_path, path, labels):
    target = target_at(tree, path)
    kept = {field: target["metadata"][field] for field in ("name", "annotations")}
    target["metadata"] = {**kept, "labels": labels}
    file = tmp_path / "target.json"
    file.write_text(json.dumps(target))
    did(tree, "apply", "-f", str(file))


def test_a_policy_goes_where_labels_of_sync_targets_say_and_its_binding_says_so(
    tree, apply, tmp_path
):
    name = apply.name
    labels = {path: target_at(tree, path)["metadata"]["labels"] for path in EDGES}
    relabelled(tree, tmp_path, HERE, {**labels[HERE], name: "in"})
    clause = f"{{objectSelectors: [{{matchLabels: {{app: {name}}}}}], createOnly: true}}"
    apply(APP, POLICY, where=f"{{matchLabels: {{{name}: in}}}}", clause=clause)
    met = did(tree, "wait", "--for", "synced", f"bp/{name}").stdout
    for other in (("wait", "--for", "synced", f"epl/{name}"), ("status", f"epl/{name}")):
        assert "; there are: bp/" in did(tree, *other, code=1).stderr
    assert met == f"bindingpolicy.control.kubestellar.io/{name} condition met\n"
    assert is_there(tree, HERE, "cm", "settings", "-n", name)
    assert not is_there(tree, THERE, "cm", "settings", "-n", name)
    spec = until(lambda: got(tree, "bdg", name)["spec"])
    first, second = (target_at(tree, path)["metadata"]["name"] for path in EDGES)
    assert spec["destinations"] == [{"clusterId": first}]
    version = got(tree, "cm", "settings", "-n", name)["metadata"]["resourceVersion"]
    assert spec["workload"]["namespaceScope"] == [
        {
            "group": "",
            "version": "v1",
            "resource": "configmaps",
            "namespace": name,
            "name": "settings",
            "resourceVersion": version,
            "createOnly": True,
        }
    ]
    assert [item["name"] for item in spec["workload"]["clusterScope"]] == [name]

    relabelled(tree, tmp_path, THERE, {**labels[THERE], name: "in"})
    both = [{"clusterId": first}, {"clusterId": second}]
    until(lambda: got(tree, "bdg", name)["spec"]["destinations"] == both)
    until(lambda: is_there(tree, THERE, "cm", "settings", "-n", name))
    relabelled(tree, tmp_path, HERE, labels[HERE])
    until(lambda: not is_there(tree, HERE, "cm", "settings", "-n", name))
    until(lambda: conditions(tree, "bp", name)["Ready"]["status"] == "True")
    status = got(tree, "bp", name)["status"]
    assert status["selectedObjects"] == 2
    assert "matchingLocationCount" not in status
    did(tree, "delete", "bp", name)
    until(lambda: not is_there(tree, THERE, "cm", "settings", "-n", name))
    until(lambda: tree.run("get", "bdg", name).returncode == 1)


def test_one_name_in_both_kinds_is_two_placements_that_name_each_other(tree, apply):
    name = apply.name
    policy = f"{{namespaces: [{name}], objectNames: [settings], createOnly: true}}"
    plain = f"{{apiGroup: '', resources: [configmaps], namespaces: [{name}]}}"
    apply(APP, OTHER, POLICY, where="{}", clause=policy)
    apply(PLACEMENT, where="{}", clause=plain)
    held = did(tree, "wait", "--for", "synced", f"bp/{name}", f"epl/{name}", code=1).stderr
    assert f"PlacementsDiffer: edgeplacement/{name} and this one say createOnly" in held
    assert f"next: leafcast describe bp/{name}" in held
    rows = {
        form["name"] for form in json.loads(did(tree, "status", "-o", "json").stdout)["placements"]
    }
    assert {name, f"bindingpolicy/{name}"} <= rows
    until(lambda: f"bindingpolicy/{name} says" in said(tree, "PoliciesDiffer", "epl", name))
    until(lambda: f"edgeplacement/{name} says" in said(tree, "PoliciesDiffer", "bp", name))
    # As they differ, the copy is kept in step.
    apply(APP.replace('a: "1"', 'a: "2"'))

    def value():
        return json.loads(
            tree.run("get", "cm", "settings", "-n", name, "-o", "json", "--at", HERE).stdout
        )["data"]["a"]

    until(lambda: value() == "2")
    late = did(tree, "wait", "--for", "delete", "--timeout", "1s", f"epl/{name}", code=1).stderr
    assert f"waiting for edgeplacement.edge.kubestellar.io/{name} to be gone" in late
    did(tree, "delete", "epl", name)
    did(tree, "wait", "--for=delete", f"epl/{name}")
    until(lambda: "PoliciesDiffer" not in conditions(tree, "bp", name))
    # An edge gives a placement up at the next signed snapshot; till then both ask for the copy.
    until(lambda: not is_there(tree, HERE, "cm", "other", "-n", name))
    apply(APP.replace('a: "1"', 'a: "3"'))
    did(tree, "wait", "--for", "synced", f"bp/{name}")
    assert value() == "2", "createOnly alone leaves it"


def test_what_v1alpha1_says_goes_out(tree, apply):
    name = apply.name
    apply(APP, ROLE, ROLE.replace("{{name: {name}}}", "{{name: {name}-other}}"), OLDER)
    did(tree, "wait", "--for", "synced", name)
    assert is_there(tree, HERE, "cm", "settings", "-n", name)
    assert is_there(tree, HERE, "clusterrole", name)
    assert not is_there(tree, HERE, "clusterrole", f"{name}-other")
    assert got(tree, "epl", name)["status"]["selectedObjects"] == 2


def env_at(tree, name):
    done = did(tree, "get", "deploy/till", "-n", name, "-o", "json", "--at", HERE)
    containers = json.loads(done.stdout)["spec"]["template"]["spec"]["containers"]
    return [sorted(set(item) & {"env", "image"}) for item in containers]


def test_a_custom_transform_takes_off_and_a_changed_one_goes_out_at_once(tree, apply):
    name = apply.name
    side = "\"$.spec.template.spec.containers[?@.name == 'side'].env\""
    apply(APP, DEPLOYMENT, TRANSFORM, remove=side)
    apply(PLACEMENT, where="{}", clause=f"{{namespaces: [{name}]}}")
    did(tree, "wait", "--for", "synced", name)
    assert env_at(tree, name) == [["env", "image"], ["image"]]

    apply(TRANSFORM, remove='"$.spec.template.spec.containers[*].env"')
    until(lambda: env_at(tree, name) == [["image"], ["image"]])

    refused = apply(TRANSFORM, remove='"$", "$.spec["', code=1).stderr
    assert f'CustomTransform "{name}"' in refused
    assert 'spec.remove[0]: "$" means the whole object; name a field in it' in refused
    assert 'spec.remove[1]: "$.spec[" is not a JSONPath' in refused
    assert env_at(tree, name) == [["image"], ["image"]]

    # What makes no object of it holds that object, and no other.
    apply(TRANSFORM, remove="\"$.metadata[?@ == 'till']\"")
    until(lambda: "takes off metadata.name" in said(tree, "ObjectsRefused", "epl", name))
    # It is delivered nowhere, in every view.
    assert "delivered to 0 of " in did(tree, "status", name).stdout
    assert conditions(tree, "epl", name)["Synced"]["status"] == "False"
    apply(APP.replace('a: "1"', 'a: "2"'))
    did(tree, "wait", "--for", "synced", "--timeout", "2s", name, code=1)
    assert env_at(tree, name) == [["image"], ["image"]]
    until(lambda: got_at(tree, "cm/settings", name)["data"] == {"a": "2"})

    other = TRANSFORM.replace("{{name: {name}}}", "{{name: {name}-other}}")
    apply(TRANSFORM, other, remove='"$.spec.replicas"')
    for one, two in ((name, f"{name}-other"), (f"{name}-other", name)):
        until(lambda one=one, two=two: f"customtransform/{two}: there for" in warnings(tree, one))
    did(tree, "delete", "ct", name, f"{name}-other")
    until(lambda: env_at(tree, name) == [["env", "image"], ["env", "image"]])


def got_at(tree, what, name):
    done = did(tree, "get", what, "-n", name, "-o", "json", "--at", HERE)
    return json.loads(done.stdout)


def warnings(tree, name):
    return " ".join(got(tree, "ct", name).get("status", {}).get("warnings", ()))


def test_what_is_wrong_with_a_policy_is_said_by_field_before_anything_changes(tree, apply):
    long = POLICY.replace("{{name: {name}}}", "{{name: " + "x" * 64 + "}}")
    refused = apply(long, where="{}", clause="{namespaces: [a]}", code=1).stderr
    assert "metadata.name: 64 characters; objects that tell of it carry it as a label" in refused
    refused = apply(
        POLICY, where="{}", clause="{labelSelectors: [{}], apiGroup: ''}", code=1
    ).stderr
    assert (
        'spec.downsync[0].labelSelectors: unknown field; did you mean "objectSelectors"?' in refused
    )
    assert tree.run("get", "bp", apply.name).returncode == 1


def test_who_selects_nothing_or_almost_all_says_so(tree, apply):
    name = apply.name
    apply(APP, POLICY, where="{}", clause=f"{{objectNames: [{name}-none]}}")
    until(lambda: conditions(tree, "bp", name)["ObjectsSelected"]["reason"] == "NothingSelected")
    apply(
        POLICY,
        where=f"{{matchLabels: {{{name}: none}}}}",
        clause="{objectSelectors: [{matchExpressions: [{key: none, operator: DoesNotExist}]}]}",
    )
    until(lambda: "narrow spec.downsync" in said(tree, "WideSelection", "bp", name))
    did(tree, "delete", "bp", name)


TILL = """\
apiVersion: v1
kind: Namespace
metadata: {{name: {name}}}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: till
  namespace: {name}
  annotations: {{control.kubestellar.io/expand-templates: "true"}}
data: {{text: "{{{{ .till }}}}"}}
"""


def test_a_wait_leaves_out_those_whose_labels_it_names(tree, apply, tmp_path):
    name = apply.name
    labels = {path: target_at(tree, path)["metadata"]["labels"] for path in EDGES}
    relabelled(tree, tmp_path, HERE, {**labels[HERE], "till": "7"})
    relabelled(tree, tmp_path, THERE, {**labels[THERE], "stage": "closed"})
    apply(TILL, PLACEMENT, where="{}", clause=f"{{namespaces: [{name}]}}")
    waits = ("wait", f"epl/{name}", "--for", "synced")
    held = did(tree, *waits, code=1).stderr
    assert "CustomizationFrozen" in held
    said = did(tree, *waits, "--except", "stage=closed").stdout
    assert said.strip().endswith("condition met (1 of 2 destinations, 1 excepted)")
    held = did(tree, *waits, "--except", "till=7", code=1).stderr
    assert "is in vain" in held
    assert "CustomizationFrozen" in held
    did(tree, *waits, "--at-least", "50%")
    relabelled(tree, tmp_path, THERE, {**labels[THERE], "till": "8"})
    did(tree, *waits)
    relabelled(tree, tmp_path, HERE, labels[HERE])
