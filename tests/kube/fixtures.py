"""Fixtures of real API servers, for tests in any folder; mark those tests `kube`."""

from contextlib import ExitStack

import pytest

from tests.kube.bed import Bed


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


@pytest.fixture
def live_cluster(kube_bed):
    """A fresh API server with controllers, a scheduler and kwok: Deployments become Ready."""
    with kube_bed.server(workloads=True) as server:
        yield server


@pytest.fixture
def new_server(kube_bed):
    """Makes fresh servers, any number: `new_server(workloads=True)`; see Bed.server."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(kube_bed.server(**options))


@pytest.fixture(scope="module")
def module_server(kube_bed):
    """As `api_server`, one for all tests of a module: each keeps to a namespace of its own."""
    with kube_bed.server() as server:
        yield server
