"""The test bed keeps what it promises: API servers are empty, strict, lasting, and come to life."""

import http.client
import ssl
from subprocess import run

import pytest

from leafcast.local.kube_servers.binaries import ALL, KUBE_VERSION
from leafcast.local.kube_servers.etcd import Etcd
from tests.awaiting import until
from tests.kube import build
from tests.kube.bed import write_contexts
from tests.processes import alive

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(180)]


def test_a_fresh_server_answers_and_is_empty(api_server):
    assert f"Server Version: {KUBE_VERSION}" in api_server.kubectl("version")
    names = api_server.kubectl("get", "namespaces", "-o", "name").split()
    assert {"namespace/default", "namespace/kube-system"} <= {*names}
    status, found = api_server.request("GET", "/apis/apps/v1/deployments")
    assert (status, found["items"]) == (200, [])


def test_two_servers_share_nothing_and_one_of_them_changes_its_locks(new_server, tmp_path):
    one, other = new_server(), new_server()
    both = write_contexts(tmp_path / "kubeconfig", one, other)
    one.kubectl("create", "namespace", "here", kubeconfig=both)
    there = one.kubectl("--context", other.name, "get", "namespaces", kubeconfig=both)
    assert "here" not in there
    uid = ("get", "namespace", "kube-system", "-o", "jsonpath={.metadata.uid}")
    assert one.kubectl(*uid) != other.kubectl(*uid)

    old = tmp_path / "old"
    old.write_text(one.kubeconfig.read_text())
    account = one.kubectl("create", "token", "a", "-n", "default", check=False)
    one.renew_token()
    said = one.kubectl("get", "pods", kubeconfig=old, check=False)[2]
    assert "Unauthorized" in said or "logged in" in said
    one.kubectl("get", "pods")
    old.write_text(one.kubeconfig.read_text())
    one.renew_certificate()
    assert "certificate" in one.kubectl("get", "pods", kubeconfig=old, check=False)[2]
    assert account == one.kubectl("create", "token", "a", "-n", "default", check=False)


def test_a_user_without_rights_is_refused_until_rbac_gives_them(api_server):
    guest = api_server.add_user("guest")
    code, _, said = api_server.kubectl("get", "pods", kubeconfig=guest, check=False)
    assert code
    assert 'User "guest" cannot list resource "pods"' in said
    api_server.kubectl("create", "role", "reader", "--verb=list", "--resource=pods")
    api_server.kubectl("create", "rolebinding", "guest", "--role=reader", "--user=guest")
    assert until(lambda: not api_server.kubectl("get", "pods", kubeconfig=guest, check=False)[0])


def test_a_server_that_starts_again_has_its_objects_and_its_address(own_server):
    server = own_server
    server.kubectl("create", "configmap", "kept", "--from-literal=a=b")
    url, kubeconfig = server.url, server.kubeconfig.read_text()
    server.kill()
    assert "refused" in server.kubectl("get", "configmaps", check=False)[2]
    server.start()
    assert (server.url, server.kubeconfig.read_text()) == (url, kubeconfig)
    assert server.kubectl("get", "configmap", "kept", "-o", "jsonpath={.data.a}") == "b"


def test_a_frozen_server_answers_nothing_until_it_goes_on(own_server):
    own_server.freeze()
    code, _, _ = own_server.kubectl("get", "pods", "--request-timeout=1s", check=False)
    assert code
    own_server.thaw()
    own_server.kubectl("get", "pods")


def test_its_certificate_holds_for_strict_clients(own_server):
    context = ssl.create_default_context(cafile=str(own_server.real.authority))
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    host, _, port = own_server.url.removeprefix("https://").partition(":")
    connection = http.client.HTTPSConnection(host, int(port), context=context, timeout=10)
    connection.request("GET", "/version")
    assert connection.getresponse().status == 200
    connection.close()


def test_nobody_but_the_owner_can_open_its_secrets(own_server):
    folder = own_server.real.folder
    assert not folder.stat().st_mode & 0o077
    assert not own_server.kubeconfig.stat().st_mode & 0o077
    etcd = own_server.bed.kube.etcd
    assert isinstance(etcd, Etcd)
    assert not etcd.folder.stat().st_mode & 0o077


def test_a_deployment_comes_to_life_and_goes_with_its_namespace(live_cluster):
    live_cluster.kubectl("create", "namespace", "shop")
    create = ("create", "deployment", "web", "--image=nginx", "--replicas=2", "-n", "shop")
    live_cluster.kubectl(*create)
    ready = ("wait", "deployment/web", "-n", "shop", "--for=jsonpath={.status.readyReplicas}=2")
    live_cluster.kubectl(*ready, "--timeout=60s")
    live_cluster.kubectl("delete", "namespace", "shop", "--timeout=60s")
    assert "NotFound" in live_cluster.kubectl("get", "namespace", "shop", check=False)[2]


def test_a_server_that_keeps_house_ends_what_is_deleted_and_runs_nothing(new_server):
    server = new_server(workloads=False)
    server.kubectl("create", "namespace", "shop")
    server.kubectl("create", "deployment", "web", "--image=nginx", "-n", "shop")
    assert until(lambda: "default" in server.kubectl("get", "serviceaccounts", "-n", "shop"))
    assert server.kubectl("get", "replicasets", "-n", "shop", "-o", "name") == ""
    claim = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: shop}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""
    server.kubectl("create", "-f", "-", stdin=claim)
    server.kubectl("delete", "-n", "shop", "pvc", "data", "--timeout=60s")
    server.kubectl("delete", "namespace", "shop", "--timeout=60s")


def test_what_ran_for_a_server_is_gone_with_it(kube_bed):
    with kube_bed.server(workloads=True) as server:
        processes = [server.real.process, *server.controllers.values()]
        assert all(alive(process.pid) for process in processes)
    assert not any(alive(process.pid) for process in processes)


def test_make_kube_finds_all_that_it_built(kube_bed):
    found = {str(kube_bed.binaries[name].parent) for name in ALL}
    done = run(
        [build.sys.executable, "-m", "tests.kube.build"], capture_output=True, text=True, check=True
    )
    assert {*done.stdout.strip().split(":")} == found
