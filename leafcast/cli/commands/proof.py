"""`leafcast proof`: who signed what a node has, as a file that anyone can check."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from leafcast.ask.proofs import asked_object_proof, asked_proof, with_keys
from leafcast.ask.session import Session
from leafcast.cli import shell_completion
from leafcast.cli.options.common import NodeAt, data_dir_option
from leafcast.cli.options.objects import namespace_option, refusals, refuse
from leafcast.cli.resource_arguments import BadResourceArguments, meant_objects
from leafcast.cli.session_calls import in_session
from leafcast.proof_text import has_none, proof_lines
from leafcast.proofs import Proof, check_proof, proof_form
from leafcast.show.sanitize import sanitize
from schemas.objects.objects import DEFAULT_NAMESPACE, kind_name
from schemas.values.identity import NodePath

if TYPE_CHECKING:
    from schemas.objects.objects import ObjectKey


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
    "--object",
    "word",
    metavar="KIND/NAME",
    shell_complete=shell_completion.kinds_and_names,
    help="Who signed this object of the edge: all placements that deliver it, or PLACEMENT alone.",
)
@namespace_option
@click.option(
    "--with-key",
    is_flag=True,
    help="Put into the JSON the keys that open what leads to the object, in a tree that seals. "
    "Who has one can read all that its placement delivered under it.",
)
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), help="json for `leafcast verify`."
)
@data_dir_option
def proof(
    *,
    placement: str,
    at: str,
    word: str | None,
    namespace: str | None,
    with_key: bool,
    output: str | None,
    data_dir: Path | None,
) -> None:
    """Show who signed what a node has of PLACEMENT, or of all, up to the root keys.

    The node itself shows the signed messages. With --object they are those by which one object is
    at an edge, and what leads from each to the object's hash. With -o json they are a file that
    anyone checks by `leafcast verify`, without the tree. It holds no content, no Secret and, but
    with --with-key, no key. Exit code 1 if a signature does not lead to the roots.
    """
    if word is None and (with_key or namespace is not None):
        raise click.UsageError("-n and --with-key go with --object KIND/NAME")
    path = NodePath.parse(at)

    async def ask(session: Session) -> Proof:
        if word is None:
            return await asked_proof(session, path, placement)
        key = await _meant(session, word, namespace or DEFAULT_NAMESPACE)
        found = await asked_object_proof(session, path, key, placement)
        # To look at it here the centre opens what is its own.
        return await with_keys(session, found) if with_key or output != "json" else found

    with refusals():
        found = in_session(data_dir, ask)
    if not found.records and (placement or word):
        refuse([_nothing(found, placement)])
    checked = check_proof(found)
    if output == "json":
        click.echo(json.dumps(proof_form(found), indent=2))
    else:
        for line in proof_lines(found, checked):
            click.echo(sanitize(line))
    if not checked.good:
        raise click.exceptions.Exit(1)


async def _meant(session: Session, word: str, namespace: str) -> ObjectKey:
    """The object that is named; raises BadResourceArguments, UnknownKind."""
    meant = await meant_objects(session, [word], unknown=True)
    if len(meant) != 1 or len(meant[0].names) != 1:
        raise BadResourceArguments("name one object, as in deployment/web")
    return meant[0].kind.key(namespace, meant[0].names[0])


def _nothing(proof: Proof, placement: str) -> str:
    """Why there is nothing to show, and what to do."""
    at, about = proof.path, proof.about
    if about is None:
        return "; ".join(has_none(at, sanitize(placement)))
    does = f"{sanitize(placement)} does not deliver" if placement else "no placement delivers"
    remedy = f"see: leafcast why {kind_name(*about.key.group_resource)}/{about.key.name} --at {at}"
    return f"{does} {about.key} at {at} now; {remedy}"
