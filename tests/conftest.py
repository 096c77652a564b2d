"""For all tests: no deadline for examples of Hypothesis, and who runs beside whom with `-n 2`.

Then one process runs the tests of whole trees of processes, one after the other: what these wait
for comes late on a machine that is busy. The other runs all others meanwhile, and gives way to it
wherever both want a processor. Tests of API servers, of which each starts its own, are run by the
one that is done first. (`--dist loadgroup` would be the same by marks, but xdist 3.8 puts
no test in its group with pytest 9.2, and says nothing.)
"""

import os
from subprocess import Popen

import pytest
from hypothesis import HealthCheck, settings

from tests import left_behind

# A slow machine fails no test.
settings.register_profile(
    "unhurried", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("unhurried")

pytest_plugins = ["tests.kube.fixtures"]

TREES, KUBE, OTHERS = "trees", "kube", "others"
OF_TREES = ("tests/docker/", "tests/e2e/", "tests/nats/test_chaos_")
OF_KUBE = "tests/kube/"
GIVES_WAY = 10
_given_way = pytest.StashKey[bool]()
_watching = pytest.StashKey[Popen[bytes] | None]()


def pytest_configure(config: pytest.Config) -> None:
    """Programs that tests start compile their modules once, not each time.

    Where nothing is to be left beside the sources that is kept with pytest's own cache.
    """
    cache = getattr(config, "cache", None)
    if cache is not None and os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
        os.environ.setdefault("PYTHONPYCACHEPREFIX", str(cache.mkdir("bytecode")))


def pytest_sessionstart(session: pytest.Session) -> None:
    session.config.stash[_watching] = left_behind.watch()


def pytest_unconfigure(config: pytest.Config) -> None:
    if watching := config.stash.get(_watching, None):
        left_behind.end(watching)


def group_of(nodeid: str) -> str:
    if nodeid.startswith(OF_KUBE):
        return KUBE
    return TREES if nodeid.startswith(OF_TREES) else OTHERS


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """However many processes there are, two of them have something to do."""
    from xdist.scheduler import LoadScopeScheduling

    class SideBySide(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    return SideBySide(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Of several processes the one that runs no trees gives way, once and for all."""
    config = item.config
    if getattr(config, "workerinput", {}).get("workercount", 1) < 2:
        return
    if group_of(item.nodeid) == OTHERS and not config.stash.get(_given_way, False):
        config.stash[_given_way] = True
        os.nice(GIVES_WAY)
