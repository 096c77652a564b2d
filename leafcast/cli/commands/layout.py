"""`leafcast layout`: the files of a tree whose nats-servers and nodes are run by someone else."""

from __future__ import annotations

import os
from pathlib import Path

import click

from leafcast.cli.options.spaces import spaces_options
from leafcast.data_dir import OTHERS, DataDir, DataDirUnusable
from leafcast.local.layout import Layout, check_laid_out
from leafcast.local.views import TreeShape
from leafcast.space_settings import CentreSpaces
from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.server.store_key import is_variable
from relay.adapters.tls.names import is_host

_MARK = "{node}"


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--regions",
    type=click.IntRange(0, 50),
    default=2,
    show_default=True,
    help="Relays below the centre; 0 for the centre alone, whose nodes join with tokens.",
)
@click.option("--sites", type=click.IntRange(1, 50), default=3, show_default=True)
@click.option(
    "--host",
    default=f"nats-{_MARK}",
    show_default=True,
    help="Host name of a node's nats-server; {node} is centre, region-1, region-1-site-2, ... A "
    "centre alone may have any.",
)
@click.option(
    "--store-key-variable",
    default="",
    metavar="NAME",
    help="Have servers encrypt what they store, with a key that they find in this variable.",
)
@spaces_options
def layout(
    *,
    folder: Path,
    regions: int,
    sites: int,
    host: str,
    store_key_variable: str,
    spaces: CentreSpaces | None,
) -> None:
    """Write the files of a whole tree to FOLDER, for containers or machines of your own.

    Each node gets a folder with nats.conf for its nats-server and node.yaml for `leafcast run`,
    and secrets beside them. Where they are already, nothing changes, and another --host or other
    spaces of the centre are refused. Files that spaces are named by are looked for where the centre
    will run.
    """
    if _MARK not in host and regions:
        said = f"it needs {_MARK} in it, unless the centre is alone (--regions 0)"
        raise click.BadParameter(said, param_hint="--host")
    if not _names_hosts(host):
        said = f"{host!r} is no host name in lower case, as in nats-{_MARK}.example"
        raise click.BadParameter(said, param_hint="--host")
    if store_key_variable and not is_variable(store_key_variable):
        said = "it is the name of an environment variable, as in STORE_KEY"
        raise click.BadParameter(said, param_hint="--store-key-variable")
    os.umask(OTHERS)
    place = DataDir(folder.absolute())
    source = click.get_current_context().get_parameter_source("host")
    is_said = source is not click.core.ParameterSource.DEFAULT
    check_laid_out(place, host.format(node="centre") if is_said else "", spaces)
    try:
        nodes = Layout(
            place,
            TreeShape(regions, sites),
            host,
            SystemDice(),
            spaces,
            now_ms=SystemClock().now().wall_ms,
            store_key_variable=store_key_variable,
        ).write()
    except PermissionError as error:
        raise DataDirUnusable(place.folder, "it cannot be written", "name another") from error
    for node in nodes:
        click.echo(f"{node}: {place.node(node)}")


def _names_hosts(host: str) -> bool:
    """Whether each node gets the name of a host."""
    try:
        return is_host(host.format(node="region-50-site-50"))
    except (KeyError, IndexError, ValueError):
        return False
