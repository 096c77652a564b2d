"""`leafcast layout`: the files of a tree whose nats-servers and nodes are run by someone else."""

from __future__ import annotations

from pathlib import Path

import click

from leafcast.cli.space_options import spaces_options
from leafcast.data_dir import DataDir, DataDirUnusable
from leafcast.local.layout import Layout
from leafcast.local.views import TreeShape
from leafcast.space_settings import CentreSpaces
from relay.adapters.clock import SystemClock, SystemDice

_MARK = "{node}"


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--regions",
    type=click.IntRange(0, 50),
    default=2,
    show_default=True,
    help="Relays below the centre; 0 for the centre alone, whose nodes join with bundles.",
)
@click.option("--sites", type=click.IntRange(1, 50), default=3, show_default=True)
@click.option(
    "--host",
    default=f"nats-{_MARK}",
    show_default=True,
    help="Host name of a node's nats-server; {node} is centre, region-1, region-1-site-2, ...",
)
@spaces_options
def layout(folder: Path, regions: int, sites: int, host: str, spaces: CentreSpaces | None) -> None:
    """Write the files of a whole tree to FOLDER, for containers or machines of your own.

    Each node gets a folder with nats.conf for its nats-server and node.yaml for `leafcast run`,
    and secrets beside them. Where they are already, nothing changes. Files that spaces are named
    by are looked for where the centre will run.
    """
    if _MARK not in host:
        raise click.BadParameter(f"it needs {_MARK} in it", param_hint="--host")
    place = DataDir(folder.absolute())
    try:
        nodes = Layout(
            place,
            TreeShape(regions, sites),
            host,
            SystemDice(),
            spaces,
            now_ms=SystemClock().now().wall_ms,
        ).write()
    except PermissionError as error:
        raise DataDirUnusable(place.folder, "it cannot be written", "name another") from error
    for node in nodes:
        click.echo(f"{node}: {place.node(node)}")
