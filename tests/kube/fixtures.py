"""Fixtures of real API servers, for tests in any folder; mark those tests `kube`."""

import json
from contextlib import ExitStack

import pytest

from leafcast.local.kube_servers.binaries import CONTROLLER_MANAGER
from leafcast.local.kube_servers.controllers import ClusterControllers
from schemas.crds.definitions import custom_resource_definitions
from tests.kube.bed import Bed

AUTOSCALING_SOON = ("--horizontal-pod-autoscaler-sync-period=1s",)
"""Else each look of an autoscaler comes 15 s after the one before."""


@pytest.fixture(scope="session")
def kube_bed(tmp_path_factory):
    """One etcd for all tests of this process; `with kube_bed.server()` gives an API server."""
    with Bed(tmp_path_factory.mktemp("kube")) as bed:
        yield bed


@pytest.fixture
def api_server(kube_bed):
    """A fresh, empty API server without controllers, ready after about 3 s."""
    with kube_bed.server() as server:
        yield server


@pytest.fixture(scope="session")
def live_server(kube_bed):
    """One for all tests of this process, with controllers, a scheduler and kwok.

    Deployments become Ready; each test keeps to namespaces of its own.
    """
    with pytest.MonkeyPatch.context() as patched:
        plain = ClusterControllers._options

        def hurried(self, name):
            more = AUTOSCALING_SOON if name == CONTROLLER_MANAGER else ()
            return (*plain(self, name), *more)

        patched.setattr(ClusterControllers, "_options", hurried)
        with kube_bed.server(workloads=True) as server:
            yield server


@pytest.fixture
def live_cluster(live_server):
    """The same; namespaces that a test makes end with it."""
    before = namespaces(live_server)
    yield live_server
    for name in namespaces(live_server) - before:
        live_server.kubectl("delete", name, "--timeout=60s")


def namespaces(server):
    return {*server.kubectl("get", "namespaces", "-o", "name").split()}


@pytest.fixture
def new_server(kube_bed):
    """Makes fresh servers, any number: `new_server(workloads=True)`; see Bed.server."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(kube_bed.server(**options))


@pytest.fixture(scope="session")
def shared_server(kube_bed):
    """One API server for all tests of this process that leave it as it is; our kinds are defined.

    Who kills it, starts it again or changes its users or certificates has a server of its own.
    """
    with kube_bed.server() as server:
        listed = {"apiVersion": "v1", "kind": "List", "items": [*custom_resource_definitions()]}
        server.kubectl("apply", "-f", "-", stdin=json.dumps(listed))
        server.await_definitions()
        server.mark()
        yield server


@pytest.fixture
def clean_server(shared_server):
    """The shared server, with nothing in it of other tests."""
    shared_server.reset()
    return shared_server


@pytest.fixture(scope="module")
def module_server(shared_server):
    """As `clean_server`, for all tests of a module: each keeps to a namespace of its own."""
    shared_server.reset()
    return shared_server


@pytest.fixture(scope="module")
def own_server(kube_bed):
    """As `api_server`, one for all tests of a module, which may do with it what they like."""
    with kube_bed.server() as server:
        yield server
