"""`leafcast why`: the first stage at which a copy stops on its way, since when, and what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from leafcast.ask.asked_space import key_form
from leafcast.ask.session import Session
from leafcast.cli import shell_completion
from leafcast.cli.options.common import NodeAt, data_dir_option
from leafcast.cli.options.objects import namespace_option, refusals
from leafcast.cli.printing import terminal_width
from leafcast.cli.resource_arguments import BadResourceArguments, meant_objects
from leafcast.cli.session_calls import exit_code_two, in_session
from leafcast.show.explanations import explanation_lines, title_line
from leafcast.show.sanitize import sanitize
from relay.adapters.clock import SystemClock
from schemas.objects.objects import DEFAULT_NAMESPACE
from schemas.records.placements import placement_kind

ASK_SECONDS = 60.0


@click.command()
@click.argument(
    "words",
    nargs=-1,
    required=True,
    metavar="PLACEMENT | KIND/NAME | KIND NAME",
    shell_complete=shell_completion.kinds_and_names,
)
@namespace_option
@click.option(
    "--at",
    required=True,
    type=NodeAt(root=False),
    metavar="PATH",
    shell_complete=shell_completion.paths,
    help="The destination, such as /region-1/site-1. It may be away.",
)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), help="How to print it.")
@data_dir_option
def why(
    *,
    words: tuple[str, ...],
    namespace: str | None,
    at: str,
    output: str | None,
    data_dir: Path | None,
) -> None:
    """Say why an object, or a placement, is not at a destination as it is meant.

    It names the first stage that blocks, since when, and what to do. The exit code is 0 if nothing
    blocks, 1 if something does, and 2 if it cannot be told.
    """

    async def work(session: Session) -> Any:
        asked = await _asked(session, words, namespace)
        return await session.call("why", path=at, seconds=ASK_SECONDS, **asked)

    with exit_code_two(), refusals():
        form = in_session(data_dir, work)
    if output == "json":
        click.echo(json.dumps(form, indent=2))
    else:
        click.echo(sanitize(title_line(form)))
        now_ms = SystemClock().now().wall_ms
        for line in explanation_lines(form, now_ms, terminal_width()):
            click.echo(sanitize(line))
    if not form["ok"]:
        raise click.exceptions.Exit(1)


async def _asked(session: Session, words: tuple[str, ...], namespace: str | None) -> dict[str, Any]:
    """What the words name: a placement, or an object in its namespace."""
    if len(words) == 1 and "/" not in words[0]:
        return {"placement": words[0]}
    meant = await meant_objects(session, words, unknown=True)
    if len(meant) != 1 or len(meant[0].names) != 1:
        raise BadResourceArguments("name one placement, or one object, as in deployment/web")
    kind, (name,) = meant[0].kind, meant[0].names
    placement = placement_kind(kind.group, kind.resource)
    if placement is not None:
        return {"placement": placement.said(name)}
    where = (namespace or DEFAULT_NAMESPACE) if kind.namespaced else ""
    return {"object": key_form(kind.key(where, name))}
