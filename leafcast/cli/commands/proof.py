"""`leafcast proof`: who signed what a node has, as a file that anyone can check."""

from __future__ import annotations

import json
from pathlib import Path

import click

from leafcast.ask.proofs import asked_proof
from leafcast.ask.session import Session
from leafcast.cli import shell_completion
from leafcast.cli.options.common import NodeAt, data_dir_option
from leafcast.cli.options.objects import refuse
from leafcast.cli.session_calls import in_session
from leafcast.proof_text import proof_lines
from leafcast.proofs import Proof, check_proof, proof_form
from leafcast.show.sanitize import sanitize
from schemas.values.identity import NodePath


@click.command()
@click.argument("placement", default="", shell_complete=shell_completion.placements)
@click.option(
    "--at",
    required=True,
    type=NodeAt(root=True),
    metavar="PATH",
    shell_complete=shell_completion.paths,
    help="The node, such as /region-1/site-1.",
)
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), help="json for `leafcast verify`."
)
@data_dir_option
def proof(placement: str, at: str, output: str | None, data_dir: Path | None) -> None:
    """Show who signed what a node has of PLACEMENT, or of all, up to the root keys.

    The node itself shows the signed messages. With -o json they are a file that anyone checks by
    `leafcast verify`, without the tree. It holds no content, no key and no Secret. Exit code 1 if a
    signature does not lead to the roots.
    """

    async def ask(session: Session) -> Proof:
        return await asked_proof(session, NodePath.parse(at), placement)

    found = in_session(data_dir, ask)
    if placement and not found.records:
        remedy = f"see what it has: leafcast proof --at {at}"
        refuse([f"{at} has no placement {sanitize(placement)}; {remedy}"])
    checked = check_proof(found)
    if output == "json":
        click.echo(json.dumps(proof_form(found), indent=2))
    else:
        for line in proof_lines(found, checked):
            click.echo(sanitize(line))
    if not checked.good:
        raise click.exceptions.Exit(1)
