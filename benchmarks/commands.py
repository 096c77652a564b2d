"""How long commands take as a person types them, on an embedded tree and at a hub's API server.

Beside each stands what it cannot do without, in the same run: `python -c 'import click'`, and of a
hub kubectl doing the same. The ratio is of processor time, most of which goes into imports: what
else the machine does changes it least. The request is measured where all is loaded already.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.report import Report
from leafcast.ask.session import open_session
from leafcast.local.kube_servers.binaries import KUBECTL, find_binaries

ROUNDS = 15
CLICK = (sys.executable, "-c", "import click")
LEAFCAST = (sys.executable, "-m", "leafcast")
RATIO, WAITING_SECONDS = 3.0, 1.0
SMALL = ("--regions", "1", "--sites", "2")
MANY_OBJECTS = 100
MANY = f"apply of {MANY_OBJECTS}"
_NUMBERS = count()


class Took(NamedTuple):
    """How long a program ran, and how much processor time of its own it used."""

    seconds: float
    processor: float


class Commands:
    """Runs commands on one data directory, and times them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            **{name: it for name, it in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
            "LEAFCAST_DATA_DIR": str(folder / "tree"),
            "KUBECONFIG": str(folder / "tree" / "kube" / "kubeconfig"),
            "KUBECACHEDIR": str(folder / "kubectl-cache"),
        }

    def run(self, *words: str) -> Took:
        """Run it; how long it took."""
        nowhere, began = subprocess.DEVNULL, time.perf_counter()
        process = subprocess.Popen(words, env=self.environment, stdout=nowhere, stderr=nowhere)
        _, code, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(code)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, words)
        return Took(time.perf_counter() - began, used.ru_utime + used.ru_stime)

    def changed_file(self, name: str, objects: int = 1) -> str:
        """A file with ConfigMaps that are others each time."""
        file, number = self.folder / f"{name}-{objects}.yaml", next(_NUMBERS)
        file.write_text(
            "\n---\n".join(
                f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}-{at}, "
                f'namespace: shop}}, data: {{a: "{number}"}}}}'
                for at in range(objects)
            )
        )
        return str(file)

    def request(self, command: str) -> float:
        """How long the daemon takes to answer what a command asks, connection and all."""

        async def ask() -> float:
            began = time.perf_counter()
            async with open_session(self.folder / "tree") as session:
                if command == "get":
                    await session.workloads.list("", "namespaces")
                else:
                    await session.call("tree" if command == "tree" else "status")
            return time.perf_counter() - began

        return asyncio.run(ask())


def main() -> None:
    report = Report(
        "commands",
        "How long a command takes, seconds: the middle of its runs",
        ("hub", "command", "seconds", "over import click", "kubectl", "request alone"),
    )
    _measure(report, "embedded", (), None)
    kubectl = find_binaries().found.get(KUBECTL)
    if kubectl is None:
        report.note("no API server was measured: make kube builds the programs")
    else:
        _measure(report, "API server", ("--kube",), str(kubectl))
    report.finish()


def _measure(report: Report, hub: str, options: Sequence[str], kubectl: str | None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        commands = Commands(Path(folder))
        commands.run(*LEAFCAST, "up", *options, *SMALL)
        try:
            shop = Path(__file__).resolve().parents[1] / "leafcast" / "shop"
            commands.run(*LEAFCAST, "apply", "-f", str(shop))
            commands.run(*LEAFCAST, "wait", "shop", "--for", "synced")
            _compare(report, commands, hub, kubectl)
        finally:
            commands.run(*LEAFCAST, "down")


def _compare(report: Report, commands: Commands, hub: str, kubectl: str | None) -> None:
    words: dict[str, Callable[[str], tuple[str, ...]]] = {
        "status": lambda _: ("status",),
        "tree": lambda _: ("tree",),
        "get": lambda _: ("get", "ns"),
        "apply": lambda name: ("apply", "-f", commands.changed_file(name)),
        MANY: lambda name: ("apply", "-f", commands.changed_file(name, MANY_OBJECTS)),
    }
    seen: dict[str, list[tuple[Took, Took, Took | None, float]]] = {name: [] for name in words}
    for _ in range(ROUNDS):
        # What is compared runs beside each other, whatever else the machine does.
        for name, said in words.items():
            bare, ours = commands.run(*CLICK), commands.run(*LEAFCAST, *said("one"))
            beside = kubectl is not None and name in ("get", "apply", MANY)
            theirs = commands.run(str(kubectl), *said("two")) if beside else None
            seen[name].append((bare, ours, theirs, commands.request(name)))
    for name, runs in seen.items():
        bare_seconds = median(run[0].processor for run in runs)
        used_seconds = median(run[1].processor for run in runs)
        seconds = median(run[1].seconds for run in runs)
        others = [run[2].seconds for run in runs if run[2] is not None]
        request = median(run[3] for run in runs)
        beside_text = round(median(others), 3) if others else ""
        cells = (
            round(seconds, 3),
            round(used_seconds / bare_seconds, 2),
            beside_text,
            round(request, 4),
        )
        report.row(hub, name, *cells)
        if name in ("status", "get"):
            what = f"{name}, {hub}: processor time over python -c 'import click'"
            report.goal(what, round(used_seconds / bare_seconds, 2), RATIO)
        if name == "apply":
            waiting = median(max(0.0, run[1].seconds - run[1].processor) for run in runs)
            report.goal(f"apply of one object, {hub}: waiting", round(waiting, 3), WAITING_SECONDS)


if __name__ == "__main__":
    main()
