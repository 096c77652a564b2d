"""The pages about API servers are walked on real ones: what they show is what happens."""

import os

import pytest
import yaml

from tests.e2e.test_documents import Shell, walk_all

pytestmark = [
    *(pytest.mark.kube, pytest.mark.nats, pytest.mark.slow, pytest.mark.long),
    pytest.mark.timeout(300),
]

PAGES = ("docs/upsync.md", "docs/kubernetes.md", "docs/gitops.md")


def merged(**servers):
    """One kubeconfig with a context for each of these servers; the last is the present one."""
    whole = {"apiVersion": "v1", "kind": "Config", "clusters": [], "users": [], "contexts": []}
    for name, server in servers.items():
        said = yaml.safe_load(server.kubeconfig.read_text())
        whole["clusters"].append({"name": name, "cluster": said["clusters"][0]["cluster"]})
        whole["users"].append({"name": name, "user": said["users"][0]["user"]})
        whole["contexts"].append({"name": name, "context": {"cluster": name, "user": name}})
        whole["current-context"] = name
    return whole


def test_commands_about_api_servers_print_what_is_shown(kube_bed, new_server, tmp_path):
    binaries = kube_bed.binaries
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "kubectl").symlink_to(binaries["kubectl"])
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    assets = str(binaries["kube-apiserver"].parent)
    shell = Shell(tmp_path, PATH=path, LEAFCAST_KUBE_ASSETS=assets)
    try:
        config = shell.home / ".kube" / "config"
        config.parent.mkdir()
        store = new_server(workloads=False)
        config.write_text(yaml.safe_dump(merged(hub=new_server(), store=store, here=store)))
        walk_all(PAGES, shell)
    finally:
        shell.end()
