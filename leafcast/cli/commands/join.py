"""`leafcast join`: a new node of a running tree, in the foreground, with one bundle file."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path

import click

from leafcast.cli.health_options import health_options
from leafcast.cli.kubernetes_options import context_option, kubeconfig_option
from leafcast.daemon.logs import log_format_option, set_up_logs
from leafcast.daemon.process import OTHERS
from leafcast.join.bundle import read_bundle
from leafcast.join.folder import cluster_of, default_folder, joined_folder
from leafcast.join.joined_node import JoinedNode
from leafcast.local.attached_cluster import attachment
from leafcast.local.health_endpoint import HealthAddress
from leafcast.signals import Ended, run_until_signal
from leafcast.space_settings import SIMULATED, SpaceSetting
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
@kubeconfig_option("The cluster that gets what is meant for this edge.")
@context_option
@click.option("--simulated", is_flag=True, help="Take a cluster that only pretends to run things.")
@log_format_option
@health_options
def join(
    bundle: Path,
    data_dir: Path | None,
    kubeconfig: str | None,
    context: str | None,
    simulated: bool,  # noqa: FBT001 - click
    log_format: str,
    health: HealthAddress | None,
) -> None:
    """Join the tree that BUNDLE comes from, until Ctrl-C.

    Starts a nats-server and, unless it is a relay, works on a cluster: the one of --kubeconfig or
    --context, in a Pod the one that it runs in, else a simulated one. Started again with the same
    bundle it goes on where it was, with the cluster that it had. A node that was moved goes on with
    the bundle of its new place, and the folder that it has.
    """
    named = _named(kubeconfig, context, simulated=simulated)
    found = read_bundle(bundle)
    os.umask(OTHERS)
    clock, dice = SystemClock(), SystemDice()
    folder = data_dir or default_folder(found)
    with joined_folder(folder, bundle, found, clock, dice) as place:
        role = "relay" if found.relay else "edge"
        cluster = None if found.relay else cluster_of(place, named)
        on = f" of {cluster.title}" if cluster is not None and cluster.is_kubernetes else ""
        said = f"Joining as {role} {found.path}{on}; its state is in {folder}. Ctrl-C ends it."
        say = click.echo if log_format == "text" else _logging(log_format)
        say(said)
        if found.former and not (place.former or place.admitted):
            say(
                f"It begins anew: what it kept as {found.former[-1]} is in another folder. To take "
                "that along, end this, and name that folder with --data-dir."
            )
        attached = attachment(cluster) if cluster is not None else None
        node = JoinedNode(found, place, clock, dice, say, attached, health)
        try:
            run_until_signal(node.run())
        except Ended as end:
            again = f"leafcast join {bundle}" + (f" --data-dir {data_dir}" if data_dir else "")
            click.echo(f"Stopped. `{again}` goes on.", err=True)
            raise click.exceptions.Exit(end.exit_code) from None


def _logging(log_format: str) -> Callable[[str], None]:
    """Say things in the log, where programs read them."""
    set_up_logs(log_format)
    return logging.getLogger("leafcast").info


def _named(kubeconfig: str | None, context: str | None, *, simulated: bool) -> SpaceSetting | None:
    """The cluster that was named, None if none was."""
    if not (kubeconfig or context):
        return SIMULATED if simulated else None
    if simulated:
        raise click.UsageError("--simulated is given with a cluster; name one of them")
    return SpaceSetting("kubeconfig", kubeconfig or "", context or "").seen_from(Path.cwd())
