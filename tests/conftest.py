"""For all tests: no deadline for examples of Hypothesis, and who runs beside whom with `-n 3`.

Who runs what `tests/sharing.py` says. (`--dist loadgroup` would be the same by marks, but xdist 3.8
puts no test in its group with pytest 9.2, and says nothing.)
"""

import gc
import os
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from subprocess import Popen

import pytest
from hypothesis import HealthCheck, settings

from tests import left_behind, run_times, sharing

# A slow machine fails no test.
settings.register_profile(
    "unhurried", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
# `make check` tries fewer examples, also where a test says a number (`tests/property/examples.py`).
settings.register_profile("brief", settings.get_profile("unhurried"), max_examples=30)
# `make coverage` asks which lines are met: few examples meet them, and a tracer makes each slow.
settings.register_profile("few", settings.get_profile("unhurried"), max_examples=10)
settings.load_profile("unhurried")

# Asserts of their helpers say what they compared. Those of the simulation are met too often.
pytest.register_assert_rewrite(*(f"tests.{room}" for room in ("kube", "e2e", "nats", "docker")))
pytest_plugins = ["tests.kube.fixtures"]

GIVES_WAY = 10
SEARCH_AFTER_OBJECTS = 50_000
"""Whoever makes a hundred thousand values is not searched for cycles a hundred times."""
_given_way = pytest.StashKey[bool]()
_watching = pytest.StashKey[Popen[bytes] | None]()


def pytest_configure(config: pytest.Config) -> None:
    """Programs that tests start compile their modules once, not each time.

    Where nothing is to be left beside the sources that is kept with pytest's own cache.
    """
    run_times.watch(config)
    cache = getattr(config, "cache", None)
    if cache is not None and os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
        os.environ.setdefault("PYTHONPYCACHEPREFIX", str(cache.mkdir("bytecode")))


def pytest_sessionstart(session: pytest.Session) -> None:
    session.config.stash[_watching] = left_behind.watch()


def pytest_unconfigure(config: pytest.Config) -> None:
    if watching := config.stash.get(_watching, None):
        left_behind.end(watching)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is loaded stays until the end: nothing searches its million objects for cycles."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(SEARCH_AFTER_OBJECTS)
        gc.enable()


@pytest.fixture(autouse=True)
def _same_umask() -> Iterator[None]:
    """A command of a node's that ran in this process has changed it for all that follow."""
    before = os.umask(0o022)
    os.umask(before)
    yield
    os.umask(before)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of several processes each takes the first file that nobody took."""
    if not hasattr(config, "workerinput"):
        return
    items.sort(key=lambda item: sharing.turn(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """However many processes there are, all but two share the files that are no trees'."""
    from xdist.scheduler import LoadScopeScheduling

    class SideBySide(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return sharing.unit_of(nodeid)

        def _assign_work_unit(self, node) -> None:
            is_computed = any(
                sharing.group_of(unit) == sharing.COMPUTED and not all(tests.values())
                for other, units in self.assigned_work.items()
                for unit, tests in units.items()
                if other is not node
            )
            unit = sharing.next_unit(self.workqueue, is_computed=is_computed)
            self.workqueue.move_to_end(unit, last=False)
            super()._assign_work_unit(node)

    config.option.loadscopereorder = False
    return SideBySide(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """A process that runs no trees, or has run all of its own, gives way from then on."""
    config = item.config
    if getattr(config, "workerinput", {}).get("workercount", 1) < 2:
        return
    group = sharing.group_of(item.nodeid)
    if group not in sharing.WHOLE_TREES and not config.stash.get(_given_way, False):
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
