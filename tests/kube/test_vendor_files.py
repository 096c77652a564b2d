"""What vendors publish arrives at an edge as by a direct server-side apply, field by field."""

import json

import pytest

from tests.awaiting import until
from tests.e2e.join_tree import Site, Tree
from tests.kube.vendor_files import LARGE, LARGEST, write_vendor_files

pytestmark = [pytest.mark.kube, pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(300)]

MARKS = {"labels": "leafcast.io/tree", "annotations": "leafcast.io/object"}
"""What Leafcast writes on a copy, and nothing else."""
OWN = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink")
ABSENT = "absent"
CHOSEN, ADDRESSES = ("controller", "headless"), ("clusterIP", "clusterIPs")
"""Services whose addresses a person wrote, and where others have those of their server."""
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def shown(server, files):
    """What a server has of the objects of files, by kind, namespace and name."""
    named = [word for file in files for word in ("-f", str(file))]
    listed = json.loads(server.kubectl("get", *named, "-o", "json", "--ignore-not-found"))
    return {
        (obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]): obj
        for obj in listed["items"]
    }


def without_own(obj):
    """The object less what each server says of its own."""
    metadata = {name: value for name, value in obj["metadata"].items() if name not in OWN}
    annotations = {k: v for k, v in metadata.get("annotations", {}).items() if k != LAST_APPLIED}
    metadata["annotations"], metadata["labels"] = annotations, {**metadata.get("labels", {})}
    return {**obj, "metadata": metadata, "status": None}


def unmarked(obj):
    """A copy less its two marks, which have to be there."""
    made = without_own(obj)
    for field, key in MARKS.items():
        assert made["metadata"][field].pop(key), obj["metadata"]
    return made


def differences(direct, copy):
    """The fields in which a copy is another than what came directly, each with both values."""
    made = allocated(direct, copy)
    return list(paths(direct, made))


def paths(one, other, at=""):
    if isinstance(one, dict) and isinstance(other, dict):
        for name in sorted({*one, *other}):
            yield from paths(one.get(name, ABSENT), other.get(name, ABSENT), f"{at}.{name}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, (first, second) in enumerate(zip(one, other, strict=True)):
            yield from paths(first, second, f"{at}[{number}]")
    elif one != other:
        yield at, one, other


def allocated(direct, copy):
    """The copy, with what the other server chose where both chose by themselves."""
    kind, spec = direct["kind"], direct.get("spec", {})
    if kind == "Service" and direct["metadata"]["name"] not in CHOSEN:
        copy["spec"] |= {name: spec[name] for name in ADDRESSES if name in spec}
    if kind == "Job" and not spec.get("manualSelector"):
        copy["spec"]["selector"] = spec["selector"]
        labels, own = (each["template"]["metadata"]["labels"] for each in (copy["spec"], spec))
        assert labels.keys() == own.keys()
        labels |= {name: own[name] for name in own if name.endswith("controller-uid")}
    if kind == "Job":
        # With no label of a person a Job has those that its server hands out to its Pods.
        labels = direct["metadata"]["labels"]
        given = {name for name in labels if name.endswith(("controller-uid", "job-name"))}
        direct["metadata"]["labels"] = {name: labels[name] for name in labels.keys() - given}
    return copy


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    tree = Tree(tmp_path_factory.mktemp("vendors"))
    tree.run("up", "--regions", "1", "--sites", "1")
    yield tree
    for site in tree.sites:
        site.end()
    tree.run("down")


def test_twelve_vendors_files_are_at_an_edge_what_a_direct_apply_of_them_is(
    tree, new_server, tmp_path
):
    edge, direct = new_server(), new_server()
    files, pruned = write_vendor_files(tmp_path)
    token = tree.add("/region-1/store", "--labels", "of=stores")
    tree.sites.append(Site(token, tree.folder / "s", "--kubeconfig", str(edge.kubeconfig)))
    place = ("--place", "vendors", "--where", "of=stores", "--create-namespace")
    said = tree.run("apply", "-q", "-f", tmp_path, "-R", *place)
    assert "created" in said

    spaces = ("gitops", "certs", "ingress", "storage", "mesh", "operators", "clusters")
    for name in spaces:
        direct.kubectl("create", "namespace", name)
    apply = ("apply", "--server-side", "-f", str(tmp_path))
    direct.kubectl(*apply, check=False)  # An object comes before its kind is served.
    direct.await_definitions()
    direct.kubectl(*apply)
    direct.kubectl("apply", "-f", str(pruned))
    tree.run("wait", "vendors", "--for", "synced", "--timeout", "90s")

    wanted, copies = (shown(server, [*files, pruned]) for server in (direct, edge))
    assert len(wanted) > 70
    assert copies.keys() == wanted.keys()
    sizes = [len(json.dumps(obj["spec"])) for obj in wanted.values() if "spec" in obj]
    assert sorted(sizes)[-2] > LARGE * 0.9
    assert max(sizes) > LARGEST * 0.9
    differ = {
        key: found
        for key, obj in wanted.items()
        if (found := differences(without_own(obj), unmarked(copies[key])))
    }
    assert differ == {}

    # What came so stays: a second apply changes nothing, at the centre and at the edge.
    before = {key: obj["metadata"]["resourceVersion"] for key, obj in copies.items()}
    again = tree.run("apply", "-q", "-f", tmp_path, "-R", *place)
    assert "created" not in again
    assert "configured" not in again
    tree.run("wait", "vendors", "--for", "synced", "--timeout", "90s")
    after = shown(edge, [*files, pruned])
    assert {key: obj["metadata"]["resourceVersion"] for key, obj in after.items()} == before
    until(lambda: "nothing changes" in tree.run("plan", "-f", tmp_path, "-R", *place[:4]))
