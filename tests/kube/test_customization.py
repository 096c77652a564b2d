"""What becomes of objects on their way from kubectl at the centre to the API servers of edges."""

import json

import pytest

from tests.awaiting import until
from tests.kube.hub_statuses import KINDS, REFUSES, workloads
from tests.kube.live_tree import PATHS, SITES, WAIT
from tests.kube.test_end_to_end import namespace, value_is, value_of

pytestmark = [pytest.mark.kube, pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture
def tree(live_tree):
    return live_tree


_FITTING = """
apiVersion: edge.kubestellar.io/v2alpha1
kind: Customizer
metadata: {name: size, namespace: fitting}
replacements:
- {path: $.data.more, value: '"made"'}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: fit
  namespace: fitting
  annotations:
    control.kubestellar.io/expand-templates: "true"
    edge.kubestellar.io/customizer: size
data: {value: "{{ .clusterName }} is {{ .size }}"}
---
"""
_SIZES = """
apiVersion: v1
kind: Namespace
metadata: {name: customization-properties}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: region-1-site-1, namespace: customization-properties}
data: {size: large}
---
"""


def test_each_site_gets_the_copy_that_fits_it(tree):
    """Its Customizer is written first: without one an object goes out as it is written."""
    tree.apply(namespace("fitting") + _FITTING + _SIZES)
    tree.until_at(0, value_is(f"{SITES[0]} is large"), *value_of("fitting", "fit"))
    tree.until_said("fitting", "configmaps/fit", 'Frozen: data.value: no property "size"', PATHS[1])
    assert not tree.try_site(1, "get", "configmap", "fit", "-n", "fitting", "-o", "yaml").stdout
    tree.centre("label", "synctarget", SITES[1], "size=small")
    tree.until_at(1, value_is(f"{SITES[1]} is small"), *value_of("fitting", "fit"))
    tree.synced("fitting")
    assert tree.site(1, "get", "cm", "fit", "-n", "fitting", "-o=jsonpath={.data.more}") == "made"
    before = tree.versions(0, of="fitting")
    tree.centre("-n", "fitting", "patch", "customizer", "size", "--type=merge", "-p", _BROKEN)
    tree.centre("wait", "epl/fitting", "--for=condition=Customized=False", WAIT)
    assert tree.versions(0, of="fitting") == before


_BROKEN = '{"replacements": [{"path": "$", "value": "1"}]}'


# What a hub's server, and who wrote there by whatever way, say of an object's fields.


def _object(kind, name, spec, *, version="v1", **metadata):
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }


PORT = 30060
"""The first of some up to 30085, of which a server chooses none by itself while it has others."""


def _said(where, port):
    """What a person says: a Service with choices, one without, Jobs, a claim."""
    choices = {
        "type": "LoadBalancer",
        "externalTrafficPolicy": "Local",
        "internalTrafficPolicy": "Local",
        "sessionAffinity": "ClientIP",
        "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 30}},
        "ipFamilies": ["IPv4"],
        # Where a server does not choose by itself.
        "clusterIP": f"10.0.0.{(port - PORT) // 2 + 2}",
        "ports": [{"port": 80, "nodePort": port}],
        "healthCheckNodePort": port + 1,
        "ipFamilyPolicy": "PreferDualStack",
        "selector": {"app": "web"},
    }
    pod = {"restartPolicy": "Never", "containers": [{"name": "m", "image": "m:1"}]}
    labelled = {"metadata": {"labels": {"app": "own"}}, "spec": pod}
    own = {"manualSelector": True, "selector": {"matchLabels": {"app": "own"}}}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim["volumeName"] = "chosen"
    made = [
        _object("Service", "chosen", choices),
        _object("Service", "plain", {"ports": [{"port": 80}]}),
        _object("Job", "held", {"suspend": True, "template": {"spec": pod}}, version="batch/v1"),
        _object("Job", "own", {**own, "suspend": True, "template": labelled}, version="batch/v1"),
        _object("PersistentVolumeClaim", "data", claim, finalizers=["example.com/held"]),
    ]
    for each in made:
        each["metadata"]["namespace"] = where
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": made})


_OWN = {
    ("Service", "chosen"): {"clusterIP", "clusterIPs", "ports", "healthCheckNodePort"},
    ("Service", "plain"): {"clusterIP", "clusterIPs"},
    ("Job", "held"): {"selector", "template"},
}
"""What each cluster hands out, or a test chooses for each."""


_WAYS = {
    "created": ("create",),
    "helm": ("create", "--field-manager=helm"),
    "applied": ("apply",),
    "server-side": ("apply", "--server-side"),
}


@pytest.mark.parametrize("where", _WAYS)
def test_what_a_person_wrote_at_a_hub_arrives_as_by_a_direct_apply(tree, where):
    way, port = _WAYS[where], PORT + 4 * list(_WAYS).index(where)
    kinds = "services,jobs,persistentvolumeclaims"
    tree.apply(namespace(where))
    tree.centre(*way, "-f", "-", stdin=_said(where, port))
    tree.until_at(0, lambda said: said.count("/") >= 5, "-n", where, "get", kinds, "-o", "name")
    tree.synced(where)
    tree.site(0, "create", "namespace", f"{where}-direct")
    direct = _said(f"{where}-direct", port + 2)
    tree.site(0, "apply", "--server-side", "-f", "-", stdin=direct)

    def shown(at):
        items = json.loads(tree.site(0, "-n", at, "get", kinds, "-o", "json"))["items"]
        return {(it["kind"], it["metadata"]["name"]): it for it in items}

    got, beside, hub = shown(where), shown(f"{where}-direct"), _at_hub(tree, where, kinds)
    assert got.keys() == beside.keys()
    for what, live in got.items():
        own = _OWN.get(what, set())
        for field in live["spec"].keys() | beside[what]["spec"].keys() - own:
            if field not in own:
                assert live["spec"].get(field) == beside[what]["spec"].get(field), (what, field)
        finalizers = (it["metadata"].get("finalizers") for it in (live, beside[what]))
        assert len({tuple(it or ()) for it in finalizers}) == 1
    chosen, plain = got["Service", "chosen"]["spec"], got["Service", "plain"]["spec"]
    assert (chosen["ports"][0]["nodePort"], chosen["healthCheckNodePort"]) == (port, port + 1)
    assert chosen["clusterIP"] == hub["Service", "chosen"]["spec"]["clusterIP"]
    # What nobody chose is the cluster's own.
    assert plain["clusterIP"] != hub["Service", "plain"]["spec"]["clusterIP"]
    assert got["Job", "held"]["spec"]["selector"] != hub["Job", "held"]["spec"]["selector"]
    assert got["Job", "held"]["spec"]["suspend"] is True


def _at_hub(tree, where, kinds):
    items = json.loads(tree.centre("-n", where, "get", kinds, "-o", "json"))["items"]
    return {(it["kind"], it["metadata"]["name"]): it for it in items}


def test_a_placement_may_ask_for_kubestellars_cleaning_and_render_names_what_goes(tree):
    tree.apply(namespace("cleaned"))
    tree.centre("create", "-f", "-", stdin=_said("cleaned", PORT + 20))
    tree.until_at(0, value_is("Local"), *_policy("cleaned"))
    render = ("render", "svc/chosen", "-n", "cleaned", "--at", PATHS[0], "--why")
    assert "spec.externalTrafficPolicy" not in tree.leafcast(*render)
    assert "  spec.clusterIPs\n" in tree.leafcast(*render)
    tree.centre(
        "patch", "epl/cleaned", "--type=merge", "-p", '{"spec": {"cleaning": "KubeStellar"}}'
    )
    tree.until_at(0, value_is("Cluster"), *_policy("cleaned"))
    tree.until_at(
        0, value_is("false"), "-n", "cleaned", "get", "job/held", "-o", "jsonpath={.spec.suspend}"
    )
    said = tree.leafcast(*render)
    assert "not sent, as cleaning: KubeStellar takes it off:\n" in said
    assert "  spec.externalTrafficPolicy\n" in said
    assert "  spec.ports[0].nodePort\n" in said


def _policy(where):
    return ("-n", where, "get", "svc/chosen", "-o", "jsonpath={.spec.externalTrafficPolicy}")


@pytest.mark.parametrize("several", [False, True], ids=["one", "several"])
def test_rollout_status_at_the_hub_ends_with_what_edges_run_and_not_before(tree, several):
    where = "several" if several else "single"
    tree.apply(
        f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {where}}}\n---{workloads(where)}"
    )
    for number in range(3):
        tree.centre("-n", where, "set", "image", *KINDS, f"*=app:{number}")
    tree.apply(_returning(where, several=several))
    for kind in KINDS:
        tree.centre("-n", where, "rollout", "status", kind, WAIT)
    # What the owner of an edge adds there stays: the copy's own generation runs ahead.
    for number in range(6):
        added = {"spec": {"template": {"metadata": {"annotations": {"own": str(number)}}}}}
        tree.site(0, "-n", where, "patch", "deploy/web", "-p", json.dumps(added))
    assert _generations(tree.site(0, *_said_of(where, KINDS[0], _BOTH)))[0] > 6
    tree.site(0, "apply", "-f", "-", stdin=REFUSES)
    refused = ("-n", where, "set", "image", *KINDS, "*=refused:0", "--dry-run=server")
    until(lambda: "no such image" in tree.try_site(0, *refused).stderr)
    tree.centre("-n", where, "set", "image", *KINDS, "*=refused:1")
    tree.until_said(where, "no such image")
    for kind in KINDS:
        now, observed = _generations(tree.centre(*_said_of(where, kind, _BOTH)))
        assert observed == now - 1, kind
    tree.centre("-n", where, "set", "image", *KINDS, "*=app:9")
    for kind in KINDS:
        tree.centre("-n", where, "rollout", "status", kind, WAIT)
        now, observed = _generations(tree.centre(*_said_of(where, kind, _BOTH)))
        assert observed == now, kind
        image = _said_of(where, kind, "{.spec.template.spec.containers[0].image}")
        assert {tree.site(number, *image) for number in range(1 + several)} == {"app:9"}
    tree.site(0, "delete", "-f", "-", stdin=REFUSES)


_BOTH = "{.metadata.generation} {.status.observedGeneration}"


def _generations(printed):
    now, observed = printed.split()
    return int(now), int(observed)


def _said_of(where, kind, path):
    return ("-n", where, "get", kind, "-o", f"jsonpath={path}")


def _returning(where, *, several):
    wish = "wantMultiWECReportedState" if several else "wantSingletonReportedState"
    meant = "region: region-1" if several else "only: first"
    return f"""
apiVersion: edge.kubestellar.io/v2alpha1
kind: Location
metadata: {{name: only-first, labels: {{only: first}}}}
spec:
  resource: {{group: edge.kubestellar.io, version: v2alpha1, resource: synctargets}}
  instanceSelector: {{matchLabels: {{id: {SITES[0]}}}}}
---
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {{name: {where}}}
spec:
  locationSelectors: [{{matchLabels: {{{meant}}}}}]
  downsync: [{{namespaces: [{where}], {wish}: true}}]
"""


_GADGETS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: gadgets.example.com
  annotations: {leafcast.io/existing: leave}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: gadgets, kind: Gadget}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer}
              parts: {type: array, items: {type: object, properties: {name: {type: string}%s}}}
              %s
"""
_GADGET = """
apiVersion: example.com/v1
kind: Gadget
metadata: {name: %s, namespace: newer}
spec: {size: 1, parts: [{name: a}]%s}
"""


def test_a_default_of_a_newer_definition_stays_out_where_it_is_unknown(tree):
    for number in (0, 1):
        known = (", weight: {type: integer}", "mode: {type: string}") if number else ("", "")
        tree.site(number, "apply", "-f", "-", stdin=_GADGETS % known)
    newer = (", weight: {type: integer, default: 3}", "mode: {type: string, default: fast}")
    tree.apply(_GADGETS % newer)
    tree.established("gadgets.example.com")
    tree.apply(namespace("newer"))
    for name, way in _WAYS.items():
        tree.centre(*way, "-f", "-", stdin=_GADGET % (name, ""))
    tree.apply(_GADGET % ("said", ", mode: slow"))
    tree.until_said("newer", "gadgets.example.com/said", ".spec.mode: field", PATHS[0])
    shown = ("-n", "newer", "get", "gadgets", "-o", "jsonpath={.items[*].spec}")
    tree.until_at(0, value_is(" ".join(['{"parts":[{"name":"a"}],"size":1}'] * 4)), *shown)
    modes = ("fast",) * 4 + ("slow",)
    filled = [f'{{"mode":"{mode}","parts":[{{"name":"a","weight":3}}],"size":1}}' for mode in modes]
    tree.until_at(1, lambda said: sorted(said.split()) == filled, *shown)
    why = tree.leafcast("render", "gadget/helm", "-n", "newer", "--at", PATHS[0], "--why")
    assert why.endswith(
        "said by nobody, and left out where a cluster does not know it:\n"
        "  spec.mode, spec.parts[0].weight\n"
    )
    tree.centre("-n", "newer", "delete", "gadget", "said")
    tree.synced("newer")
