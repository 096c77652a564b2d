"""A benchmark's figures as a table and as JSON, with the machine that they were taken on."""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from relay.adapters.server.process import server_binary

RECORDED = Path(__file__).parent / "results"
RESULTS = Path(tempfile.gettempdir()) / "leafcast-benchmarks"
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Report:
    """One run of one benchmark. `goals` are printed with what was met and by how much not."""

    name: str
    title: str
    columns: Sequence[str]
    rows: list[Sequence[Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    goals: list[Mapping[str, Any]] = field(default_factory=list)
    load_before: float = field(default_factory=lambda: os.getloadavg()[0])

    def row(self, *cells: Any) -> None:
        self.rows.append(cells)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def goal(self, what: str, seen: float, most: float, *, least: bool = False) -> None:
        """Say whether a figure is at most (or, with `least`, at least) what it should be."""
        met = seen >= most if least else seen <= most
        self.goals.append(
            {
                "what": what,
                "seen": seen,
                "goal": most,
                "at": "least" if least else "most",
                "met": met,
            }
        )

    def finish(self) -> None:
        """Print the table, and write it as JSON: to be recorded if RECORD is set."""
        where = machine()
        print(f"\n{self.title}")
        print(f"  {machine_text(where)}, load {self.load_before:.1f}")
        _print_table(self.columns, [[_text(cell) for cell in row] for row in self.rows])
        for note in self.notes:
            print(f"  {note}")
        for goal in self.goals:
            met = "met" if goal["met"] else "MISSED"
            seen, most = _text(goal["seen"]), _text(goal["goal"])
            print(f"  goal {met}: {goal['what']}: {seen} (at {goal['at']} {most})")
        folder = RECORDED if os.environ.get("RECORD") else RESULTS
        folder.mkdir(exist_ok=True)
        said = {
            "name": self.name,
            "taken": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": where,
            "load_before": self.load_before,
            "load_after": os.getloadavg()[0],
            "columns": list(self.columns),
            "rows": [list(row) for row in self.rows],
            "notes": self.notes,
            "goals": self.goals,
        }
        file = folder / f"{self.name}.json"
        file.write_text(json.dumps(said, indent=1) + "\n")
        print(f"  written to {file}")


def machine() -> dict[str, Any]:
    """What the figures depend on: cores, memory, Python, nats-server."""
    return {
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PHYS_PAGES") * _PAGE / 2**30),
        "python": platform.python_version(),
        "nats_server": _nats_version(),
    }


def machine_text(where: Mapping[str, Any]) -> str:
    return (
        f"{where['cores']} cores, {where['memory_gb']} GB, Python {where['python']}, "
        f"nats-server {where['nats_server']}"
    )


def percentile(values: Sequence[float], share: float) -> float:
    """The value that this share of all does not exceed."""
    ranked = sorted(values)
    return ranked[min(int(share * len(ranked)), len(ranked) - 1)]


def middle(values: Sequence[float]) -> float:
    return median(values)


def resident_mb(pid: int) -> float:
    """Resident memory of a process, in MB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE / 1e6


def cpu_seconds(pid: int) -> float:
    """Seconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def own_cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def children_of(pid: int) -> dict[int, str]:
    """All processes below this one, with the last word of their command line."""
    found: dict[int, str] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text().rpartition(")")[2].split()[1])
            words = (status.parent / "cmdline").read_text().split("\0")
        except OSError:
            continue
        if parent == pid:
            child = int(status.parent.name)
            found[child] = " ".join(words)
            found |= children_of(child)
    return found


def _nats_version() -> str:
    command = [str(server_binary()), "--version"]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    return str(said.stdout).strip().rpartition("v")[2]


def _text(cell: Any) -> str:
    if isinstance(cell, float):
        return f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:.3g}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


def _print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(line[at]) for line in [columns, *rows]) for at in range(len(columns))]
    for line in [columns, ["-" * width for width in widths], *rows]:
        cells = [
            cell.ljust(width) if at == 0 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        print("  " + "  ".join(cells).rstrip())
