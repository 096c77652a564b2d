"""`leafcast ui`: the whole tree in a browser."""

from __future__ import annotations

from pathlib import Path

import click

from leafcast.cli.options.common import data_dir_option
from leafcast.cli.session_calls import until_signal

PORT = 7780
LOOPBACK = "127.0.0.1"


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=PORT,
    show_default=True,
    help="Where to listen, on this machine only; 0 takes any that is free.",
)
@click.option(
    "--allow-actions",
    "may_act",
    is_flag=True,
    help="Let the page approve, pause, abort and accept: it shows each command, and asks.",
)
@data_dir_option
def ui(port: int, data_dir: Path | None, *, may_act: bool) -> None:
    """Show the tree in a browser, until Ctrl-C.

    It prints an address that lets one browser in, once; when it was used, it prints one for the
    next. The page reads, and changes nothing, unless it is allowed to. It asks the tree as commands
    do, and nothing else.

    With the data directory of a node below the centre it shows that node: what it holds, what it
    waits for, and since when, also while its parent is away.
    """
    # Here, as no other command serves anything.
    from leafcast.cli.apply.pasted_plan import planned_text  # noqa: PLC0415
    from leafcast.ui.serving import serve_tree  # noqa: PLC0415

    place = (LOOPBACK, port)
    until_signal(serve_tree(data_dir, place, click.echo, planned_text, may_act=may_act))
