"""Objects written once, in and out of a tree on real servers: each copy fits its place."""

import pytest
import yaml

from tests.e2e.program import did

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(240)]

ONE, TWO = "/region-1/site-1", "/region-1/site-2"
SHOP = """\
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: edge.kubestellar.io/v2alpha1
kind: Customizer
metadata:
  name: per-site
  namespace: shop
  annotations: {edge.kubestellar.io/expand-parameters: "true"}
replacements:
- {path: "$.spec.replicas", value: "2"}
- {path: "$.spec.nothing.there", value: "3"}
- path: '$.spec.template.spec.containers[?@.name == "web"].env'
  value: '[{"name": "SITE", "value": "%(clusterName)"}]'
- {path: '$.metadata.annotations["example.com/zone"]', value: '"%(id) of %(region)"'}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  annotations:
    edge.kubestellar.io/expand-parameters: "true"
    edge.kubestellar.io/customizer: per-site
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web, site: "%(id)"}}
    spec:
      containers:
      - {name: web, image: "web:1", args: ["--load=50%%", "--at=%(no/where)"]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop, finalizers: [example.com/held]}
spec:
  type: LoadBalancer
  externalTrafficPolicy: Local
  sessionAffinity: ClientIP
  clusterIP: 10.0.0.9
  healthCheckNodePort: 30901
  ports: [{port: 80, nodePort: 30900}]
---
apiVersion: batch/v1
kind: Job
metadata: {name: later, namespace: shop}
spec:
  suspend: true
  manualSelector: true
  selector: {matchLabels: {job: later}}
  template:
    metadata: {labels: {job: later}}
    spec: {restartPolicy: Never, containers: [{name: main, image: "later:1"}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: shop-reader
  labels: {app: shop}
  annotations: {edge.kubestellar.io/customizer: shop/per-role}
rules: []
---
apiVersion: edge.kubestellar.io/v2alpha1
kind: Customizer
metadata: {name: per-role, namespace: shop}
replacements:
- path: $.rules
  value: '[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]'
---
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {name: shop}
spec:
  locationSelectors: [{}]
  downsync:
  - {apiGroup: apps, namespaces: [shop]}
  - {resources: [services, jobs], namespaces: [shop]}
  - {apiGroup: rbac.authorization.k8s.io, resources: [clusterroles], objectNames: [shop-reader]}
"""


def shown(tree, *words):
    return yaml.safe_load(did(tree, *words, "-o", "yaml").stdout)


def test_each_site_has_its_own_and_render_says_why(tree, apply):
    assert apply(SHOP).stderr == ""
    did(tree, "wait", "shop", "--for", "synced")
    for path in (ONE, TWO):
        site = path.strip("/").replace("/", "-")
        web = shown(tree, "get", "deploy", "web", "-n", "shop", "--at", path)
        assert web["spec"]["replicas"] == 2
        assert web["metadata"]["annotations"]["example.com/zone"] == f"{site} of region-1"
        assert web["spec"]["template"]["metadata"]["labels"] == {"app": "web", "site": site}
        (container,) = web["spec"]["template"]["spec"]["containers"]
        assert container["env"] == [{"name": "SITE", "value": site}]
        assert container["args"] == ["--load=50%", "--at=%(no/where)"]
        rules = shown(tree, "get", "clusterrole", "shop-reader", "--at", path)["rules"]
        assert rules == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
        rendered = yaml.safe_load(
            did(tree, "render", "deploy/web", "-n", "shop", "--at", path).stdout
        )
        assert rendered["spec"] == web["spec"]
        assert did(tree, "render", "deploy/web", "-n", "shop", "--at", path, "--live").stdout == ""
    why = did(tree, "render", "deploy", "web", "-n", "shop", "--at", ONE, "--why").stdout
    assert '…metadata.labels.site: "region-1-site-1"    from "%(id)"' in why
    assert "  id  label of SyncTarget region-1-site-1" in why
    assert "  no/where  nobody says it, so it stays as it is written" in why
    assert "$.spec.replicas: 2 by Customizer shop/per-site\n" in why
    assert "there: 3 by Customizer shop/per-site, which leads nowhere in it" in why
    assert "not sent, as a server says it of its own object:\n" in why
    assert "  metadata.resourceVersion\n" in why
    assert "per-role" in did(tree, "get", "customizers", "-n", "shop").stdout


def test_what_a_person_wrote_goes_out_whole_unless_its_placement_says_otherwise(tree, apply):
    apply(SHOP)
    did(tree, "wait", "shop", "--for", "synced")
    objects = {
        it["kind"]: it for it in yaml.safe_load_all(SHOP) if it["kind"] in ("Service", "Job")
    }
    for kind, it in objects.items():
        shown_at = shown(tree, "get", kind, it["metadata"]["name"], "-n", "shop", "--at", ONE)
        assert shown_at["spec"] == it["spec"]
        assert shown_at["metadata"].get("finalizers") == it["metadata"].get("finalizers")
    apply(SHOP.replace("  downsync:", "  cleaning: KubeStellar\n  downsync:"))
    did(tree, "wait", "shop", "--for", "synced")
    service = shown(tree, "get", "service", "web", "-n", "shop", "--at", ONE)
    assert service["spec"] == {"type": "LoadBalancer", "ports": [{"port": 80}]}
    why = did(tree, "render", "job/later", "-n", "shop", "--at", ONE, "--why").stdout
    assert why.endswith(
        "not sent, as cleaning: KubeStellar takes it off:\n  spec.selector\n  spec.suspend\n"
    )


def test_render_compares_with_the_copy_and_needs_no_answer_but_for_that(tree, apply):
    apply(SHOP)
    did(tree, "wait", "shop", "--for", "synced")
    held = SHOP.replace('value: "2"', 'value: "$.nonsense"')
    told = apply(held).stderr
    assert "customizer.edge.kubestellar.io/per-site: replacements[0].value: " in told
    assert "edgeplacement.edge.kubestellar.io/shop: frozen, it stays as it is everywhere" in told
    refused = tree.run("render", "deploy/web", "-n", "shop", "--at", ONE)
    assert refused.returncode == 1
    assert "replacements[0].value" in refused.stderr
    assert shown(tree, "get", "deploy", "web", "-n", "shop", "--at", ONE)["spec"]["replicas"] == 2
    apply(SHOP)
    did(tree, "wait", "shop", "--for", "synced")
    nowhere = tree.run("render", "deploy/web", "-n", "shop", "--at", "/region-1")
    assert (nowhere.returncode, "no destination hangs at /region-1" in nowhere.stderr) == (1, True)
    missing = ("render", "deploy/nothing", "-n", "shop", "--at", ONE)
    assert tree.run(*missing).returncode == 1
    assert tree.run(*missing, "--live").returncode == 2


HERD = """\
apiVersion: v1
kind: Namespace
metadata: {name: herd}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: yaks.herd.example}
spec:
  group: herd.example
  scope: Namespaced
  names: {kind: Yak, plural: yaks}
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
              wool: {type: object}
              maybe: {type: string, nullable: true}
              nodes: {type: array, items: {type: object, properties: {a: {type: object}}}}
---
apiVersion: herd.example/v1
kind: Yak
metadata: {name: one, namespace: herd}
spec:
  wool:
    # only a comment
  maybe:
  nodes:
  - a:
---
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {name: herd}
spec: {locationSelectors: [{}], downsync: [{namespaces: [herd]}]}
"""


def test_a_null_that_a_definition_does_not_allow_is_kept_here_left_out_there_and_named(
    tree, tmp_path
):
    file = tmp_path / "herd.yaml"
    file.write_text(HERD)
    said = did(tree, "apply", "-f", str(file))
    assert said.stderr == ""
    assert did(tree, "diff", "-f", str(file)).stdout == ""
    did(tree, "wait", "herd", "--for", "synced")
    yak = ("yak", "one", "-n", "herd")
    here = tree.json("get", *yak)["spec"]
    assert here == {"wool": None, "maybe": None, "nodes": [{"a": None}]}
    assert tree.json("get", *yak, "--at", ONE)["spec"] == {"nodes": [{}]}
    told = did(tree, "render", *yak, "--at", ONE, "--why").stdout.splitlines()
    assert told[-3:] == [
        "left out there, as it is null and its definition does not let it be:",
        "  spec.nodes[0].a",
        "  spec.wool",
    ]
    assert did(tree, "render", *yak, "--at", ONE, "--live").stdout == ""
    assert "as meant" in did(tree, "plan", "-f", str(file), "--live", "--all").stdout
    did(tree, "apply", "-f", str(file))
    assert tree.json("get", *yak)["metadata"]["generation"] == 1
    did(tree, "delete", "epl", "herd")
