"""`leafcast join`: a new node of a running tree, in the foreground, with one bundle file."""

from __future__ import annotations

from pathlib import Path

import click

from leafcast.bundle import read_bundle
from leafcast.joined_folder import default_folder, joined_folder
from leafcast.joining import JoinedNode
from leafcast.signals import Ended, run_until_signal
from relay.adapters.clock import SystemClock, SystemDice


@click.command()
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    metavar="DIR",
    default=None,
    help="Where the node keeps its state.  [default: a folder of its own beside the tree's]",
)
def join(bundle: Path, data_dir: Path | None) -> None:
    """Join the tree that BUNDLE comes from, until Ctrl-C.

    Starts a nats-server and, unless it is a relay, a simulated cluster, and receives what is meant
    for it. Started again with the same bundle it goes on where it was. A node that was moved goes
    on with the bundle of its new place, and the folder that it has.
    """
    found = read_bundle(bundle)
    clock, dice = SystemClock(), SystemDice()
    folder = data_dir or default_folder(found)
    with joined_folder(folder, bundle, found, clock, dice) as place:
        role = "relay" if found.relay else "edge"
        click.echo(f"Joining as {role} {found.path}; its state is in {folder}. Ctrl-C ends it.")
        if found.former and not (place.former or place.admitted):
            click.echo(
                f"It begins anew: what it kept as {found.former[-1]} is in another folder. To take "
                "that along, end this, and name that folder with --data-dir."
            )
        node = JoinedNode(found, place, clock, dice, click.echo)
        try:
            run_until_signal(node.run())
        except Ended as end:
            again = f"leafcast join {bundle}" + (f" --data-dir {data_dir}" if data_dir else "")
            click.echo(f"Stopped. `{again}` goes on.", err=True)
            raise click.exceptions.Exit(end.exit_code) from None
