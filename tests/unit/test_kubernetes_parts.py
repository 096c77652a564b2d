"""What a space on an API server decides without one: paths, refusals, kubeconfigs, discovery."""

import base64
import json
import subprocess
import sys

import pytest

from relay.adapters.kubernetes import discovery as documents
from relay.adapters.kubernetes import paths
from relay.adapters.kubernetes.credentials import exec_credentials
from relay.adapters.kubernetes.kubeconfig import (
    InCluster,
    InvalidKubeconfig,
    Kubeconfig,
    read_access,
    signature,
)
from relay.adapters.kubernetes.refusals import refusal, without_secrets
from relay.space_errors import Conflict, FieldConflict, SpaceError
from relay.space_port import Kind

MAPS = Kind("", "v1", "configmaps", "ConfigMap", namespaced=True)
ROLES = Kind("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)


def test_paths_are_the_api_servers():
    assert paths.collection_path(MAPS) == "/api/v1/configmaps"
    assert paths.object_path(MAPS, "shop", "a", "status") == (
        "/api/v1/namespaces/shop/configmaps/a/status"
    )
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    assert paths.object_path(ROLES, "ignored", "system:node") == f"{roles}/system:node"
    assert paths.object_path(ROLES, "", "ü/../x?") == f"{roles}/%C3%BC%2F..%2Fx%3F"


def test_queries_are_quoted_and_what_is_empty_is_left_out():
    asked = paths.with_query("/x", [("labelSelector", "a in (b,c),!d"), ("continue", "")])
    assert asked == "/x?labelSelector=a%20in%20%28b%2Cc%29%2C%21d"
    assert paths.with_query("/x", []) == "/x"


@pytest.mark.parametrize(
    ("code", "status", "reason", "message"),
    [
        (404, {"reason": "NotFound", "message": 'pods "x" not found'}, "NotFound", "not found"),
        (403, {"message": "no"}, "Forbidden", "no"),
        (422, {"reason": "Invalid", "message": "spec: Required"}, "Invalid", "Required"),
        (410, {"reason": "Gone", "message": "old"}, "Expired", "old"),
        (503, None, "ServiceUnavailable", "503"),
        (500, ["no status"], "InternalError", "500"),
        (500, {"message": "failed to create typed patch object (x): y"}, "Invalid", "typed"),
        (500, {"message": "etcdserver: request is too large"}, "RequestEntityTooLarge", "large"),
        (418, {}, "InternalError", "418"),
    ],
)
def test_a_refusal_has_the_servers_reason_and_words(code, status, reason, message):
    error = refusal(code, status)
    assert (type(error), error.reason) == (SpaceError, reason)
    assert message in error.message


@pytest.mark.parametrize(
    "value",
    [
        json.dumps({"metadata": {"labels": {"a": 'quoted ": "'}}, "spec": {"x": "y" * 5000}}),
        'core.PodTemplateSpec{ObjectMeta:v1.ObjectMeta{Note:"a: b"}, Spec:(*core.PodSpec)(0xc00)}',
        json.dumps("a long text: " * 20),
    ],
)
def test_of_a_value_that_is_quoted_whole_the_reason_is_left(value):
    head = 'Job.batch "count" is invalid: [spec.template: Invalid value: '
    said = f"{head}{value}: field is immutable, spec.parallelism: Invalid value: -1: negative]"
    assert refusal(422, {"message": said}).message == (
        f"{head}…: field is immutable, spec.parallelism: Invalid value: -1: negative]"
    )


@pytest.mark.parametrize("value", ['[]string{"10.0.0.5"}', "none that ends", '"' + "\\" * 9000])
def test_a_value_that_is_short_or_has_no_end_is_left_as_it_is(value):
    said = f"spec.clusterIPs[0]: Invalid value: {value}"
    assert refusal(422, {"message": said}).message == said[:4096]
    assert "once set" in refusal(422, {"message": f"{said[:60]}: may not change once set"}).message


@pytest.mark.parametrize(
    "shown",
    [
        "@@ -1,6 +1,6 @@\n {\n-  1\n }\n",
        "  core.PersistentVolumeClaimSpec{\n-   AccessModes: {},\n  }\n",
    ],
)
def test_a_refusal_is_one_line_without_the_difference_that_it_shows(shown):
    said = "spec: Forbidden: spec is immutable after creation except resources.requests"
    assert refusal(422, {"message": f"{said}\n{shown}"}).message == said
    webhook = 'admission webhook "a" denied the request:\n\nlabels:\n  check: no team'
    assert refusal(403, {"message": webhook}).message == (
        'admission webhook "a" denied the request: labels: check: no team'
    )


def test_a_conflict_of_managers_names_them_by_field():
    cause = {
        "reason": "FieldManagerConflict",
        "message": 'conflict with "kubectl-edit" using apps/v1 at 2026-01-01T00:00:00Z',
        "field": ".spec.replicas",
    }
    form = {"reason": "Conflict", "message": "Apply failed", "details": {"causes": [cause]}}
    error = refusal(409, form)
    assert isinstance(error, FieldConflict)
    assert error.managers == {".spec.replicas": "kubectl-edit"}
    plain = refusal(409, {"reason": "Conflict", "message": "modified"})
    assert type(plain) is Conflict


def test_what_a_secret_holds_is_taken_out_as_written_and_as_decoded():
    password = base64.b64encode(b"hunter22").decode()
    secret = {"kind": "Secret", "data": {"p": password}, "stringData": {"q": "swordfish"}}
    said = f"bad: {password}, hunter22, swordfish, {base64.b64encode(b'swordfish').decode()}"
    error = without_secrets(Conflict("Conflict", said), secret)
    assert isinstance(error, Conflict)
    assert error.message == "bad: <redacted>, <redacted>, <redacted>, <redacted>"
    same = SpaceError("Invalid", said)
    assert without_secrets(same, {**secret, "kind": "ConfigMap"}) is same


def test_discovery_of_today_gives_each_kind_by_its_preferred_version():
    def item(resource, kind, *verbs, scope="Namespaced", **more):
        said = {"resource": resource, "responseKind": {"kind": kind}, "scope": scope}
        return {**said, "verbs": verbs, **more}

    old = {"version": "v1beta1", "resources": [item("carts", "Cart", "get", "list")]}
    status = [{"subresource": "status"}]
    carts = item("carts", "Cart", "get", "list", "watch", subresources=status, shortNames=["ct"])
    new = {"version": "v1", "resources": [carts, item("reviews", "Review", "create")]}
    gone = {"version": "v1", "freshness": "Stale", "resources": []}
    document = {
        "items": [
            {"metadata": {"name": "shop.io"}, "versions": [new, old]},
            {"metadata": {"name": "away.io"}, "versions": [gone]},
        ]
    }
    parts = list(documents.aggregated(document))
    assert [(part.group, part.version, part.served is None) for part in parts] == [
        ("shop.io", "v1", False),
        ("shop.io", "v1beta1", False),
        ("away.io", "v1", True),
    ]
    assert parts[0].served[0].has_status
    [kind] = documents.preferred(parts)
    assert (kind.resource, kind.version, kind.versions) == ("carts", "v1", ("v1", "v1beta1"))
    assert kind.namespaced


@pytest.mark.parametrize("document", [{}, {"items": None}, {"items": [1, {"versions": [{}]}]}])
def test_discovery_that_makes_no_sense_gives_no_kinds(document):
    assert documents.preferred(documents.aggregated(document)) == ()


@pytest.mark.parametrize(
    ("imported", "loaded"),
    [("leafcast.node.runtime", False), ("relay.adapters.kubernetes.space", True)],
)
def test_only_a_space_on_an_api_server_loads_a_client_of_one(imported, loaded):
    asked = (
        f"import sys, {imported}; print(bool(sys.modules.get('aiohttp')), "
        "'kubernetes' in sys.modules, any('client.models.' in name for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(loaded), str(loaded), "False"]


def config(folder, **changes):
    form = {
        "current-context": "hub",
        "clusters": [{"name": "c", "cluster": {"server": "https://hub:6443/clusters/root:x/"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "hub", "context": {"cluster": "c", "user": "u"}}],
    }
    file = folder / "config"
    file.write_text(json.dumps({**form, **changes}))
    return file


def test_a_context_leads_to_a_server_and_a_user(tmp_path):
    access = read_access(Kubeconfig(str(config(tmp_path))))
    assert access.server == "https://hub:6443/clusters/root:x"
    assert access.user == {"token": "t"}
    assert access.origin == f'context "hub" of {tmp_path}/config'


def test_a_file_that_is_written_anew_gives_another_signature(tmp_path):
    (tmp_path / "ca.pem").write_text("one")
    cluster = {"server": "https://hub", "certificate-authority": "ca.pem"}
    file = config(tmp_path, clusters=[{"name": "c", "cluster": cluster}])
    access = read_access(Kubeconfig(str(file)))
    assert access.files == (file, tmp_path / "ca.pem")
    before = signature(access)
    (tmp_path / "ca.pem").write_text("another")
    assert signature(access) != before


async def test_a_program_is_found_from_the_kubeconfig_and_told_of_the_cluster(tmp_path):
    (tmp_path / "bin").mkdir()
    login = tmp_path / "bin" / "login"
    login.write_text(
        f"#!{sys.executable}\nimport json, os\n"
        "print(json.dumps({'status': {'token': os.environ['KUBERNETES_EXEC_INFO']}}))\n"
    )
    login.chmod(0o755)
    (tmp_path / "ca.pem").write_text("one")
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "shop"}}
    cluster = {
        "server": "https://hub",
        "certificate-authority": "ca.pem",
        "extensions": [extension],
    }
    version = "client.authentication.k8s.io/v1"
    program = {"apiVersion": version, "command": "bin/login", "provideClusterInfo": True}
    file = config(
        tmp_path,
        clusters=[{"name": "c", "cluster": cluster}],
        users=[{"name": "u", "user": {"exec": program}}],
    )
    given = await exec_credentials(read_access(Kubeconfig(str(file))))
    assert json.loads(given.token)["spec"]["cluster"] == {
        "server": "https://hub",
        "certificate-authority-data": base64.b64encode(b"one").decode(),
        "config": {"audience": "shop"},
    }


def test_several_files_are_merged_and_the_first_that_says_something_counts(tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    one = config(tmp_path / "one", users=[], **{"current-context": ""})
    two = config(tmp_path / "two", clusters=[], users=[{"name": "u", "user": {"token": "2"}}])
    environment = {"KUBECONFIG": f"{one}:{two}:/nowhere"}
    access = read_access(Kubeconfig(), environment)
    assert (access.server.startswith("https://hub"), access.user["token"]) == (True, "2")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"current-context": ""}, "no current-context is set: name a context"),
        ({"current-context": "x"}, 'context "x" does not exist in .*config: it has hub'),
        ({"clusters": []}, 'cluster "c" does not exist: clusters has none'),
        ({"users": [{"name": "v", "user": {}}]}, 'user "u" does not exist: users has v'),
        ({"clusters": [{"name": "c", "cluster": {}}]}, "names no server: write server: https"),
        (
            {"clusters": [{"name": "c", "cluster": {"server": "hub:6443"}}]},
            "server: hub:6443: not an address",
        ),
        (
            {"users": [{"name": "u", "user": {"tokenFile": "no/token"}}]},
            "tokenFile: there is no file .*no/token: correct its path",
        ),
    ],
)
def test_a_kubeconfig_that_leads_nowhere_is_refused_by_file_context_and_field(
    tmp_path, changes, said
):
    with pytest.raises(InvalidKubeconfig, match=said) as refused:
        read_access(Kubeconfig(str(config(tmp_path, **changes))))
    assert str(tmp_path / "config") in refused.value.message


@pytest.mark.parametrize(
    ("text", "said"),
    [("a: [", "config:2:1"), ("- a", "not a kubeconfig"), ("", "not a kubeconfig")],
)
def test_what_is_no_kubeconfig_is_refused_with_its_place(tmp_path, text, said):
    (tmp_path / "config").write_text(text)
    with pytest.raises(InvalidKubeconfig, match=said):
        read_access(Kubeconfig(str(tmp_path / "config")))


def test_a_kubeconfig_that_is_not_there_is_said_with_where_it_was_looked_for(tmp_path):
    with pytest.raises(InvalidKubeconfig, match=f"there is no kubeconfig {tmp_path}/.kube/config"):
        read_access(Kubeconfig(), {"HOME": str(tmp_path)})


def test_outside_a_pod_there_is_no_account_of_a_pod(tmp_path):
    with pytest.raises(InvalidKubeconfig, match="KUBERNETES_SERVICE_HOST is not set"):
        read_access(InCluster(tmp_path), {})
    inside = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    with pytest.raises(InvalidKubeconfig, match="automountServiceAccountToken"):
        read_access(InCluster(tmp_path), inside)
    for name in ("token", "ca.crt"):
        (tmp_path / name).write_text("x")
    assert read_access(InCluster(tmp_path), inside).server == "https://[fd00::1]:443"
