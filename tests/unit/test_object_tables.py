"""Tables of objects have the columns that kubectl shows, and stay under each other."""

import pytest

from leafcast.ask.resource_names import ResourceKinds
from leafcast.show.description import described
from leafcast.show.object_output import ObjectGroup, Rows, TableStyle, document, table_lines
from schemas.objects.manifest_files import load_manifests
from schemas.values.groups import GROUP

NOW_MS = 100_000
OBJECTS = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {app: web}}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template: {spec: {containers: [{name: main, image: "web:1"}, {name: log, image: "log:2"}]}}
status: {readyReplicas: 2, updatedReplicas: 3, availableReplicas: 2}
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {containers: [{name: a}, {name: b}]}
status:
  phase: Running
  containerStatuses:
  - {name: a, ready: true, restartCount: 2}
  - {name: b, ready: false, restartCount: 1, state: {waiting: {reason: CrashLoopBackOff}}}
---
apiVersion: v1
kind: Service
metadata: {name: s}
spec:
  type: LoadBalancer
  clusterIP: 10.0.0.1
  ports: [{port: 80}, {port: 53, nodePort: 30053, protocol: UDP}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
data: {a: "1", b: "2"}
binaryData: {x: eA==}
---
{apiVersion: v1, kind: Namespace, metadata: {name: home}}
---
{apiVersion: v1, kind: Secret, metadata: {name: k}, data: {a: YQ==}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: j}
spec: {completions: 3}
status: {succeeded: 1, startTime: "1970-01-01T00:01:00Z"}
---
apiVersion: edge.kubestellar.io/v2alpha1
kind: SyncTarget
metadata: {name: t, annotations: {leafcast.io/path: /emea/store-1}}
---
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {name: e}
spec: {locationSelectors: [{matchLabels: {region: emea}}, {}]}
status: {selectedObjects: 12, destinations: 6, synced: 4, healthy: 3, complete: false, failing: 2,
  held: [{reason: RolloutPaused}, {reason: Pinned}],
  conditions: [{type: Valid, status: "True"}, {type: Synced, status: "False", reason: Failing},
    {type: Ready, status: "False", reason: Failing}, {type: Stalled, status: "True"}]}
---
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {name: fresh}
---
{apiVersion: farm.example/v1, kind: Ox, metadata: {name: bill, namespace: meadow}}
"""


def held():
    found = {}
    for loaded in load_manifests(OBJECTS, "test"):
        obj = dict(loaded.object)
        obj["metadata"] = {**obj["metadata"], "creationTimestamp": "1970-01-01T00:00:40Z"}
        found[obj["metadata"]["name"]] = obj
    return found


def table(name, **style):
    obj = held()[name]
    kind = ResourceKinds([obj]).of(obj)
    return list(table_lines([ObjectGroup(kind, [obj])], TableStyle(**style), NOW_MS))


@pytest.mark.parametrize(
    ("name", "header", "row"),
    [
        ("web", "NAME READY UP-TO-DATE AVAILABLE AGE", "web 2/3 3 2 60s"),
        ("p", "NAME READY STATUS RESTARTS AGE", "p 1/2 CrashLoopBackOff 3 60s"),
        (
            "s",
            "NAME TYPE CLUSTER-IP EXTERNAL-IP PORT(S) AGE",
            "s LoadBalancer 10.0.0.1 <pending> 80/TCP,53:30053/UDP 60s",
        ),
        ("c", "NAME DATA AGE", "c 3 60s"),
        ("home", "NAME STATUS AGE", "home Active 60s"),
        ("k", "NAME TYPE DATA AGE", "k Opaque 1 60s"),
        ("j", "NAME STATUS COMPLETIONS DURATION AGE", "j Running 1/3 40s 60s"),
        ("t", "NAME PATH AGE", "t /emea/store-1 60s"),
        (
            "e",
            "NAME OBJECTS DESTINATIONS SYNCED HEALTHY READY STATUS HOLD AGE",
            "e 12 6 4 3 False Failing RolloutPaused,Pinned 60s",
        ),
        (
            "fresh",
            "NAME OBJECTS DESTINATIONS SYNCED HEALTHY READY STATUS HOLD AGE",
            "fresh <none> <none> <none> <none> <none> <none> <none> 60s",
        ),
        ("bill", "NAME AGE", "bill 60s"),
    ],
)
def test_each_kind_has_the_columns_of_kubectl(name, header, row):
    [first, second] = table(name)
    assert (first.split(), second.split()) == (header.split(), row.split())


def test_wide_tables_have_more_columns_after_the_age():
    [header, row] = table("web", wide=True)
    assert header.split()[-4:] == ["AGE", "CONTAINERS", "IMAGES", "SELECTOR"]
    assert row.split()[-3:] == ["main,log", "web:1,log:2", "app=web"]
    [header, row] = table("e", wide=True)
    assert row.endswith("region=emea | *")


def test_namespaces_and_labels_are_columns_when_asked_for():
    [header, row] = table("web", namespaces=True, labels=True)
    assert header.split()[0] == "NAMESPACE"
    assert (row.split()[0], row.split()[-1]) == ("shop", "app=web")
    [header, _] = table("home", namespaces=True)
    assert header.split()[0] == "NAME"


def test_several_kinds_are_told_apart_by_their_names():
    objects = held()
    kinds = ResourceKinds(objects.values())
    groups = [ObjectGroup(kinds.of(objects[name]), [objects[name]]) for name in ("web", "c")]
    lines = list(table_lines(groups, TableStyle(headers=False), NOW_MS))
    assert [line.split()[:1] for line in lines] == [["deployment.apps/web"], [], ["configmap/c"]]


def test_what_comes_later_keeps_the_columns_and_repeats_no_header():
    obj = held()["web"]
    rows = Rows(ResourceKinds().resolve("deploy"), TableStyle())
    first = rows.lines([obj], NOW_MS)
    short = {**obj, "metadata": {**obj["metadata"], "name": "w"}}
    [later] = rows.lines([short], NOW_MS)
    assert later.index("2/3") == first[1].index("2/3")


def test_nothing_at_all_breaks_no_table():
    for word in [
        "po",
        "svc",
        "deploy",
        "ds",
        "sts",
        "job",
        "cj",
        "pvc",
        "ing",
        "hpa",
        "pdb",
        "epl",
    ]:
        kind = ResourceKinds().resolve(word)
        bare = {"apiVersion": "v1", "kind": kind.kind, "metadata": {"name": "bare"}}
        lines = list(table_lines([ObjectGroup(kind, [bare])], TableStyle(wide=True), NOW_MS))
        assert lines[1].startswith("bare")


def test_one_object_is_itself_and_several_are_a_list():
    obj = held()["home"]
    assert document([obj], "yaml", single=True).startswith("apiVersion: v1\nkind: Namespace\n")
    listed = document([obj], "yaml", single=False)
    assert "kind: List\n" in listed
    assert [one.object for one in load_manifests(listed, "listed")] == [obj]
    assert document([], "json", single=False).startswith("{")


def test_a_description_never_shows_what_a_secret_holds():
    text = described(held()["k"])
    assert "a:  1 bytes" in text
    assert "YQ" not in text
    redacted = {**held()["k"], "data": {"a": "(redacted)"}}
    assert "a:  (redacted)" in described(redacted)


def test_a_description_of_a_placement_says_what_is_exact():
    objects = held()
    text = described(objects["e"])
    assert "Location Selectors:  region=emea | *" in text
    assert "at least 4 of 6" in text
    assert "not seen by the centre's controllers yet" in described(objects["fresh"])
    assert objects["e"]["apiVersion"].startswith(GROUP)


def test_a_description_of_what_was_collected_is_a_table_for_each_collector():
    values = [
        ("String", "string", "region-1"),
        ("Number", "float", "2.5"),
        ("Null", "", None),
        ("Array", "array", [1, "a"]),
        ("String", "string", "null"),
    ]
    columns = [{"type": type_, **({field: it} if field else {})} for type_, field, it in values]
    nothing = [{"type": "Null"}] * 5
    trouble = {"wec": {"clusterId": "s1"}, "columnName": "", "error": "no such key: a"}
    said = {
        "name": "where",
        "columnNames": ["who", "n", "none", "list", "text"],
        "rows": [{"columns": columns}],
        "rest": {"columns": nothing, "count": "7"},
        "rowErrors": [{**trouble, "count": "3"}, {**trouble, "columnName": "n", "count": "1"}],
        "aggregationErrors": [{"columnName": "n", "error": "no values to average"}],
        "notes": [{"columnName": "n", "note": "off by 1%"}],
        "truncated": True,
    }
    labels = {f"status.kubestellar.io/{k}": v for k, v in {"resource": "pods", "name": "p"}.items()}
    metadata = {"name": "u.v", "labels": labels, "annotations": {"leafcast.io/complete": "false"}}
    form = {"apiVersion": "control.kubestellar.io/v1alpha1", "kind": "CombinedStatus"}
    results = [{"name": "empty", "columnNames": ["a"], "rows": []}, said]
    text = described({**form, "metadata": metadata, "results": results})
    assert "Object:       pods/p\n" in text
    assert "Complete:     false\n" in text
    assert text.endswith("""
Collector empty
  <none> (no row)

Collector where
  who        n      none   list       text
  region-1   2.5    null   [1, "a"]   "null"
  null       null   null   null       null     (of 7 beyond the limit)
  Row error at s1, filter: no such key: a (3 rows)
  Row error at s1, column n: no such key: a
  Error in column n: no values to average
  Note on column n: off by 1%
  Truncated: not all found room on its way
""")
    for odd in ([], {}, "x", [1], [{"rows": [{}, 1], "columnNames": 4, "notes": [3]}]):
        assert described({**form, "metadata": metadata, "results": odd})


def test_descriptions_tell_fields_in_words():
    text = described(held()["web"])
    assert "    Match Labels:\n      app:  web\n" in text.replace("App:", "app:")
    assert "Ready Replicas:      2" in text


def test_what_nobody_reports_on_does_not_pretend_to_run():
    still = {
        "web": ("apps/v1", "Deployment", {"replicas": 2}, "-/2 - -"),
        "db": ("apps/v1", "StatefulSet", {}, "-/1"),
        "agent": ("apps/v1", "DaemonSet", {}, "- - - - - <none>"),
        "job": ("batch/v1", "Job", {"completions": 3}, "- -/3"),
        "pod": ("v1", "Pod", {"containers": [{"name": "a"}]}, "-/1 - -"),
    }
    for name, (version, kind, spec, cells) in still.items():
        obj = {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}
        spoken = ResourceKinds([obj]).of(obj)
        [_, row] = table_lines([ObjectGroup(spoken, [obj])], TableStyle(), NOW_MS)
        assert row.split()[1 : 1 + len(cells.split())] == cells.split()
