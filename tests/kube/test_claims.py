"""One cluster is one edge: a second one is refused, and deletes nothing of the first one's.

And of a cluster that an edge may use in part it sees and uses that part.
"""

import json

import pytest

from tests.awaiting import until
from tests.e2e.join_tree import Site, Tree

pytestmark = [pytest.mark.kube, pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(240)]

LEASE = ("-n", "leafcast-system", "get", "lease", "leafcast-edge", "--ignore-not-found")
STORES = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: default}
data: {colour: green}
---
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {name: shop}
spec:
  locationSelectors: [{matchLabels: {of: stores}}]
  downsync:
  - {apiGroup: "", resources: [configmaps], namespaces: [default]}
"""
TENANT = """
apiVersion: v1
kind: Namespace
metadata: {name: tenant}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: tenant}
data: {colour: green}
---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: tenant}
stringData: {key: hunter22}
---
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {name: tenant}
spec:
  locationSelectors: [{matchLabels: {of: tenants}}]
  downsync:
  - {apiGroup: "", resources: [configmaps, secrets], namespaces: [tenant]}
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A region of an embedded tree, to which edges join."""
    tree = Tree(tmp_path_factory.mktemp("claims"))
    tree.run("up", "--regions", "1", "--sites", "1")
    tree.run("apply", "-f", "-", stdin=STORES)
    yield tree
    for site in tree.sites:
        site.end()
    tree.run("down")


def join(tree, path, server, *more, folder=None, **added):
    """A new edge at this path, which runs with this server's kubeconfig."""
    token = tree.add(path, "--labels", "of=stores", **added)
    return run(tree, token, folder or path.rpartition("/")[2], server, *more)


def run(tree, token, folder, server, *more):
    site = Site(token, tree.folder / folder, "--kubeconfig", str(server.kubeconfig), *more)
    site.token = token
    tree.sites.append(site)
    return site


def refused(site):
    """What it said before it ended by itself."""
    assert site.process.wait(60) == 1, site.said
    site.end()
    return site.said


def uids(server):
    """What is there of ours, and which one it is."""
    found = server.kubectl("get", "configmaps", "-A", "-l", "leafcast.io/tree", "-o", "json")
    return {it["metadata"]["name"]: it["metadata"]["uid"] for it in json.loads(found)["items"]}


def claim(server):
    found = server.kubectl(*LEASE, "-o", "json")
    return json.loads(found) if found else None


def served(server):
    """What is there once all came."""
    return until(lambda: uids(server), lambda: f"nothing came: {claim(server)}")


def test_one_cluster_is_one_edge_from_its_first_join_to_its_removal(tree, module_server):
    server = module_server
    first = join(tree, "/region-1/first", server)
    there = served(server)
    held = claim(server)
    assert held["spec"]["holderIdentity"] == "/region-1/first"

    second = join(tree, "/region-1/second", server)
    said = refused(second)
    uid = server.kubectl("get", "ns", "kube-system", "-o", "jsonpath={.metadata.uid}")
    for word in (uid, "already the edge /region-1/first of this tree", "--take-over"):
        assert word in said
    tree.run("node", "remove", "/region-1/second", "--force")
    assert (uids(server), claim(server)["metadata"]["uid"]) == (there, held["metadata"]["uid"])

    # The same edge again, with an empty folder.
    first.end()
    again = tree.add("/region-1/first", "--replace")
    first = run(tree, again, "anew", server)
    until(
        lambda: claim(server)["metadata"]["resourceVersion"] != held["metadata"]["resourceVersion"],
        lambda: first.said,
    )
    assert served(server) == there

    said = tree.run("node", "remove", "/region-1/first")
    assert "in the cluster" not in said
    assert (claim(server), uids(server)) == (None, {})


def test_a_cluster_of_another_tree_is_taken_over_by_who_says_so_alone(tree, module_server):
    server = module_server
    site = join(tree, "/region-1/third", server)
    served(server)
    notes = claim(server)["metadata"]["annotations"]
    of_a_tree_that_is_gone = {"leafcast.io/claimed-by-tree": "b" * 32}
    annotate(server, of_a_tree_that_is_gone)
    site.end()
    there = uids(server)
    assert "of tree bbbbbbbb" in refused(run(tree, site.token, "third", server))
    assert uids(server) == there
    taken = run(tree, site.token, "third", server, "--take-over")
    until(lambda: claim(server)["metadata"]["annotations"] == notes, lambda: taken.said)
    tree.run("node", "remove", "/region-1/third")
    assert claim(server) is None


def test_an_edge_that_is_started_with_another_cluster_does_nothing_there(
    tree, module_server, api_server
):
    site = join(tree, "/region-1/fourth", api_server)
    served(api_server)
    site.end()
    said = refused(run(tree, site.token, "fourth", module_server))
    assert "the cluster changed" in said
    assert (claim(module_server), uids(module_server)) == (None, {})
    run(tree, site.token, "fourth", module_server, "--take-over")
    served(module_server)
    tree.run("node", "remove", "/region-1/fourth")
    assert (claim(module_server), uids(module_server)) == (None, {})


def account_of(server, folder, name):
    """A kubeconfig of a service account in our namespace."""
    token = server.kubectl("create", "token", name, "-n", "leafcast-system").strip()
    config = json.loads(server.kubectl("config", "view", "--flatten", "--minify", "-o", "json"))
    config["users"][0]["user"] = {"token": token}
    file = folder / f"{name}.kubeconfig"
    file.write_text(json.dumps(config))
    return file


def test_an_edge_with_rights_in_one_namespace_works_there_and_asks_for_no_more(tree, new_server):
    server = new_server(workloads=False)
    rights = tree.run("install", "--role", "edge", "--namespace", "tenant")
    server.kubectl("apply", "-f", "-", stdin=rights)
    tree.run("apply", "-f", "-", stdin=TENANT)
    file = account_of(server, tree.folder, "leafcast-edge")
    token = tree.add("/region-1/tenant", "--labels", "of=tenants")
    site = Site(token, tree.folder / "tenant", "--kubeconfig", str(file))
    tree.sites.append(site)

    def colour():
        where = ("-n", "tenant", "get", "configmap", "settings", "--ignore-not-found")
        return server.kubectl(*where, "-o", "jsonpath={.data.colour}")

    until(lambda: colour() == "green", lambda: site.said)
    tree.run("wait", "tenant", "--for", "synced")
    assert claim(server)["spec"]["holderIdentity"] == "/region-1/tenant"
    # It hears of what others change, and takes it back.
    patch = ("patch", "configmap", "settings", "-n", "tenant", "-p", '{"data":{"colour":"red"}}')
    server.kubectl(*patch)
    until(lambda: colour() == "green", lambda: site.said)
    tree.run("apply", "-f", "-", stdin=TENANT.replace("green", "blue"))
    until(lambda: colour() == "blue", lambda: site.said)
    tree.run("node", "remove", "/region-1/tenant")
    assert (colour(), claim(server)) == ("", None)
    assert "tenant" in server.kubectl("get", "ns", "tenant", "-o", "name")


def annotate(server, notes):
    words = [f"{name}={value}" for name, value in notes.items()]
    where = ("-n", "leafcast-system", "annotate", "--overwrite", "lease", "leafcast-edge")
    server.kubectl(*where, *words)
