"""`leafcast ui`: the whole tree in a browser."""

from __future__ import annotations

from pathlib import Path

import click

from leafcast.cli.options.common import data_dir_option
from leafcast.cli.options.page import page_options
from leafcast.cli.session_calls import until_signal
from leafcast.ui.page_place import PagePlace
from leafcast.ui.page_process import SERVED
from relay.atomic_file import atomic_write


@click.command()
@page_options
@click.option(
    "--address-file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the address there, for you alone, instead of printing it; the tree may come later.",
)
@click.option(
    "--allow-actions",
    "may_act",
    is_flag=True,
    help="Let the page approve, pause, abort and accept: it shows each command, and asks.",
)
@data_dir_option
def ui(
    place: PagePlace, address_file: Path | None, data_dir: Path | None, *, may_act: bool
) -> None:
    """Show the tree in a browser, until Ctrl-C.

    It prints an address that lets one browser in, once; when it was used, it prints one for the
    next. The page reads, and changes nothing, unless it is allowed to. It asks the tree as commands
    do, and nothing else.

    With the data directory of a node below the centre it shows that node: what it holds, what it
    waits for, and since when, also while its parent is away.

    It is served to this machine. With --host it is served elsewhere, too, by TLS and by the names
    of the certificate alone; then it changes nothing.
    """
    # Here, as no other command serves anything.
    from leafcast.cli.apply.pasted_plan import planned_text  # noqa: PLC0415
    from leafcast.ui.serving import serve_tree  # noqa: PLC0415

    if may_act and not place.is_here:
        raise click.UsageError(
            "--allow-actions is for a page of this machine: leave out --host, and let who acts "
            "come by `ssh -L`"
        )
    told = False

    def write(address: str) -> None:
        nonlocal told
        assert address_file is not None
        atomic_write(address_file, f"{address}\n")
        if not told:
            click.echo(f"{SERVED}; its address is in {address_file}", err=True)
        told = True

    tell, waits = (write, True) if address_file else (click.echo, False)
    until_signal(serve_tree(data_dir, place, tell, planned_text, may_act=may_act, waits=waits))
