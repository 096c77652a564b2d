"""`leafcast trace`: where the time of one change went, tier by tier, down the tree and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from leafcast.ask.session import Session
from leafcast.ask.trace import asked_trace
from leafcast.cli import shell_completion
from leafcast.cli.options.common import NodeAt, data_dir_option
from leafcast.cli.printing import terminal_width
from leafcast.cli.session_calls import in_session
from leafcast.show.sanitize import sanitize
from leafcast.show.waterfalls import waterfall_lines


@click.command()
@click.argument("placement", shell_complete=shell_completion.placements)
@click.option(
    "--generation",
    type=click.IntRange(1),
    metavar="N",
    help="Of this change, instead of the newest. -o json lists those that the centre noted.",
)
@click.option(
    "--at",
    type=NodeAt(),
    metavar="PATH",
    shell_complete=shell_completion.paths,
    help="On the way to this node, instead of the slowest way.",
)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), help="How to print it.")
@data_dir_option
def trace(
    *,
    placement: str,
    generation: int | None,
    at: str | None,
    output: str | None,
    data_dir: Path | None,
) -> None:
    """Show where the time of a change went: from the apply to the edge, and back as a count.

    Each node notes the last 512 changes, until it is started anew. Times are on the clock of the
    centre, as far as it can be told how far the others are ahead.
    """

    async def work(session: Session) -> Any:
        return await asked_trace(session, placement, generation or 0, at or "")

    form = in_session(data_dir, work)
    if output == "json":
        click.echo(json.dumps(form, indent=2))
        return
    for line in waterfall_lines(form, terminal_width()):
        click.echo(sanitize(line))
