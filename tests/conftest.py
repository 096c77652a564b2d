"""For all tests: no deadline for examples of Hypothesis, and who runs beside whom with `-n 3`.

Then one process runs the tests of whole trees of processes, one after the other, and another those
that break such trees: what these wait for comes late on a machine that is busy. The third runs the
files of all other tests meanwhile, and gives way to them wherever they want a processor; whoever is
done takes the next file. Those of API servers, which are heavy, come last, and of these the longest
first, so that all end at about the same time. (`--dist
loadgroup` would be the same by marks, but xdist 3.8 puts no test in its group with pytest 9.2, and
says nothing.)
"""

import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
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

IN_TURN = TREES, CHAOS, OTHERS, KUBE = "trees", "chaos", "others", "kube"
OF_TREES = ("tests/docker/", "tests/e2e/", "tests/releases/")
OF_CHAOS = ("tests/nats/test_chaos_", "tests/nats/test_child_flood")
OF_KUBE = "tests/kube/"
LONGEST = ("end_to_end", "applying_faults", "kubernetes_faults", "up", "edge_faults")
"""The files of API servers that take more than two minutes."""
OF_ONE_TREE = ("tests/kube/test_customization.py", "tests/kube/test_taken_back.py")
"""They share a tree of API servers, so one process runs both."""
WHOLE_TREES = (TREES, CHAOS)
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


@pytest.fixture(autouse=True)
def _same_umask() -> Iterator[None]:
    """A command of a node's that ran in this process has changed it for all that follow."""
    before = os.umask(0o022)
    os.umask(before)
    yield
    os.umask(before)


def group_of(nodeid: str) -> str:
    if nodeid.startswith(OF_KUBE):
        return KUBE
    if nodeid.startswith(OF_CHAOS):
        return CHAOS
    return TREES if nodeid.startswith(OF_TREES) else OTHERS


def file_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of several processes each takes the first file that nobody took."""
    if not hasattr(config, "workerinput"):
        return
    tests_in = Counter(file_of(item.nodeid) for item in items)
    longest = [f"{OF_KUBE}test_{name}.py" for name in LONGEST]

    def turn(item: pytest.Item) -> tuple[int, int, int]:
        group, file = group_of(item.nodeid), file_of(item.nodeid)
        if group != KUBE:
            return IN_TURN.index(group), 0, 0
        place = longest.index(file) if file in longest else len(longest)
        return IN_TURN.index(group), place, -tests_in[file]

    items.sort(key=turn)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """However many processes there are, all but two share the files that are no trees'."""
    from xdist.scheduler import LoadScopeScheduling

    class SideBySide(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            group, file = group_of(nodeid), file_of(nodeid)
            if group in WHOLE_TREES:
                return group
            return OF_ONE_TREE[0] if file in OF_ONE_TREE else file

    config.option.loadscopereorder = False
    return SideBySide(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """A process that runs no trees, or has run all of its own, gives way from then on."""
    config = item.config
    if getattr(config, "workerinput", {}).get("workercount", 1) < 2:
        return
    if group_of(item.nodeid) not in WHOLE_TREES and not config.stash.get(_given_way, False):
        config.stash[_given_way] = True
        os.nice(GIVES_WAY)


@pytest.fixture
def other_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder that is not on the file system of `tmp_path`."""
    memory = Path("/dev/shm")  # noqa: S108 - a file system that is not that of the tests
    if not memory.is_dir() or memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("NOT RUN: /dev/shm is no file system of its own")
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)
