"""`leafcast status`: what became of the placements, delivered and working, worst first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from leafcast.ask.destinations import destinations_below, nodes_below
from leafcast.ask.resource_names import UnknownKind
from leafcast.ask.session import Session
from leafcast.cli import shell_completion
from leafcast.cli.commands.wait import placements_named
from leafcast.cli.options import data_dir_option
from leafcast.cli.printing import show, watch
from leafcast.show.tree_tables import placement_view, placements_view, worst_first


@click.command()
@click.argument(
    "placement",
    metavar="[PLACEMENT]",
    required=False,
    default="",
    shell_complete=shell_completion.placements,
)
@click.option("--tree", "by_node", is_flag=True, help="Every node of the tree, not only the first.")
@click.option("--destinations", is_flag=True, help="Every destination, worst first.")
@click.option("-w", "--watch", "stays", is_flag=True, help="Go on until Ctrl-C.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), help="How to print it.")
@data_dir_option
def status(
    placement: str,
    by_node: bool,  # noqa: FBT001 - click passes options by name
    destinations: bool,  # noqa: FBT001
    stays: bool,  # noqa: FBT001
    output: str | None,
    data_dir: Path | None,
) -> None:
    """Show what became of all placements, or of one.

    DELIVERED counts the destinations that hold what they should, WORKING those where it is healthy.
    Counts are exact unless they say "at least": then not all nodes have answered yet.
    """
    if (by_node or destinations) and not placement:
        raise click.UsageError("name a placement; `leafcast status` lists them")
    try:
        placement = placements_named([placement])[0] if placement else ""
    except UnknownKind as error:
        raise click.UsageError(str(error)) from error
    if by_node and destinations:
        raise click.UsageError("--tree or --destinations, not both")

    async def ask(session: Session) -> Any:
        if not placement:
            found = await session.call("status")
            return {**found, "placements": worst_first(found["placements"])}
        found = await session.call("status", placement=placement, by_node=by_node)
        form = found["placements"][0]
        if by_node and form.get("elsewhere"):
            below, silent = await nodes_below(session, form["key"], form["elsewhere"])
            form |= {"nodes": form["nodes"] + below, "elsewhere": silent}
        if destinations:
            found = await session.call("destinations", placement=placement, seconds=60)
            below, silent = await destinations_below(session, found["key"], found["elsewhere"])
            form |= {"destinationList": found["destinations"] + below, "elsewhere": silent}
        return form

    def draw(found: Any, now_ms: int) -> Any:
        if not placement:
            return placements_view(found["placements"], now_ms, found.get("orphans", ()))
        return placement_view(found, now_ms)

    (watch if stays else show)(data_dir, ask, draw, output)
