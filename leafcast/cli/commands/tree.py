"""`leafcast tree`: every node, whether it is reached, and how far it is."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from leafcast.ask.session import CallFailed, Session
from leafcast.cli.options.common import data_dir_option
from leafcast.cli.options.output import Output, output_options
from leafcast.cli.printing import Draw, show, watch
from leafcast.show.member_tables import members_view
from leafcast.show.tree_tables import tree_view
from leafcast.show.upgrade_tables import versions_view


@click.command()
@click.option("-w", "--watch", "stays", is_flag=True, help="Go on until Ctrl-C.")
@click.option("--members", is_flag=True, help="Show the members of nodes that run several times.")
@click.option("--versions", is_flag=True, help="Show which release runs where.")
@output_options
@data_dir_option
def tree(
    *,
    stays: bool,
    members: bool,
    versions: bool,
    output: Output,
    data_dir: Path | None,
) -> None:
    """Show the tree, each node with its state and counts.

    LAG is the mail a node has not read yet; DELIVERED and WORKING count the destinations of all
    placements at the node and below it, and "at least" says that not all have answered; OBJECTS is
    how many objects the cluster at an edge holds for them.

    With --members, of each node that runs several times: which member is active and since when, who
    stands by, whose server leads the node's streams, and how many messages another one lacks.

    While no member of the centre is active: what each of them says of itself, and whether its
    server answers.

    With --versions, which release of Leafcast the centre runs, and how many nodes run which at and
    below each of its children; and what becomes of the one that is wanted there.
    """

    async def ask(session: Session) -> Any:
        if versions:
            return await session.call("upgrades")
        return await (_with_members(session) if members else session.call("tree"))

    def paths(found: Any) -> list[str]:
        return [node["path"] for node in found.get("nodes", ())]

    if versions and members:
        raise click.UsageError("--versions shows no members; leave one of them out")
    draw: Draw = members_view if members else partial(tree_view, wide=output.is_wide)
    if versions:
        draw = versions_view
    (watch if stays else show)(data_dir, ask, draw, output, paths)


async def _with_members(session: Session) -> Any:
    """The tree with its members; those of the centre alone while none of them is active."""
    if unled := await session.unled():
        return unled
    try:
        return await session.call("tree", members=True)
    except CallFailed:
        # None may be so since.
        if unled := await session.unled():
            return unled
        raise
