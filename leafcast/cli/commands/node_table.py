"""`leafcast node list`: the nodes of the tree, and the state of each."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from leafcast.ask.session import Session
from leafcast.cli.options.common import SPAN, data_dir_option
from leafcast.cli.options.output import Output, output_options
from leafcast.cli.printing import show
from leafcast.show.layout import Table, Text, View
from relay.adapters.clock import SystemClock
from schemas.records.maintenance import Maintenance
from schemas.reports.states import IN_MAINTENANCE

SECONDS = 90.0

Form = dict[str, Any]


@click.command("list")
@click.option(
    "--off-since",
    "off_seconds",
    type=SPAN,
    metavar="DURATION",
    help="Only nodes that have been off for so long: 24h shows who is off since yesterday.",
)
@output_options
@data_dir_option
def list_(*, off_seconds: int | None, output: Output, data_dir: Path | None) -> None:
    """List the nodes of the tree, and the state of each."""

    async def ask(session: Session) -> Any:
        nodes = (await session.call("node-list", seconds=SECONDS))["nodes"]
        if off_seconds is None:
            return nodes
        return nodes_off(nodes, off_seconds, SystemClock().now().wall_ms)

    def draw(found: Sequence[Form], _now_ms: int) -> View:
        if off_seconds is not None and not found:
            return Text("No node has been off for that long.")
        return nodes_view(found, wide=output.is_wide)

    show(data_dir, ask, draw, output, lambda found: [node["path"] for node in found])


def nodes_off(found: Sequence[Form], seconds: int, now_ms: int) -> list[Form]:
    """Those that are not reached, and were not for so long; who never joined was never on."""
    return [
        node
        for node in found
        if not node["reached"] and node["sinceMs"] and now_ms - node["sinceMs"] >= seconds * 1000
    ]


def nodes_view(found: Sequence[Form], *, wide: bool = False) -> View:
    """A row a node."""
    if not found:
        return Text("No nodes yet. Add one: leafcast node add /region-1 --relay")
    table = Table()
    for title in ("PATH", "SYNCTARGET"):
        table.add_column(title, no_wrap=True)
    table.add_column("STATE", overflow="fold")
    if wide:
        table.add_column("REACHED", no_wrap=True)
    for node in found:
        reached = [str(node["reached"]).lower()] if wide else []
        table.add_row(node["path"], node["syncTarget"] or "-", _state(node), *reached)
    return table


def _state(node: Form) -> str:
    state = str(node["state"])
    if node.get("unplaced"):
        return f"{state}; no destination: leafcast node register {node['path']}"
    if node["sinceMs"]:
        since = dt.datetime.fromtimestamp(node["sinceMs"] // 1000, dt.UTC)
        state = f"{state} since {since.isoformat().replace('+00:00', 'Z')}"
    said = Maintenance(node["maintenanceUntilMs"], node["maintenanceReason"])
    if said.is_on(SystemClock().now().wall_ms):
        state = f"{state}; {IN_MAINTENANCE} {said}"
    return state
