"""How much processor time and memory the same work takes of each interpreter that it is given.

Run as `python -m benchmarks.interpreters [PYTHON...]`; named none, it is the one that runs this.
Each has to have what Leafcast needs in its environment, as `/opt/leafcast/bin/python` of a Debian
package has. They run by turns, so that all meet what else the machine does. `decisions` are seeds
of the simulation: the core alone. `wire` is a centre, its region and edges on real servers, over
asyncio and nats-py, while changes go to all of them; what the servers use is not counted, nor is
what came before. `start` is `leafcast --version`.
"""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.counts import is_synced
from benchmarks.report import Report, cpu_seconds, middle, own_cpu_seconds
from benchmarks.wide_tree import WideTree, wide_tree
from tests.simulation.run import run
from tests.simulation.sizes import SIZES

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 5
SEEDS, EDGES, CHANGES = 40, 20, 100
WARM = 2
"""So many seeds and changes come first: a node runs for months with all loaded."""
LOAD = "--load"
PLACEMENT = {
    "apiVersion": "edge.kubestellar.io/v2alpha1",
    "kind": "EdgePlacement",
    "metadata": {"name": "shop"},
    "spec": {"locationSelectors": [{}], "downsync": [{"namespaces": ["shop"]}]},
}
"""All of a namespace, everywhere."""


def decisions() -> float:
    """Processor time of some seeds."""
    _decide(WARM)
    began = own_cpu_seconds()
    _decide(SEEDS)
    return own_cpu_seconds() - began


def _decide(seeds: int) -> None:
    for seed in range(seeds):
        outcome = run(seed, size=SIZES["small"])
        assert not outcome.law, outcome


async def wire() -> float:
    """Processor time of the nodes of a tree while changes go to all edges, one after another."""
    with tempfile.TemporaryDirectory() as folder:
        async with wide_tree(Path(folder), 1, EDGES) as tree:
            await tree.apply(_config_map("first"), PLACEMENT)
            await _change(tree, WARM)
            began = _used(tree)
            await _change(tree, CHANGES)
            return _used(tree) - began


async def _change(tree: WideTree, times: int) -> None:
    for number in range(times):
        former = await tree.until("shop", lambda count: is_synced(count, EDGES))
        await tree.apply(_config_map(f"change {number} of {times}"))
        met = partial(is_synced, destinations=EDGES, former=former)
        await tree.until("shop", met)


def _config_map(text: str) -> dict[str, Any]:
    metadata = {"name": "one", "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": text}}


def _used(tree: WideTree) -> float:
    """Processor time that the nodes have used, without their servers."""
    edges = sum(cpu_seconds(process.pid) for process in tree.processes.values())
    return own_cpu_seconds() + edges


def start() -> float:
    """Processor time of a start, of ten."""
    for _ in range(10):
        command = (sys.executable, "-m", "leafcast", "--version")
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) / 10


LOADS: dict[str, Callable[[], float]] = {
    "decisions": decisions,
    "wire": lambda: asyncio.run(wire()),
    "start": start,
}


def measured(python: str, load: str) -> tuple[float, float]:
    """Processor time of a load, and the most memory of the process that ran it, in MB."""
    command = (python, "-m", "benchmarks.interpreters", LOAD, load)
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    seconds, peak = json.loads(done.stdout.splitlines()[-1])
    return seconds, peak


def version_of(python: str) -> str:
    """What an interpreter says it is."""
    said = subprocess.run((python, "-VV"), check=True, capture_output=True, text=True).stdout
    return said.removeprefix("Python ").split(" (")[0]


def main(pythons: Sequence[str]) -> None:
    columns = ("interpreter", "version", "load", "CPU s", "over the first", "peak MB", "each round")
    report = Report("interpreters", "The same work with each interpreter", columns)
    seen: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for at in range(ROUNDS + 1):
        for load in LOADS:
            for python in pythons:
                found = measured(python, load)
                # The first round writes bytecode.
                if at:
                    seen.setdefault((python, load), []).append(found)
    for (python, load), runs in seen.items():
        first = seen[pythons[0], load]
        over = middle([run[0] / beside[0] for run, beside in zip(runs, first, strict=True)])
        each = ", ".join(f"{seconds:.2f}" for seconds, _ in runs)
        peak = middle([peak for _, peak in runs])
        seconds = middle([seconds for seconds, _ in runs])
        report.row(python, version_of(python), load, seconds, f"{over:.3f}", peak, each)
    report.finish()


if __name__ == "__main__":
    given = sys.argv[1:]
    if given[:1] == [LOAD]:
        used = LOADS[given[1]]()
        peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
        print(json.dumps((used, peak_mb)))
    else:
        main(given or [sys.executable])
