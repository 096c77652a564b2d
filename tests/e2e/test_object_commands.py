"""A user's day with objects: apply, look, wait, change, delete, on one running tree."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from tests.awaiting import until
from tests.e2e.program import EDGES, Program, did
from tests.e2e.test_up import WAIT_SECONDS

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(240)]

STORE = """\
apiVersion: v1
kind: Namespace
metadata: {{name: {name}}}
---
apiVersion: v1
kind: List
items:
- apiVersion: apps/v1
  kind: Deployment
  metadata: {{name: till, namespace: {name}, labels: {{app: till}}}}
  spec: {{replicas: 1, template: {{spec: {{containers: [{{name: main, image: "till:{tag}"}}]}}}}}}
- apiVersion: v1
  kind: Secret
  metadata: {{name: card, namespace: {name}}}
  data: {{key: c2VjcmV0}}
---
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {{name: {name}}}
spec:
  locationSelectors: [{where}]
  downsync:
  - {{apiGroup: "", resources: [namespaces], objectNames: [{name}]}}
  - {{namespaces: [{name}]}}
"""

WIDGETS = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    - {name: Color, type: string, jsonPath: ".spec.colors[0]", priority: 1}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: example.com/v1
kind: Widget
metadata: {name: one}
spec: {size: 7, colors: [red]}
"""


@pytest.fixture
def store(tree, tmp_path, request):
    """Manifests of a namespace, of its own for each test, with a placement of the same name."""
    name = f"store-{abs(hash(request.node.name)) % 10**8}"

    def write(tag="1", where="{}"):
        file = tmp_path / "store.yaml"
        file.write_text(STORE.format(name=name, tag=tag, where=where))
        return str(file)

    write.name = name
    return write


def image_at(tree, edge, name):
    done = did(tree, "get", "deploy/till", "-n", name, "-o", "json", "--at", edge)
    return json.loads(done.stdout)["spec"]["template"]["spec"]["containers"][0]["image"]


def test_a_change_is_seen_applied_awaited_and_there(tree, store):
    name = store.name
    assert did(tree, "diff", "-f", store(), code=1).stdout.startswith("diff -u -N LIVE/")
    told = did(tree, "apply", "-f", store()).stdout
    assert "deployment.apps/till created" in told
    did(tree, "wait", "--for", "healthy", name)
    assert did(tree, "diff", "-f", store()).stdout == ""
    told = did(tree, "apply", "-f", store()).stdout
    assert {line.split()[1] for line in told.splitlines()} == {"unchanged"}

    assert "+      - image: till:2" in did(tree, "diff", "-f", store("2"), code=1).stdout
    assert "deployment.apps/till configured" in did(tree, "apply", "-f", store("2")).stdout
    met = did(tree, "wait", "--for=condition=Synced", f"epl/{name}").stdout
    assert met == f"edgeplacement.edge.kubestellar.io/{name} condition met\n"
    assert {image_at(tree, edge, name) for edge in EDGES} == {"till:2"}
    row = did(tree, "get", "epl", name, "--no-headers").stdout.split()
    assert row[:4] == [name, "3", "2", "2"]


def test_secrets_are_shown_at_the_centre_and_redacted_from_the_edge(tree, store):
    did(tree, "apply", "-f", store())
    did(tree, "wait", "--for", "synced", store.name)
    where = ("secret", "card", "-n", store.name, "-o", "yaml")
    assert "key: c2VjcmV0" in did(tree, "get", *where).stdout
    there = did(tree, "get", *where, "--at", EDGES[0]).stdout
    assert "key: (redacted)" in there
    assert "c2VjcmV0" not in there
    told = did(tree, "describe", "secret/card", "-n", store.name, "--at", EDGES[0]).stdout
    assert "key:  (redacted)" in told


def test_a_site_keeps_its_place_when_its_inventory_is_applied_without_it(tree, store, tmp_path):
    """Else who edits a label would withdraw all that the site holds."""
    did(tree, "apply", "-f", store())
    did(tree, "wait", "--for", "synced", store.name)
    (site, *_) = json.loads(did(tree, "get", "synctargets", "-o", "json").stdout)["items"]
    bare = tmp_path / "site.yaml"
    metadata = {"name": site["metadata"]["name"], "labels": {"tested": "yes"}}
    bare.write_text(
        json.dumps({"apiVersion": site["apiVersion"], "kind": site["kind"], "metadata": metadata})
    )
    did(tree, "apply", "-f", str(bare))
    after = did(tree, "get", "synctarget", metadata["name"], "-o", "json")
    kept = json.loads(after.stdout)["metadata"]
    assert kept["annotations"] == site["metadata"]["annotations"]
    assert kept["labels"] == {**site["metadata"].get("labels", {}), "tested": "yes"}


def test_what_is_deleted_goes_from_the_edges(tree, store):
    did(tree, "apply", "-f", store())
    did(tree, "wait", "--for", "synced", store.name)
    told = did(tree, "delete", "-f", store()).stdout
    assert 'deployment.apps "till" deleted' in told
    assert (
        'deployments.apps "till" not found'
        in did(tree, "get", "deploy", "till", "-n", store.name, code=1).stderr
    )
    end = time.monotonic() + WAIT_SECONDS
    left = EDGES
    while left and time.monotonic() < end:
        shown = {e: did(tree, "get", "deploy", "-n", store.name, "--at", e).stdout for e in left}
        left = [edge for edge, text in shown.items() if text]
    assert not left


def test_without_destinations_nothing_is_synced(tree, store):
    did(tree, "apply", "-f", store(where="{matchLabels: {region: none}}"))
    until(lambda: tree.json("status", store.name)["complete"], "nothing is counted")
    done = did(tree, "wait", "--for", "synced", store.name, "--timeout", "100s", code=1)
    assert done.stdout == ""
    assert "its locationSelectors match no Location that has a SyncTarget" in done.stderr
    command = "leafcast get loc,synctargets --show-labels"
    assert command in done.stderr
    assert "region-1-site-1" in did(tree, *command.split()[1:]).stdout


def test_the_last_state_is_told_when_time_is_up(tree, store):
    did(tree, "apply", "-f", store("broken"))
    did(tree, "wait", "--for", "synced", store.name)
    done = did(tree, "wait", "--for", "healthy", store.name, "--timeout", "1s", code=1)
    assert "2 of 2 destinations synced, 0 healthy" in done.stderr
    assert f"see: leafcast status {store.name}" in done.stderr
    assert did(tree, "wait", "--for", "synced", "no-such", code=1).stderr.startswith(
        'Error from server (NotFound): edgeplacements.edge.kubestellar.io "no-such" not found'
    )


@pytest.fixture
def delivered(tree, store):
    """The name of a store that all edges hold."""
    did(tree, "apply", "-f", store())
    did(tree, "wait", store.name, "--for", "synced", "--timeout", f"{WAIT_SECONDS}s")
    return store.name


def test_formats_are_the_same_everywhere(tree, delivered):
    for words in (("status",), ("tree",), ("node", "list"), ("get", "ns")):
        table = did(tree, *words).stdout.splitlines()
        rows = did(tree, *words, "--no-headers").stdout.splitlines()
        assert 0 < len(rows) < len(table), words
        assert did(tree, *words, "-o", "wide").stdout.split()[0] == table[0].split()[0]
        assert len(did(tree, *words, "-o", "name").stdout.splitlines()) == len(rows)
        document = tree.json(*words)
        for form in ("yaml", "jsonpath={@}"):
            shown = yaml.safe_load(did(tree, *words, "-o", form).stdout)
            assert type(shown) is type(document)
            assert len(shown) == len(document)
        refused = did(tree, *words, "-o", "jsonpath={.a", code=2).stderr
        assert "its brace is not closed" in refused


def test_in_a_pipe_nothing_is_cut(tree, tmp_path, store):
    name, file = "a-name-that-is-far-longer-than-a-column-is", tmp_path / "a.yaml"
    asked = "downsync:\n  - {apiGroup: example.org, resources: [nothing-of-the-like-is-known-here]}"
    text = Path(store()).read_text().replace("name: till,", f"name: {name},")
    file.write_text(text.replace("downsync:", asked))
    did(tree, "apply", "-f", str(file))
    for words in (("status",), ("status", store.name), ("tree",), ("events",)):
        assert "…" not in did(tree, *words).stdout


def test_options_may_stand_before_the_command(tree, delivered):
    behind = did(tree, "get", "deploy", "-n", delivered, "-o", "name").stdout
    assert behind == "deployment.apps/till\n"
    for front in (["-n", delivered], [f"-n{delivered}"], [f"--namespace={delivered}"]):
        assert did(tree, *front, "get", "deploy", "-o", "name").stdout == behind
    assert "takes no -n" in did(tree, "-n", delivered, "status", code=2).stderr


def test_what_is_delivered_is_told_of_all_edges_and_of_how_many(tree, delivered):
    till = ("get", "deploy", "till", "-n", delivered, "--all-edges")
    done = did(tree, *till, "-o", "wide")
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["EDGE", *EDGES]
    assert all("till:1" in line for line in lines[1:])
    assert "2 of 2 edges answered" in done.stderr
    path = "{.metadata.annotations.leafcast\\.io/edge} {.spec.replicas}"
    told = did(tree, *till, "-o", f"jsonpath={path}").stdout
    assert told.splitlines() == [f"{edge} 1" for edge in EDGES]
    assert "No resources found" in did(tree, *till[:2], "nope", *till[3:]).stderr


def test_the_columns_of_a_definition_are_shown_here_and_at_an_edge(tree, delivered, tmp_path):
    file = tmp_path / "widgets.yaml"
    file.write_text(WIDGETS)
    did(tree, "apply", "-n", delivered, "-f", str(file))
    columns = {"": ["NAME", "SIZE"], "wide": ["NAME", "SIZE", "COLOR"]}
    widgets = ("get", "widgets", "-n", delivered)
    for form, titles in columns.items():
        here = did(tree, *widgets, *(["-o", form] if form else [])).stdout.splitlines()
        assert [line.split() for line in here] == [titles, ["one", "7", "red"][: len(titles)]]
    until(lambda: tree.run(*widgets, "--at", EDGES[0]).stdout, "it does not arrive")
    assert did(tree, *widgets, "--at", EDGES[0]).stdout.split() == ["NAME", "SIZE", "one", "7"]


OBJECT = re.compile(r"\S+/\S+/\S+: ")
"""An object as `status` names it; other tests may have left one here that is not well."""
HEAVY = ("aiohttp", "kubernetes", "nats.", "pydantic", "relay.ports", "rich", "yaml", "schemas.api")


@pytest.mark.parametrize(
    ("words", "more"),
    [
        (("status",), ("msgspec", "schemas.records.records", "schemas.objects.objects")),
        (("tree",), ("msgspec", "schemas.records.records", "schemas.objects.objects")),
        (("get", "ns"), ()),
        (("get", "deploy,svc,epl", "-A", "-o", "json"), ()),
    ],
)
def test_a_command_that_asks_loads_no_library_that_it_does_not_use(tree, store, words, more):
    done = tree.run(*words, PYTHONPROFILEIMPORTTIME="1")
    told = done.stderr
    assert done.returncode == 0, told
    loaded = {line.rpartition("|")[2].strip() for line in told.splitlines()}
    assert "leafcast.ask.session" in loaded
    if words == ("status",) and OBJECT.search(done.stdout):
        more = ()  # Who tells of an object that is not well reads of what kind it is.
    assert {name for name in loaded if name.startswith((*HEAVY, *more))} == set()


def test_a_watch_shows_each_change_until_it_is_interrupted(tree, store):
    did(tree, "apply", "-f", store())
    watching = tree.start("get", "deploy", "-n", store.name, "-w", "-o", "name")
    try:
        assert watching.stdout.readline() == "deployment.apps/till\n"
        did(tree, "apply", "-f", store("2"))
        assert watching.stdout.readline() == "deployment.apps/till\n"
        watching.send_signal(signal.SIGINT)
        _, told = watching.communicate(timeout=WAIT_SECONDS)
    finally:
        watching.kill()
        watching.wait()
    assert (watching.returncode, told) == (130, "")


def test_a_batch_with_a_fault_changes_nothing(tree, store, tmp_path):
    big = tmp_path / "big.yaml"
    form = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "big"}}
    big.write_text(json.dumps({**form, "data": {"x": "y" * 1_600_000}}))
    done = did(tree, "apply", "-f", store(), "-f", str(big), code=1)
    assert "configmap/big: 16" in done.stderr
    assert "at most 1572864 fit: split it, or keep less in it" in done.stderr
    assert done.stderr.endswith("nothing was applied; correct this, and apply again\n")
    assert did(tree, "get", "deploy", "-n", store.name).stderr == (
        f"No resources found in {store.name} namespace.\n"
    )
    assert did(tree, "diff", "-f", str(big), code=2).stdout == ""


def test_manifests_come_from_standard_input_too(tree, store):
    file = store()
    with Path(file).open(encoding="utf-8") as text:
        done = subprocess.run(
            [sys.executable, "-m", "leafcast", "apply", "-f", "-", "--dry-run=client"],
            stdin=text,
            env=tree.environment,
            capture_output=True,
            text=True,
            check=True,
        )
    assert done.stdout.splitlines()[0] == f"namespace/{store.name} created (dry run)"
    assert done.stderr == "", "who can read a Secret is said of a tree that is not sealed"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("get", "frobs"), 1, "doesn't have a resource type"),
        (("get",), 2, "name a kind"),
        (("apply",), 2, "leafcast apply --help"),
        (("delete", "cm"), 2, "no name was specified"),
        (("wait", "x"), 2, "--for"),
        (("get", "deploy", "--at", "/region-1/none"), 1, "there is no node /region-1/none"),
        (("get", "deploy", "--at", "/region-1"), 1, "has no cluster of its own"),
        (("get", "deploy", "--at", "site"), 2, "no node has the path or the SyncTarget"),
    ],
)
def test_every_error_says_what_to_do(tree, arguments, code, said):
    done = did(tree, *arguments, code=code)
    assert said in done.stderr
    assert done.stderr.startswith(("error: ", "Error from server ("))
    assert done.stderr.count("\n") == 1


def test_without_a_tree_every_command_says_how_to_start_one(tmp_path, store):
    nowhere = Program(tmp_path / "nowhere")
    for arguments, code in (
        (("get", "ns"), 1),
        (("apply", "-f", store()), 1),
        (("diff", "-f", store()), 2),
        (("wait", "shop", "--for", "synced"), 1),
    ):
        done = nowhere.run(*arguments)
        assert done.returncode == code
        assert "leafcast up" in done.stderr
