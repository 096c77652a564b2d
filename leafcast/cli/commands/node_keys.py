"""`leafcast node rotate` and `revoke`: the key with which a node proves itself to its parent."""

from __future__ import annotations

from pathlib import Path

import click

from leafcast.cli import shell_completion
from leafcast.cli.options.common import NodeAt, data_dir_option
from leafcast.cli.session_calls import call

SECONDS = 120.0
ROTATE_FLEET = "leafcast keys rotate fleet"


@click.command()
@click.argument("path", type=NodeAt(), shell_complete=shell_completion.paths)
@data_dir_option
def rotate(path: str, data_dir: Path | None) -> None:
    """Give the node at PATH a new key, made where it runs.

    Both keys are good until the node is in session with the new one. What is broken off goes on
    with the same command.
    """
    answer = call(data_dir, "node-rotate", seconds=SECONDS, path=path)
    click.echo(f"node {path} has a new key, {answer['nkey'][:12]}...; the old one is void")


@click.command()
@click.argument("path", type=NodeAt(), shell_complete=shell_completion.paths)
@data_dir_option
def revoke(path: str, data_dir: Path | None) -> None:
    """Make the key of the node at PATH void, and cut its link.

    It stays a place in the tree, and its cluster keeps what it has. Let it in again with a token:
    leafcast node add PATH.
    """
    answer = call(data_dir, "node-revoke", seconds=SECONDS, path=path)
    if answer["cut"]:
        click.echo(f"node {path} revoked: its link is cut")
    else:
        above = answer["parent"]
        click.echo(
            f"node {path} revoked; {above} does not answer, and cuts its link when it is back"
        )
    if answer["edge"]:
        click.echo(f"It has the fleet key; to seal under another one: {ROTATE_FLEET}")
    click.echo(f"To let it in again: leafcast node add {path}")
