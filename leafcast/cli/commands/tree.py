"""`leafcast tree`: every node, whether it is reached, and how far it is."""

from __future__ import annotations

from pathlib import Path

import click

from leafcast.cli.options.common import data_dir_option
from leafcast.cli.printing import show, watch
from leafcast.show.tree_tables import tree_view


@click.command()
@click.option("-w", "--watch", "stays", is_flag=True, help="Go on until Ctrl-C.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), help="How to print it.")
@data_dir_option
def tree(stays: bool, output: str | None, data_dir: Path | None) -> None:  # noqa: FBT001 - click
    """Show the tree, each node with its state and counts.

    LAG is the mail a node has not read yet; DELIVERED and WORKING count the destinations of all
    placements at the node and below it, and "at least" says that not all have answered; OBJECTS is
    how many objects the cluster at an edge holds for them.
    """
    (watch if stays else show)(data_dir, lambda session: session.call("tree"), tree_view, output)
