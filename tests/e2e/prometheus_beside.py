"""Debian's Prometheus beside a tree, with the rules that Leafcast has for it."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import yaml

from relay.adapters.server.ports import free_port
from tests.awaiting import until
from tests.unit.test_monitoring import RULES

PROMETHEUS = shutil.which("prometheus")
SCRAPE_SECONDS = 3
"""A server that hangs is left out of an answer after two."""
Answer = dict[str, Any]


class Prometheus:
    """One that runs, as its users ask it."""

    def __init__(self, base: str) -> None:
        self._base = base

    def asked(self, what: str, **words: str) -> Any:
        """What its API answers."""
        with urlopen(f"{self._base}/api/v1/{what}?{urlencode(words)}") as answer:  # noqa: S310 - of http
            return json.load(answer)["data"]

    def numbers(self, expression: str) -> list[float]:
        """What an expression is now; what is no number is left out, as a board does."""
        found = self.asked("query", query=expression)["result"]
        values = (float(it["value"][1]) for it in found)
        return [value for value in values if not math.isnan(value)]

    def nodes(self) -> list[str]:
        """What a board offers to choose from."""
        found: list[str] = self.asked("label/node/values", **{"match[]": "leafcast_node_info"})
        return found

    def rules(self) -> list[Answer]:
        """All rules as they stand."""
        return [rule for group in self.asked("rules")["groups"] for rule in group["rules"]]

    def firing(self) -> list[Answer]:
        """The labels of all alerts that fire."""
        return [it["labels"] for it in self.asked("alerts")["alerts"] if it["state"] == "firing"]

    def fires(self, name: str, **labels: str) -> bool:
        """Whether an alert fires for these labels."""
        wanted = {"alertname": name, **labels}.items()
        return any(wanted <= found.items() for found in self.firing())

    def is_up(self) -> bool:
        """Whether it answers."""
        try:
            self.asked("status/buildinfo")
        except OSError:
            return False
        return True


@contextmanager
def prometheus(folder: Path, health_port: int) -> Iterator[Prometheus]:
    """One that scrapes a tree's health port; its alerts wait a second, and not minutes."""
    assert PROMETHEUS is not None
    port = free_port(folder, 29)
    rules, config = folder / "rules.yaml", folder / "prometheus.yaml"
    rules.write_text(re.sub(r"(?m)^( +for): \w+$", r"\1: 1s", RULES.read_text()))
    every = f"{SCRAPE_SECONDS}s"
    job = {"job_name": "leafcast", "static_configs": [{"targets": [f"127.0.0.1:{health_port}"]}]}
    said = {
        "global": {"scrape_interval": every, "scrape_timeout": every, "evaluation_interval": "1s"},
        "rule_files": [str(rules)],
        "scrape_configs": [job],
    }
    config.write_text(yaml.safe_dump(said))
    command = [
        PROMETHEUS,
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'series'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--enable-feature=exemplar-storage",
        "--log.level=error",
    ]
    with subprocess.Popen(command) as process:
        found = Prometheus(f"http://127.0.0.1:{port}")
        try:
            until(found.is_up, "Prometheus does not answer")
            yield found
        finally:
            process.terminate()
