"""Scenes of `leafcast up` on real servers, scraped at its health port.

They take seconds. Each scrape counts as a minute as promtool plays it: what hangs or is down stays
so until it is let go, however long that is.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

from relay.adapters.server.ports import free_port
from schemas.values.identity import NodePath
from tests.alert_scenes.series import Series
from tests.awaiting import until
from tests.e2e.program import EDGES, SMALL, Program, did

LONG, SHORT = 8, 3
"""So many scrapes; LONG ones are more minutes than any alert here waits."""
KILLS = 3
SILENT, KILLED, DOWN = SCENES = ("server-silent", "server-killed", "process-down")


class Watched:
    """A tree that is scraped."""

    def __init__(self, folder: Path) -> None:
        self.tree = Program(folder / "data")
        self.port = free_port(folder, 17)

    def up(self) -> None:
        did(self.tree, "up", *SMALL, "--health-port", str(self.port))

    def shown(self) -> str | None:
        """What its port answers; None if nobody does."""
        try:
            with urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=20) as answer:
                return str(answer.read(), "utf-8")
        except OSError:
            return None

    def shows(self, name: str, path: str, value: float) -> bool:
        """Whether a figure of a node is this now."""
        return f'{name}{{node="{path}"}} {value}' in (self.shown() or "")

    def scrape(self, series: Series, count: int) -> None:
        for _ in range(count):
            series.scrape(self.shown(), "tree")
            series.end()

    def server(self, path: str) -> int:
        """The process of a node's nats-server."""
        config = str(self.tree.place.node(NodePath.parse(path)) / "nats.conf")
        return next(int(it.name) for it in Path("/proc").iterdir() if config in words_of(it))

    @contextmanager
    def stopped(self, path: str) -> Iterator[None]:
        """The nats-server of a node hangs."""
        process = self.server(path)
        os.kill(process, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(process, signal.SIGCONT)


def words_of(process: Path) -> list[str]:
    """The command of a process; none of what is no process, or ended."""
    try:
        return (process / "cmdline").read_text().split("\0")
    except OSError:
        return []


def scraped(folder: Path) -> dict[str, Series]:
    """What is scraped of all scenes as they are played now."""
    series = {name: Series() for name in SCENES}
    watched = Watched(folder)
    watched.up()
    try:
        _silent(watched, series[SILENT])
        _killed(watched, series[KILLED])
        _down(watched, series[DOWN])
    finally:
        watched.tree.run("down")
    return series


def _silent(watched: Watched, series: Series) -> None:
    watched.scrape(series, SHORT)
    with watched.stopped(EDGES[1]):
        watched.scrape(series, LONG)
    until(lambda: watched.shows("leafcast_nats_up", EDGES[1], 1.0), watched.shown)
    watched.scrape(series, SHORT)


def _killed(watched: Watched, series: Series) -> None:
    watched.scrape(series, SHORT)
    for number in range(KILLS):
        os.kill(watched.server(EDGES[1]), signal.SIGKILL)
        starts = number + 2.0
        until(
            lambda n=starts: watched.shows("leafcast_nats_starts_total", EDGES[1], n), watched.shown
        )
        until(lambda: watched.shows("leafcast_nats_up", EDGES[1], 1.0), watched.shown)
        watched.scrape(series, SHORT)


def _down(watched: Watched, series: Series) -> None:
    watched.scrape(series, SHORT)
    did(watched.tree, "down")
    watched.scrape(series, LONG)
    watched.up()
    until(lambda: watched.shows("leafcast_node_ready", EDGES[1], 1.0), watched.shown)
    watched.scrape(series, SHORT)
