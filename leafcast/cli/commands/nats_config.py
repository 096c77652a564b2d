"""`leafcast nats-config NODE`: the configuration that a node's nats-server runs on."""

from __future__ import annotations

import re
from pathlib import Path

import click

from leafcast.cli import shell_completion
from leafcast.cli.options.common import NodeAt, data_dir_option
from leafcast.data_dir import DataDir
from schemas.values.identity import NodePath

# An nkey seed, whatever it opens: base32 from S and the kind of key on.
_SEED = re.compile(r"\bS[A-Z2-7]{57}\b")


@click.command("nats-config")
@click.argument("node", type=NodeAt(root=True), shell_complete=shell_completion.paths)
@click.option("--show-secrets", is_flag=True, help="Print the seed of the link to the parent, too.")
@data_dir_option
def nats_config(node: str, show_secrets: bool, data_dir: Path | None) -> None:  # noqa: FBT001 - click
    """Print the nats-server configuration of a node.

    NODE is its path, such as / or /region-1. The text is what its server runs on, or ran on last.
    """
    place = DataDir.at(data_dir)
    path = NodePath.parse(node)
    file = place.node(path) / "nats.conf"
    try:
        text = file.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        remedy = (
            "`leafcast tree` shows the nodes; one that joined keeps nats.conf where it runs"
            if place.in_use()
            else "run `leafcast up` first"
        )
        raise click.ClickException(
            f"node {path} has no nats-server in {place.folder}; {remedy}"
        ) from None
    click.echo(text if show_secrets else redacted(text), nl=False)


def redacted(text: str) -> str:
    """The text without seeds."""
    return _SEED.sub("<redacted; see --show-secrets>", text)
