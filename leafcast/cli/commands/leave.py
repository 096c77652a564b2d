"""`leafcast leave`: a node's service goes from this machine, with all that it kept."""

from __future__ import annotations

from pathlib import Path

import click

from leafcast.cli.node_services import service_of
from leafcast.cli.options.common import NodeAt
from leafcast.service.installed import Services


@click.command()
@click.argument("path", type=NodeAt(root=True, new=True), required=False)
@click.option("--yes", is_flag=True, help="Do not ask whether that is meant.")
@click.option(
    "--service-root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default="/",
    metavar="DIR",
    help="The file system to take it from, as of an image; nothing is stopped.",
)
def leave(*, path: str | None, yes: bool, service_root: Path) -> None:
    """Take the service of the node at PATH away, as `leafcast join --service` wrote it.

    It is stopped; its unit, its token, its keys and what it stored are deleted. PATH may be left
    out where there is one. Run `leafcast node remove PATH` at the centre before: then an edge takes
    back what it applied, and its place in the tree is free. What it does not take back stays in
    its cluster.
    """
    services = Services(service_root)
    name = service_of(services, path)
    if not yes:
        click.confirm(f"Delete {name}, its keys and its state?", abort=True)
    services.remove(name)
    click.echo(f"{name} is gone from this machine, with its keys and its state.")
