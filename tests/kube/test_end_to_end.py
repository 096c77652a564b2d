"""From kubectl at the centre to the API servers of two edges, over three tiers, with real input."""

import json
import subprocess
from pathlib import Path

import pytest

from schemas.objects.yaml_documents import read_documents
from tests.awaiting import until
from tests.kube.bed import need_binaries
from tests.kube.brought import DEFINITION, STATEFUL, STORES
from tests.kube.created_anew_at_a_hub import *  # noqa: F403 - they run in the tree of this file
from tests.kube.helm_at_a_hub import *  # noqa: F403 - they run in the tree of this file
from tests.kube.live_tree import (
    EVERYWHERE,
    PATHS,
    SHAPE,
    SITES,
    WAIT,
    LiveTree,
    config_map,
    namespace,
    placement,
    value_is,
    value_of,
)
from tests.real_manifests import folder

pytestmark = [pytest.mark.kube, pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    need_binaries()
    tree = LiveTree(tmp_path_factory.mktemp("live") / "tree")
    try:
        tree.up("--kube=all", *SHAPE)
        yield tree
    finally:
        tree.run("down")


# What people bring.


def test_an_application_no_one_made_for_us_lives_at_every_edge(tree):
    shop = ("-n", "boutique", "-f", folder("online-boutique"))
    tree.apply(namespace("boutique"))
    tree.centre("apply", *shop)
    tree.synced("boutique", *shop)
    for number in (0, 1):
        assert tree.site(number, "get", *shop, "-o", "name").count("deployment.apps/") == 12
        tree.site(
            number, "-n", "boutique", "wait", "deploy", "--all", WAIT, "--for=condition=Available"
        )
    assert tree.centre("-n", "boutique", "get", "pods", "-o", "name") == ""


def test_definitions_of_any_size_and_a_policy_of_theirs_reach_every_edge(tree):
    definitions = folder("kyverno")
    tree.centre("apply", "--server-side", "-f", definitions)
    tree.established("clusterpolicies.kyverno.io")
    tree.apply(_POLICY)
    # A server tells of new kinds one after the other; the placement selects all of the group.
    tree.synced("kyverno", "-f", definitions)
    tree.synced("kyverno", "clusterpolicy", "require-team")
    assert tree.status("kyverno")["selectedObjects"] == 4
    for number in (0, 1):
        shown = tree.site(number, "get", "clusterpolicy", "require-team", "-o", "json")
        assert json.loads(shown)["spec"]["rules"][0]["name"] == "check-team"


_POLICY = f"""
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {{name: require-team}}
spec:
  validationFailureAction: Audit
  rules:
  - name: check-team
    match: {{any: [{{resources: {{kinds: [Pod]}}}}]}}
    validate:
      message: the label team is required
      pattern: {{metadata: {{labels: {{team: "?*"}}}}}}
---
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {{name: kyverno}}
spec:
  locationSelectors: {EVERYWHERE}
  downsync:
  - {{apiGroup: kyverno.io, resources: ["*"]}}
  - {{apiGroup: apiextensions.k8s.io, resources: ["*"], objectNames: [{{}}]}}
""".replace(
    "[{}]",
    "[clusterpolicies.kyverno.io, policyreports.wgpolicyk8s.io, "
    "clusterpolicyreports.wgpolicyk8s.io]",
)


@pytest.mark.long
def test_a_stack_with_what_would_act_at_the_centre_acts_at_the_edges_only(tree, tmp_path):
    stack = Path(folder("kube-prometheus"))
    setup, plain = stack / "setup", tmp_path / "plain"
    plain.mkdir()
    for file in stack.glob("*.yaml"):
        if file.name != "prometheusAdapter-apiService.yaml":
            (plain / file.name).write_text(file.read_text())
    tree.centre("apply", "--server-side", "-f", str(setup))
    tree.established()
    tree.centre("apply", "--server-side", "-f", str(plain))
    acting = (stack / "prometheusAdapter-apiService.yaml").read_text()
    for held in (_document(acting), _document(_WEBHOOK)):
        tree.apply(json.dumps(_denatured(held)))
    tree.apply(_MONITORING)
    tree.synced("monitoring", "-f", str(plain))
    tree.synced("monitoring", "apiservice/v1beta1.metrics.k8s.io")

    adapter, guarded = (
        "v1beta1.metrics.k8s.io",
        ("create", "configmap", "x", "-n", "monitoring", "--dry-run=server"),
    )
    refused = 'failed calling webhook "guard.example.org"'
    for number in (0, 1):
        assert "denatureds" not in tree.site(number, "api-resources", "-o", "name")
        until(lambda at=number: refused in tree.try_site(at, *guarded).stderr)
    tree.centre(*guarded)
    assert adapter not in tree.centre("get", "apiservices")
    assert "APIService" in tree.centre("get", "denatureds")

    # An APIService that no one serves keeps a cluster from ending namespaces.
    tree.centre("delete", "denatureds", "--all")
    for number in (0, 1):
        tree.site(number, "wait", f"apiservice/{adapter}", "--for=delete", WAIT)
        tree.site(number, "wait", "validatingwebhookconfiguration/guard", "--for=delete", WAIT)


def test_what_shares_out_the_requests_of_an_edge_is_set_at_the_centre(tree):
    for held in _FLOWS.split("---"):
        tree.apply(json.dumps(_denatured(_document(held))))
    tree.apply(_SHARED_OUT)
    tree.synced("flows", "flowschema/reports", "prioritylevelconfiguration/slow")
    ours = ("get", "flowschemas,prioritylevelconfigurations", "-l", "part-of=flows", "-o", "name")
    for number in (0, 1):
        assert tree.site(number, *ours).split() == [
            f"flowschema.{_FLOW}/reports",
            f"prioritylevelconfiguration.{_FLOW}/slow",
        ]
    assert tree.centre(*ours) == ""
    tree.centre("delete", "epl", "flows")
    for number in (0, 1):
        tree.until_at(number, value_is(""), *ours)


def _document(text):
    (document,) = read_documents(text, "manifest")
    return document.root


def _denatured(held):
    name = f"{held['kind']}.{held['metadata']['name']}".lower()
    api_version = "leafcast.io/v1alpha1"
    about = {"apiVersion": api_version, "kind": "Denatured", "metadata": {"name": name}}
    return {**about, "spec": {"template": held}}


_WEBHOOK = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: guard, labels: {app.kubernetes.io/part-of: kube-prometheus}}
webhooks:
- name: guard.example.org
  clientConfig: {url: "https://127.0.0.1:1/guard"}
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  objectSelector: {matchExpressions: [{key: leafcast.io/tree, operator: DoesNotExist}]}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
"""

_FLOW = "flowcontrol.apiserver.k8s.io"
_FLOWS = f"""
apiVersion: {_FLOW}/v1
kind: PriorityLevelConfiguration
metadata: {{name: slow, labels: {{part-of: flows}}}}
spec:
  type: Limited
  limited: {{nominalConcurrencyShares: 5, limitResponse: {{type: Reject}}}}
---
apiVersion: {_FLOW}/v1
kind: FlowSchema
metadata: {{name: reports, labels: {{part-of: flows}}}}
spec:
  priorityLevelConfiguration: {{name: slow}}
  matchingPrecedence: 900
  rules:
  - subjects: [{{kind: User, user: {{name: reporter}}}}]
    nonResourceRules: [{{verbs: ["*"], nonResourceURLs: ["/reports"]}}]
"""
_SHARED_OUT = placement(
    "flows", f"{{apiGroup: {_FLOW}, resources: [flowschemas, prioritylevelconfigurations]}}"
)

_STACK = "labelSelectors: [{matchLabels: {app.kubernetes.io/part-of: kube-prometheus}}]"
_MONITORING = placement(
    "monitoring",
    '{apiGroup: "", resources: [namespaces], objectNames: [monitoring]}',
    "{namespaces: [monitoring]}",
    f"{{namespaces: [default, kube-system], {_STACK}}}",
    f"{{apiGroup: rbac.authorization.k8s.io, {_STACK}}}",
    f"{{apiGroup: apiregistration.k8s.io, {_STACK}}}",
    f"{{apiGroup: admissionregistration.k8s.io, {_STACK}}}",
)


def test_what_a_chart_and_argo_cd_write_on_objects_survives_the_way(tree):
    tree.apply(namespace("charted"))
    tree.apply(_CHART)
    tree.synced("charted", "-n", "charted", "cm/release-web", "sa/release-web")
    tree.until_at(0, value_is("debug"), *value_of("charted", "release-web"))
    before = _charted(tree)
    # A second sync of the same says nothing new.
    tree.centre(
        "apply", "--server-side", "--force-conflicts", "--field-manager=argocd-controller",
        "-f", "-", stdin=_CHART,
    )  # fmt: skip
    tree.apply(config_map("charted", "after", "1"))
    tree.until_at(0, value_is("1"), *value_of("charted", "after"))
    got = json.loads(tree.site(0, "-n", "charted", "get", "cm", "release-web", "-o", "json"))
    labels, annotations = got["metadata"]["labels"], got["metadata"]["annotations"]
    assert labels["app.kubernetes.io/instance"] == "release"
    assert labels["app.kubernetes.io/managed-by"] == "Helm"
    assert annotations["argocd.argoproj.io/sync-wave"] == "-1"
    # What tells a tool at the hub what is its own stays there.
    tools = ("meta.helm.sh/", "argocd.argoproj.io/tracking-id", "kubectl.kubernetes.io/")
    assert not [key for key in annotations if key.startswith(tools)]
    after = _charted(tree)
    assert {key: after[key] for key in before} == before


def _charted(tree):
    return tree.versions(0, of="charted")


_CHART = """---
# Source: web/templates/serviceaccount.yaml
apiVersion: v1
kind: ServiceAccount
metadata:
  name: release-web
  namespace: charted
  labels:
    helm.sh/chart: web-1.2.3
    app.kubernetes.io/instance: release
automountServiceAccountToken: true
---
# Source: web/templates/ingress.yaml

---
# Source: web/templates/configmap.yaml
apiVersion: v1
kind: ConfigMap
metadata:
  name: release-web
  namespace: "charted"
  labels:
    helm.sh/chart: web-1.2.3
    app.kubernetes.io/name: web
    app.kubernetes.io/instance: release
    app.kubernetes.io/version: "1.16.0"
    app.kubernetes.io/managed-by: Helm
  annotations:
    meta.helm.sh/release-name: release
    meta.helm.sh/release-namespace: charted
    argocd.argoproj.io/tracking-id: shop:/ConfigMap:charted/release-web
    argocd.argoproj.io/sync-wave: "-1"
data:
  value: "debug"
"""


# What people write for KubeStellar, and how an app moves.


def test_one_label_of_a_location_moves_an_app_and_touches_nothing_else(tree):
    tree.apply(STORES)
    held = ("-n", "commonstuff", "deploy/commond", "cm/httpd-htdocs")
    tree.synced("edge-placement-c", *held, at=[0])
    shown = ("-n", "commonstuff", "get", "deploy,cm", "-l", "leafcast.io/tree", "-o", "name")
    there = "deployment.apps/commond\nconfigmap/httpd-htdocs\n"
    assert tree.site(0, *shown) == there
    assert tree.try_site(1, *shown).stdout == ""
    # What is wrong with an inventory object is said on it.
    wrong = ("get", "synctarget", "store-9", "-o", "jsonpath={.status.conditions[0].message}")
    until(lambda: "leafcast.io/path" in tree.centre(*wrong), lambda: tree.centre(*wrong))
    others = [tree.versions(number) for number in (0, 1)]

    tree.centre("label", "location", "store-2", "stage=live", "--overwrite")
    tree.until_at(1, value_is(there), *shown)
    assert tree.site(0, *shown) == there
    tree.centre("label", "location", "store-1", "stage=spare", "--overwrite")
    tree.until_at(0, value_is(""), *shown)
    assert tree.site(1, *shown) == there
    # Its only destination's state is copied back.
    ready = ("deploy/commond", "--for=jsonpath={.status.readyReplicas}=1")
    tree.centre("-n", "commonstuff", "wait", *ready, WAIT)
    for number, before in enumerate(others):
        after = tree.versions(number)
        gone = {key for key in before.keys() - after.keys() if "commonstuff" not in key}
        assert not gone
        assert {key: after[key] for key in before if "commonstuff" not in key} == {
            key: known for key, known in before.items() if "commonstuff" not in key
        }


def test_kubectl_and_leafcast_tell_the_same_of_a_placement(tree):
    watch = subprocess.Popen(
        tree.kubectl_command("--context=centre", "get", "epl", "-w", "--no-headers"),
        env=tree.kubectl_environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        tree.apply(namespace("told") + config_map("told", "words", "1"))
        assert any(
            line.split()[:7] == ["told", "2", "2", "2", "2", "True", "Available"]
            for line in watch.stdout
        )
    finally:
        watch.kill()
        watch.communicate()
    tree.synced("told", "-n", "told", "cm/words")
    heads = tree.centre("get", "epl").splitlines()[0].split()
    counts = ["OBJECTS", "DESTINATIONS", "SYNCED", "HEALTHY"]
    assert heads == ["NAME", *counts, "READY", "STATUS", "HOLD", "AGE"]
    assert "locationSelectors" in tree.centre("explain", "epl.spec")

    tree.leafcast("wait", "epl/told", "--for=condition=Synced", "--timeout=60s")
    until(lambda: "2/2" in tree.leafcast("status", "told"))
    synced = "Synced: 2 of 2 destinations are synced"
    until(lambda: synced in tree.leafcast("describe", "epl/told"))
    # A busy machine may not have read its objects yet: that is said then, and asked again.
    until(lambda: "Placements:   told" in tree.leafcast("describe", "cm/words", "-n", "told"))
    for path in PATHS:
        held = tree.leafcast("get", "cm/words", "-n", "told", "--at", path, "-o", "json")
        assert json.loads(held)["data"] == {"value": "1"}


# What breaks, is said, and mends by itself.


def test_an_edge_whose_api_server_dies_holds_up_no_other_and_catches_up(tree):
    tree.apply(namespace("killed") + config_map("killed", "before", "1"))
    tree.synced("killed", "-n", "killed", "cm/before")
    with tree.server_down(SITES[0]):
        tree.apply("".join(config_map("killed", f"meanwhile-{at}", "2") for at in range(20)))
        said = tree.until_said("killed", "ServiceUnavailable", "Connection refused", PATHS[0])
        (synced,) = (its for its in said["conditions"] if its["type"] == "Synced")
        assert synced["status"] != "True"
        assert said["healthy"] <= 1, "nobody knows how it is there"
        (block,) = until(lambda: tree.blamed("killed"))
        assert "objects are not at fault" in block["cause"]
        assert "mend" not in block["remedy"]
        tree.until_at(1, value_is("2"), *value_of("killed", "meanwhile-19"))
    tree.until_at(0, value_is("2"), *value_of("killed", "meanwhile-19"))
    tree.synced("killed")


def test_hands_at_a_place_in_maintenance_are_left_alone_until_it_ends(tree):
    tree.apply(namespace("worked") + config_map("worked", "one", "1"))
    tree.synced("worked", "-n", "worked", "cm/one")
    tree.leafcast("maintenance", "on", PATHS[0], "--for", "5m", "--reason", "new disk")
    until(lambda: tree.status("worked").get("held"))
    tree.site(0, "-n", "worked", "patch", "configmap", "one", "-p", '{"data": {"value": "9"}}')
    tree.apply(config_map("worked", "one", "2") + config_map("worked", "two", "2"))
    tree.until_at(1, value_is("2"), *value_of("worked", "two"))
    tree.synced("worked")
    tree.centre("wait", "epl/worked", "--for=condition=Ready", WAIT)
    until(lambda: "in maintenance" in tree.leafcast("status", "worked"))
    assert tree.site(0, *value_of("worked", "one")) == "9"
    assert tree.try_site(0, *value_of("worked", "two")).returncode
    tree.centre(
        "annotate",
        "synctarget",
        PATHS[0].strip("/").replace("/", "-"),
        "leafcast.io/maintenance-",
        "--overwrite",
    )
    tree.until_at(0, value_is("2"), *value_of("worked", "one"))
    tree.until_at(0, value_is("2"), *value_of("worked", "two"))
    event = json.dumps(_EVENT)
    tree.site(0, "create", "-f", "-", stdin=event)
    described = ("describe", "cm", "one", "-n", "worked", "--at", PATHS[0])
    until(lambda: "Warning  Tried" in tree.leafcast(*described), "the event is not told")
    assert "somebody tried" in tree.leafcast(*described)


_EVENT = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "one.1", "namespace": "worked"},
    "involvedObject": {"kind": "ConfigMap", "name": "one", "namespace": "worked"},
    "type": "Warning",
    "reason": "Tried",
    "message": "somebody tried",
    "firstTimestamp": "2026-01-01T00:00:00Z",
    "lastTimestamp": "2026-01-01T00:00:00Z",
}


def test_an_edge_whose_api_server_is_down_is_not_synced_though_nothing_is_to_be_written(tree):
    tree.apply(namespace("idle") + config_map("idle", "one", "1"))
    tree.synced("idle", "-n", "idle", "cm/one")
    with tree.server_down(SITES[0]):
        said = tree.until_said("idle", "ServiceUnavailable", "since 20", PATHS[0])
        (synced,) = (its for its in said["conditions"] if its["type"] == "Synced")
        assert (synced["status"], synced["reason"]) == ("False", "Failing")
        assert said["synced"] == 1
    tree.synced("idle")


def test_a_wait_right_after_a_definition_waits_until_it_is_served(tree):
    made = DEFINITION.replace("widgets", "gadgets").replace("Widget", "Gadget")
    made = made.replace("singular: widget", "singular: gadget")
    tree.apply(made)
    tree.apply(namespace("fresh", "{apiGroup: example.org, resources: [gadgets]}"))
    # No object of it is there yet, and the namespace is.
    tree.leafcast("wait", "epl/fresh", "--for=condition=Synced", "--timeout=60s")


def test_a_centre_whose_api_server_dies_takes_nothing_back_and_goes_on(tree):
    tree.apply(namespace("centred") + config_map("centred", "one", "1"))
    tree.synced("centred", "-n", "centred", "cm/one")
    before = [tree.versions(number) for number in (0, 1)]
    with tree.server_down("centre"):
        # An edge mends its own meanwhile.
        tree.site(0, "-n", "centred", "delete", "configmap", "one")
        tree.until_at(0, value_is("1"), *value_of("centred", "one"))
    until(lambda: not tree.try_kubectl("--context=centre", "get", "epl").returncode)
    tree.apply(config_map("centred", "two", "2"))
    for number in (0, 1):
        tree.until_at(number, value_is("2"), *value_of("centred", "two"))
    tree.synced("centred")
    after = [tree.versions(number) for number in (0, 1)]
    assert {key: after[1][key] for key in before[1]} == before[1]
    own = "ConfigMap centred/one"
    assert {key: after[0][key] for key in before[0] if key != own} == {
        key: known for key, known in before[0].items() if key != own
    }


def test_credentials_that_are_refused_or_lack_rights_are_said_and_renewed_by_themselves(tree):
    tree.apply(namespace("refused") + config_map("refused", "one", "1"))
    tree.synced("refused", "-n", "refused", "cm/one")
    before = tree.versions(0, of="refused")
    tree.site(0, "create", "serviceaccount", "poor", "-n", "default")
    tree.site(
        0, "create", "clusterrolebinding", "poor", "--clusterrole=view", "--user=poor",
        "--serviceaccount=default:poor",
    )  # fmt: skip
    poor = tree.site(0, "create", "token", "poor", "-n", "default").strip()
    with tree.credentials(0, "no-token-of-anyone"):
        tree.apply(config_map("refused", "one", "2"))
        tree.until_said("refused", "Unauthorized", "renew its token", PATHS[0])
    with tree.credentials(0, poor):
        tree.apply("".join(config_map("refused", name, "3") for name in ("one", "two", "three")))
        lacking = "no right to patch configmaps in the namespace refused"
        said = tree.until_said("refused", "Forbidden", lacking, PATHS[0])
        until(lambda: len(tree.blamed("refused")) == 1 and "two" in str(tree.blamed("refused")))
        until(lambda: tree.status("refused")["healthy"] == 1, lambda: str(said))
        (block,) = tree.blamed("refused")
        assert "kubectl create rolebinding leafcast-more -n refused" in block["remedy"]
        assert "--serviceaccount=default:poor" in block["remedy"]
        said_once = "kubectl create clusterrole "
        until(lambda: tree.leafcast("status", "refused").count(said_once) == 1)
        tree.until_at(1, value_is("3"), *value_of("refused", "one"))
    tree.until_at(0, value_is("3"), *value_of("refused", "one"))
    tree.synced("refused")
    assert before.keys() <= tree.versions(0).keys()


def test_a_definition_that_is_deleted_under_its_objects_comes_back_with_them(tree):
    tree.apply(DEFINITION)
    tree.established("widgets.example.org")
    tree.apply(namespace("defined") + config_map("defined", "other", "1") + _WIDGET)
    tree.synced("defined", "-n", "defined", "widget/first")
    size = ("-n", "defined", "get", "widget", "first", "-o", "jsonpath={.spec.size}")
    uid = ("get", "crd", "widgets.example.org", "-o", "jsonpath={.metadata.uid}")
    # It was not selected: it goes where its objects go.
    first = tree.site(0, *uid)
    tree.site(0, "delete", "crd", "widgets.example.org")
    tree.until_at(0, value_is("7"), *size)
    assert tree.site(0, *uid) != first
    tree.synced("defined")


_WIDGET = """
apiVersion: example.org/v1
kind: Widget
metadata: {name: first, namespace: defined}
spec: {size: 7}
---
"""


def test_an_object_that_an_edge_refuses_says_why_and_the_rest_goes_on(tree):
    tree.site(0, "create", "namespace", "strict")
    tree.site(0, "-n", "strict", "create", "quota", "few", "--hard=services=0")
    # Until its status is made a quota holds nobody back; what makes it stands still for a minute
    # where its API server or a definition went meanwhile.
    made = "--for=jsonpath={.status.hard.services}=0"
    tree.site(0, "-n", "strict", "wait", "quota/few", made, WAIT)
    tree.apply(namespace("strict") + _SERVICE + config_map("strict", "rest", "1"))
    tree.until_said("strict", "services/web", "Forbidden", "exceeded quota: few", PATHS[0])
    for number in (0, 1):
        tree.until_at(number, value_is("1"), *value_of("strict", "rest"))
    tree.site(0, "-n", "strict", "delete", "quota", "few")
    tree.synced("strict")


_SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: web, namespace: strict}
spec: {ports: [{port: 80}], selector: {app: web}}
---
"""


def test_a_tree_that_starts_again_with_all_in_step_writes_nothing(tree):
    tree.apply(namespace("again") + config_map("again", "one", "1"))
    tree.synced("again", "-n", "again", "cm/one")
    before = [tree.versions(number) for number in (0, 1)]
    assert tree.run("down").returncode == 0
    tree.up()
    tree.apply(config_map("again", "two", "2"))
    for number in (0, 1):
        tree.until_at(number, value_is("2"), *value_of("again", "two"))
        after = tree.versions(number)
        assert {key: after[key] for key in before[number]} == before[number]


def test_who_patched_an_edge_is_told_and_a_claim_outlives_its_placement(tree):
    tree.apply(namespace("stateful"))
    tree.apply(STATEFUL)
    tree.synced("stateful", "-n", "stateful", "pvc/data", "cm/loose", "deploy/web")
    here = ("-n", "stateful")
    tree.site(0, *here, "set", "image", "deploy/web", "main=evil:1")

    def repairs(count):
        found = tree.status("stateful").get("repairs") or {}
        return found if found.get("count", 0) >= count else None

    [last] = until(lambda: repairs(1), lambda: tree.status("stateful"))["last"]
    image = 'spec.template.spec.containers[name="main"].image'
    assert (last["field"], last["manager"], last["path"]) == (image, "kubectl-set", PATHS[0])
    said = (
        f"repaired:  1 time, last: {PATHS[0]} stateful/deployments.apps/web {image} by kubectl-set"
    )
    until(lambda: said in tree.leafcast("status", "stateful"))
    event = "was changed there by kubectl-set"
    until(lambda: event in tree.leafcast("events", "--for", "stateful"))
    tree.site(1, *here, "delete", "deploy/web")
    last = until(lambda: repairs(2), lambda: tree.status("stateful"))["last"][0]
    assert "field" not in last or not last["field"]
    assert last["path"] == PATHS[1]
    tree.site(1, "delete", "ns", "stateful", WAIT)
    until(lambda: repairs(5), lambda: tree.status("stateful"))
    tree.synced("stateful")

    # What is misspelt and comes by kubectl is said of the placement, and changes nothing.
    misspelt = ("annotate", "pvc/data", "leafcast.io/on-remove=delete")
    tree.centre(*here, *misspelt)
    tree.centre("wait", "epl/stateful", "--for=condition=ObjectsRefused", WAIT)
    found = json.loads(tree.centre("get", "epl", "stateful", "-o", "json"))["status"]["conditions"]
    [refused] = [it["message"] for it in found if it["type"] == "ObjectsRefused"]
    assert "did you mean leafcast.io/on-removal?" in refused
    tree.centre(*here, "annotate", "pvc/data", "leafcast.io/on-remove-")

    named = ("get", "pvc,cm,deploy", *here, "-o", "name")
    claim = tree.site(0, *here, "get", "pvc", "data", "-o", "jsonpath={.metadata.uid}")
    tree.centre("delete", "epl", "stateful", WAIT)
    tree.until_at(0, lambda shown: "deployment" not in shown and "data" in shown, *named)
    tree.until_at(0, lambda shown: "leafcast" not in shown, *_owners("cm/loose"))
    kept = ("get", "pvc", *here, "--kept", "--at", PATHS[0])
    until(lambda: "data" in tree.leafcast(*kept), "the claim is not told to be kept")
    tree.apply(namespace("stateful"))
    tree.synced("stateful")
    again = tree.site(0, *here, "get", "pvc", "data", "-o", "jsonpath={.metadata.uid}")
    assert again == claim


def _owners(title):
    path = "jsonpath={.metadata.managedFields[*].manager} {.metadata.labels}"
    return ("-n", "stateful", "get", title, "--show-managed-fields", "-o", path)
