"""`leafcast node list`: the nodes of the tree, and the state of each."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from leafcast.ask.session import Session
from leafcast.cli.options.common import data_dir_option
from leafcast.cli.options.output import Output, output_options
from leafcast.cli.printing import show
from leafcast.show.layout import Table, Text, View

SECONDS = 90.0

Form = dict[str, Any]


@click.command("list")
@output_options
@data_dir_option
def list_(*, output: Output, data_dir: Path | None) -> None:
    """List the nodes of the tree, and the state of each."""

    async def ask(session: Session) -> Any:
        return (await session.call("node-list", seconds=SECONDS))["nodes"]

    def draw(found: Sequence[Form], _now_ms: int) -> View:
        return nodes_view(found, wide=output.is_wide)

    show(data_dir, ask, draw, output, lambda found: [node["path"] for node in found])


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
    if node["sinceMs"]:
        since = dt.datetime.fromtimestamp(node["sinceMs"] // 1000, dt.UTC)
        state = f"{state} since {since.isoformat().replace('+00:00', 'Z')}"
    if not node["expired"]:
        return state
    return f"{state}; its bundle expired: leafcast node add {node['path']} --replace --bundle"
