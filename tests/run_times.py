"""How long files take, and when processes are done: shown at the end with `--durations`.

`tests/sharing.py` names the files that take longest: these figures say whether it is right.
"""

import time
from collections import Counter
from collections.abc import Mapping

import pytest

from tests import sharing

FILES_SHOWN = 40


class RunTimes:
    """The seconds of each file, by what processes reported, and when each process ended a test."""

    def __init__(self) -> None:
        self.files = Counter[str]()
        self._began = time.monotonic()
        self._last: dict[str, tuple[float, str]] = {}

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        file = sharing.file_of(report.nodeid)
        self.files[file] += report.duration
        process = getattr(report, "worker_id", "")
        if process:
            self._last[process] = (time.monotonic() - self._began, file)

    @pytest.hookimpl
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("seconds by file")
        for file, seconds in longest(self.files):
            terminalreporter.write_line(f"{seconds:7.1f}s {file}")
        for process, (seconds, file) in sorted(self._last.items()):
            terminalreporter.write_line(f"{process} ended its last test, of {file}, {seconds:.0f}s")


def longest(files: Mapping[str, float]) -> list[tuple[str, float]]:
    """The files that took longest, the longest first."""
    return sorted(files.items(), key=lambda it: (-it[1], it[0]))[:FILES_SHOWN]


def watch(config: pytest.Config) -> None:
    """Note it in the process that gathers what all others report."""
    if config.getoption("durations") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(RunTimes())
