"""What Prometheus would keep of a scene: the series that alerts read, scraped at moments.

A recording is a file of YAML, in promtool's notation; runs of one value are written once.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import yaml
from prometheus_client.parser import text_string_to_metric_families

from relay.shell.propagation_times import BOUNDS, PropagationStage
from tests.unit.test_monitoring import NAME, RULE_LIST, SAID

RECORDED = Path(__file__).parent / "recorded"
HEADING = """\
# Scraped from real nodes. `python -m tests.alert_scenes` records it again.
"""
READ = frozenset(name for rule in RULE_LIST for name in NAME.findall(SAID.sub('""', rule["expr"])))
"""The names that rules read."""
_BOUNDS = {repr(float(bound)) for bound in BOUNDS} - {"60.0"}
_UNREAD = frozenset(
    {("le", bound) for bound in (*_BOUNDS, "+Inf")}
    | {("stage", stage.value) for stage in PropagationStage if stage.value != "delivered"}
    | {("type", each) for each in ("Healthy", "Ready", "Reconciling", "Synced", "Valid")}
)
"""Labels that they leave out."""
STARTED = "process_start_time_seconds"
SHOWN_FIGURES = 4
ROUNDED = {"leafcast_disk_free_bytes": 1}


class Series:
    """Values by series, one for each scrape; None where a scrape did not show it."""

    def __init__(self) -> None:
        self.scrapes = 0
        # What lies between two scrapes as promtool plays it: what is waited for may take a day.
        self.interval = "1m"
        self._first_start: float | None = None
        self._values: dict[str, list[float | None]] = {}

    def scrape(self, text: str | None, instance: str) -> None:
        """Take an answer of one instance; None if it gave none."""
        self._take("up", {}, instance, float(text is not None))
        for family in text_string_to_metric_families(text or ""):
            for sample in family.samples:
                if sample.name in READ and _UNREAD.isdisjoint(sample.labels.items()):
                    figures = ROUNDED.get(sample.name, 15)
                    value = float(f"{sample.value:.{figures}g}")
                    if sample.name == STARTED:
                        value = self._since_first(value)
                    self._take(sample.name, sample.labels, instance, value)

    def end(self) -> None:
        """All that is asked at this moment has been asked."""
        self.scrapes += 1
        for values in self._values.values():
            values.extend([None] * (self.scrapes - len(values)))

    def write(self, scene: str) -> None:
        """Keep it."""
        form = {"interval": self.interval, "series": {k: _notation(v) for k, v in self.sorted()}}
        said = yaml.safe_dump(form, sort_keys=False, width=10_000)
        (RECORDED / f"{scene}.yaml").write_text(HEADING + said)

    def sorted(self) -> Iterator[tuple[str, list[float | None]]]:
        """All series by their names."""
        yield from sorted(self._values.items())

    def _since_first(self, started: float) -> float:
        """Who records tells of starts only how much later than the first each was."""
        if self._first_start is None:
            self._first_start = started
        return round(started - self._first_start)

    def _take(self, name: str, labels: dict[str, str], instance: str, value: float) -> None:
        said = sorted({**labels, "instance": instance, "job": "leafcast"}.items())
        listed = ", ".join(f'{label}="{text}"' for label, text in said)
        key = f"{name}{{{listed}}}"
        values = self._values.setdefault(key, [None] * self.scrapes)
        if len(values) == self.scrapes:
            values.append(value)


def _notation(values: list[float | None]) -> str:
    """As promtool reads it; Prometheus marks a series that is no longer shown as stale."""
    runs = [(value, len([*run])) for value, run in groupby(values)]
    return " ".join(_run(*run, is_first=number == 0) for number, run in enumerate(runs))


def _run(value: float | None, count: int, *, is_first: bool) -> str:
    if value is None:
        return (
            f"_x{count}" if is_first else " ".join(["stale", *([f"_x{count - 1}"] * (count > 1))])
        )
    said = repr(int(value)) if value == int(value) else f"{value:.{SHOWN_FIGURES}g}"
    return said if count == 1 else f"{said}x{count - 1}"


def recorded(scene: str) -> dict:
    """A recording that is kept."""
    return yaml.safe_load((RECORDED / f"{scene}.yaml").read_text())
