"""How long commands take as a person types them, on an embedded tree and at a hub's API server.

Beside each stands what it cannot do without, in the same run: `python -c 'import click'`, and of a
hub kubectl doing the same. The request is measured in a process that has all loaded already.
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

from benchmarks.report import Report
from leafcast.ask.session import open_session
from relay.adapters.kube_servers.binaries import KUBECTL, find_binaries

ROUNDS = 15
CLICK = (sys.executable, "-c", "import click")
LEAFCAST = (sys.executable, "-m", "leafcast")
RATIO, WAITING_SECONDS = 3.0, 1.0
SMALL = ("--regions", "1", "--sites", "2")
_NUMBERS = count()


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

    def run(self, *words: str) -> float:
        """Run it; how long it took."""
        nowhere, began = subprocess.DEVNULL, time.perf_counter()
        subprocess.run(words, env=self.environment, stdout=nowhere, stderr=nowhere, check=True)
        return time.perf_counter() - began

    def changed_file(self, name: str) -> str:
        """A file with a ConfigMap that is another each time."""
        file = self.folder / f"{name}.yaml"
        file.write_text(
            f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: shop}}, "
            f'data: {{a: "{next(_NUMBERS)}"}}}}\n'
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
    timed: dict[str, tuple[Callable[[], float], Callable[[], float] | None]] = {
        "status": (lambda: commands.run(*LEAFCAST, "status"), None),
        "tree": (lambda: commands.run(*LEAFCAST, "tree"), None),
        "get": (
            lambda: commands.run(*LEAFCAST, "get", "ns"),
            (lambda: commands.run(str(kubectl), "get", "ns")) if kubectl else None,
        ),
        "apply": (
            lambda: commands.run(*LEAFCAST, "apply", "-f", commands.changed_file("one")),
            (lambda: commands.run(str(kubectl), "apply", "-f", commands.changed_file("two")))
            if kubectl
            else None,
        ),
    }
    seen: dict[str, list[tuple[float, float, float, float]]] = {name: [] for name in timed}
    for _ in range(ROUNDS):
        # What is compared runs beside each other, whatever else the machine does.
        for name, (ours, theirs) in timed.items():
            bare, took = commands.run(*CLICK), ours()
            request = commands.request(name)
            seen[name].append((bare, took, theirs() if theirs else 0.0, request))
    for name, runs in seen.items():
        bare, took, theirs, request = (median(column) for column in zip(*runs, strict=True))
        beside = round(theirs, 3) if theirs else ""
        report.row(hub, name, round(took, 3), round(took / bare, 2), beside, round(request, 4))
        if name in ("status", "get"):
            what = f"{name}, {hub}: without the request, over python -c 'import click'"
            report.goal(what, round((took - request) / bare, 2), RATIO)
        if name == "apply":
            waiting = max(0.0, took - RATIO * bare)
            report.goal(f"apply of one object, {hub}: waiting", round(waiting, 3), WAITING_SECONDS)


if __name__ == "__main__":
    main()
