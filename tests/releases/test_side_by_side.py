"""A tree works whose centre, relay or edge is the last release, and the others what stands here."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from schemas.releases.release_folder import MANIFESTS, PIECES, RELEASES
from tests.awaiting import until
from tests.e2e.join_tree import Site, Tree
from tests.launched import Arrived

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(300)]

ROLES = ("centre", "relay", "edge")
RELAY, EDGE, BESIDE = "/r", "/r/e", "/region-1/site-1"
WORKLOAD = """\
apiVersion: v1
kind: Namespace
metadata: {{name: shop}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: settings, namespace: shop}}
data: {{colour: {colour}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, namespace: shop}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec: {{containers: [{{name: web, image: "shop/web:1"}}]}}
---
apiVersion: control.kubestellar.io/v1alpha1
kind: StatusCollector
metadata: {{name: ready}}
spec:
  groupBy: [{{name: there, def: inventory.name}}]
  limit: 20
  combinedFields: [{{name: replicas, type: SUM, subject: returned.status.readyReplicas}}]
---
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {{name: shop}}
spec:
  locationSelectors: [{{}}]
  downsync:
  - {{apiGroup: "", resources: [namespaces], objectNames: [shop]}}
  - {{namespaces: [shop], statusCollectors: [ready], wantMultiWECReportedState: true}}
"""


@pytest.fixture(scope="module", params=ROLES)
def tree(request, releases, tmp_path_factory) -> Iterator[Tree]:
    """A centre with a relay below it, and an edge below that; one of them is the last release."""
    last = request.param
    grown = Tree(tmp_path_factory.mktemp(last), releases[last == "centre"])
    grown.run("up", "--regions", "1", "--sites", "1")
    try:
        _join(grown, RELAY, releases[last == "relay"], "--relay")
        _join(grown, EDGE, releases[last == "edge"])
        yield grown
    finally:
        for site in reversed(grown.sites):
            site.end()
        grown.run("down")


def _join(tree: Tree, path: str, environment: dict[str, str], *options: str) -> None:
    name = path.strip("/").replace("/", "-")
    token: Path = tree.folder / f"{name}.join"
    tree.run("node", "add", path, "--approved", "-o", token, *options)
    site = Site(token, tree.folder / name, environment=environment)
    tree.sites.append(site)
    site.until("in session with its parent")
    until(lambda: tree.reached()[path], lambda: f"{path} is not reached: {site.said}")


def _apply(tree: Tree, colour: str, replicas: int) -> None:
    file = tree.folder / "shop.yaml"
    file.write_text(WORKLOAD.format(colour=colour, replicas=replicas))
    tree.run("apply", "-f", file)


def _counts(tree: Tree) -> dict[str, object]:
    """What is counted of the placement, and whether that is exact."""
    status = json.loads(tree.run("get", "edgeplacement", "shop", "-o", "json")).get("status", {})
    return {name: status.get(name) for name in ("complete", "destinations", "synced", "healthy")}


def _collected(tree: Tree) -> dict[str, float]:
    """By destination, the replicas that are ready there, as the collector says."""
    listed = yaml.safe_load(tree.run("get", "combinedstatus", "-n", "shop", "-o", "yaml"))
    rows = [
        [column.get("string") or column.get("float") for column in row["columns"]]
        for combined in listed.get("items", [listed])
        for result in combined.get("results", ())
        for row in result.get("rows", ())
    ]
    return {destination: float(replicas) for destination, replicas in rows if replicas is not None}


def _is_everywhere(tree: Tree, colour: str, replicas: int) -> None:
    """Wait until both edges hold this version, and the centre counts just that."""
    exact = {"complete": True, "destinations": 2, "synced": 2, "healthy": 2}
    for path in (EDGE, BESIDE):
        until(lambda path=path: tree.settings_at(path) == [colour], f"{path} is not {colour}")
    until(lambda: _counts(tree) == exact, lambda: f"{_counts(tree)}")
    collected = dict.fromkeys(("r-e", "region-1-site-1"), float(replicas))
    until(lambda: _collected(tree) == collected, lambda: f"{_collected(tree)}")


def test_what_is_applied_changed_and_deleted_arrives_and_is_counted(tree):
    _apply(tree, "green", 2)
    _is_everywhere(tree, "green", 2)
    _apply(tree, "blue", 3)
    _is_everywhere(tree, "blue", 3)
    tree.run("delete", "edgeplacement", "shop")
    for path in (EDGE, BESIDE):
        until(lambda path=path: not tree.settings_at(path), f"{path} keeps what is deleted")


def test_who_was_away_reads_what_changed_meanwhile(tree):
    _apply(tree, "green", 2)
    _is_everywhere(tree, "green", 2)
    sites, tree.sites = tree.sites, []
    for site in reversed(sites):
        site.end()
    _apply(tree, "blue", 3)
    until(lambda: tree.settings_at(BESIDE) == ["blue"], f"{BESIDE} is not blue")
    for site in sites:
        again = Site(site.source, site.folder, environment=site.environment)
        tree.sites.append(again)
        again.until("in session with its parent")
    _is_everywhere(tree, "blue", 3)


def test_who_has_no_launcher_goes_on_while_a_release_is_in_force(tree, tmp_path):
    made = Arrived(tmp_path)
    chosen = made.release("900.0.0")
    manifest = tmp_path / RELEASES / MANIFESTS / f"{chosen.manifest}.json"
    pieces = tmp_path / RELEASES / PIECES
    files = ("--manifest", manifest, "--pieces", pieces)
    tree.run("upgrade", "start", chosen.version, *files, "--waves", "100%")
    _apply(tree, "red", 2)
    _is_everywhere(tree, "red", 2)
    # Each says that it is managed elsewhere, and speaks the wire that is needed.
    until(lambda: _elsewhere(tree) == 5, lambda: tree.run("tree", "--versions"))
    assert "gets no placement" not in tree.run("upgrade", "status")


def test_who_has_no_launcher_goes_on_while_a_release_goes_out_from_below(tree, tmp_path):
    """By its wire edges go before relays: waves name where relays begin, which 0.2.0 knows not."""
    made = Arrived(tmp_path)
    chosen = made.release("901.0.0", wire_lowest=1, wire_highest=2)
    for version in _under_way(tree):
        tree.run("upgrade", "abort", version)
    files = ("--pieces", tmp_path / RELEASES / PIECES, "--waves", "100%")
    manifest = tmp_path / RELEASES / MANIFESTS / f"{chosen.manifest}.json"
    tree.run("upgrade", "start", chosen.version, "--manifest", manifest, *files)
    if "PYTHONSAFEPATH" not in tree.environment:
        # The centre is of what stands here, and looks at the wire.
        said = " ".join(tree.run("upgrade", "plan", chosen.version, "--waves", "100%").split())
        assert "The centre goes last, and edges before relays" in said
    until(
        lambda: "901.0.0: Complete" in tree.run("upgrade", "status"),
        lambda: tree.run("upgrade", "status"),
    )
    _apply(tree, "white", 2)
    _is_everywhere(tree, "white", 2)


def _under_way(tree: Tree) -> list[str]:
    """The versions of releases that have not ended."""
    listed = json.loads(tree.run("get", "leafcastreleases", "-o", "json"))
    phases = {
        it["spec"]["version"]: it.get("status", {}).get("phase") for it in listed.get("items", [])
    }
    return [version for version, phase in phases.items() if phase not in ("Complete", "Aborted")]


def _elsewhere(tree: Tree) -> int:
    """How many nodes say that no launcher runs them."""
    counts = json.loads(tree.run("tree", "--versions", "-o", "json"))["counts"]
    return sum(it["count"] for it in counts if it["state"] == "managed-elsewhere")
