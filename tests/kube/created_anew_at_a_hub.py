"""Objects that people delete and create anew at a hub, and items of lists changed at an edge.

`test_end_to_end` runs these in its tree: a hub and two edges on API servers.
"""

import json

from tests.awaiting import until
from tests.kube.live_tree import namespace

__all__ = ["test_what_is_created_anew_at_a_hub_is_replaced_only_where_it_cannot_be_changed"]

HERE = ("-n", "anew")
NAMES = ("cm/fixed", "secret/typed", "job/once", "deploy/web", "svc/web")


def objects(number):
    return f"""
apiVersion: v1
kind: ConfigMap
metadata: {{name: fixed, namespace: anew}}
immutable: true
data: {{value: "{number}"}}
---
apiVersion: v1
kind: Secret
metadata: {{name: typed, namespace: anew}}
type: example.com/type-{number}
stringData: {{a: b}}
---
apiVersion: batch/v1
kind: Job
metadata: {{name: once, namespace: anew}}
spec:
  template:
    spec: {{restartPolicy: Never, containers: [{{name: m, image: "job:{number}"}}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, namespace: anew}}
spec:
  selector: {{matchLabels: {{app: "web-{number}"}}}}
  template:
    metadata: {{labels: {{app: "web-{number}"}}}}
    spec: {{containers: [{{name: web, image: "web:1"}}]}}
---
apiVersion: v1
kind: Service
metadata: {{name: web, namespace: anew}}
spec: {{selector: {{app: "web-{number}"}}, ports: [{{name: http, port: 80}}]}}
"""


def uids(tree, number):
    shown = json.loads(tree.site(number, *HERE, "get", *NAMES, "-o", "json"))
    return {it["kind"]: it["metadata"]["uid"] for it in shown["items"]}


CONTENT = (
    "jsonpath={.items[0].data.value} {.items[1].type} "
    "{.items[2].spec.template.spec.containers[0].image} "
    "{.items[3].spec.selector.matchLabels.app} {.items[4].spec.selector.app}"
)


def replaced(tree, number):
    """Replace all of them at the hub; their UIDs at each site, once it has all that is new."""
    tree.centre("replace", "--force", "-f", "-", stdin=objects(number))
    new = f"{number} example.com/type-{number} job:{number} web-{number} web-{number}"
    for site in (0, 1):
        tree.until_at(site, lambda shown: shown == new, *HERE, "get", *NAMES, "-o", CONTENT)
    tree.synced("anew")
    return [uids(tree, site) for site in (0, 1)]


def test_what_is_created_anew_at_a_hub_is_replaced_only_where_it_cannot_be_changed(tree):
    tree.apply(namespace("anew") + objects(1))
    tree.synced("anew", *HERE, *NAMES)
    first = replaced(tree, 1)
    assert replaced(tree, 1) == first
    second = replaced(tree, 2)
    for before, after in zip(first, second, strict=True):
        kept = {kind for kind in before if before[kind] == after[kind]}
        assert kept == {"Service"}
    # Deleted and created in one breath, by different tools; the last word counts.
    for number in (3, 4):
        tree.centre(*HERE, "delete", "cm", "fixed", "--wait=false")
        tree.centre("create", "-f", "-", stdin=objects(number).partition("---")[0])
    at = ("get", "cm/fixed", *HERE, "-o", "jsonpath={.data.value}")
    for site in (0, 1):
        tree.until_at(site, lambda shown: shown == "4", *at)

    port = json.dumps([{"op": "replace", "path": "/spec/ports/0/port", "value": 83}])
    tree.site(0, *HERE, "patch", "svc/web", "--type=json", "-p", port)
    ports = ("get", "svc/web", *HERE, "-o", "jsonpath={.spec.ports[*].port}")
    tree.until_at(0, lambda shown: shown == "80", *ports)
    said = 'spec.ports[port=83,protocol="TCP"] by kubectl-patch'
    until(lambda: said in tree.leafcast("status", "anew"), "the repair is not told")
