"""A syncer on a real API server; a module with a cluster of its own says `server` anew.

And a tree of real API servers for the files that the tests' processes are told to run together.
"""

import uuid

import pytest

from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.kubernetes.kubeconfig import Kubeconfig
from relay.adapters.kubernetes.space import KubernetesSpace
from tests.contract.syncing import TREE, Bench
from tests.kube.bed import need_binaries
from tests.kube.live_tree import SHAPE, LiveTree


@pytest.fixture
def server(module_server):
    return module_server


@pytest.fixture
def place(server):
    """A namespace of this test alone, made by another."""
    name = f"t-{uuid.uuid4().hex[:8]}"
    server.kubectl("create", "namespace", name)
    return name


@pytest.fixture
def bench_tree():
    """Of which tree the syncer is."""
    return TREE


@pytest.fixture
async def bench(server, bench_tree):
    space = KubernetesSpace(Kubeconfig(str(server.kubeconfig)), SystemClock(), SystemDice())
    yield Bench(space, SystemClock(), SystemDice(), tree=bench_tree)
    # Watches that were cut off end their encryption meanwhile.
    await space.kinds()
    await space.close()


@pytest.fixture(scope="session")
def live_tree(tmp_path_factory):
    """One tree for all tests that break nothing of it: each keeps to names of its own."""
    need_binaries()
    tree = LiveTree(tmp_path_factory.mktemp("live") / "tree")
    try:
        tree.up("--kube=all", *SHAPE)
        yield tree
    finally:
        tree.run("down")
