"""`leafcast render`: what an object becomes at one destination, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

from leafcast.ask.asked_space import key_form
from leafcast.ask.object_readers import EdgeReader, NotFound
from leafcast.ask.session import Session
from leafcast.cli import shell_completion
from leafcast.cli.options.common import NodeAt, data_dir_option
from leafcast.cli.options.objects import namespace_option, refusals
from leafcast.cli.resource_arguments import (
    BadResourceArguments,
    ObjectSelection,
    read_arguments,
    with_kinds,
)
from leafcast.cli.session_calls import exit_code_two, in_session
from leafcast.show.object_output import diff_lines, yaml_text
from leafcast.show.rendering import rendering_lines
from leafcast.show.sanitize import sanitize
from relay.objects.merge import merge_applied, wish_of
from relay.objects.nulls import said_by
from schemas.objects.objects import DEFAULT_NAMESPACE


@click.command()
@click.argument(
    "objects",
    nargs=-1,
    metavar="KIND NAME | KIND/NAME",
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
@click.option(
    "--why", is_flag=True, help="Show what was put in, and who says it; and what is not sent."
)
@click.option(
    "--live",
    is_flag=True,
    help="Compare with the copy that is there, as `diff` does: exit code 1 if it differs, 2 if "
    "that cannot be told.",
)
@data_dir_option
def render(
    *,
    objects: tuple[str, ...],
    namespace: str | None,
    at: str,
    why: bool,
    live: bool,
    data_dir: Path | None,
) -> None:
    """Show what an object of the centre becomes at a destination."""
    if why and live:
        raise click.UsageError("--why tells of the centre, --live of the copy: give one of them")

    async def work(session: Session) -> tuple[list[str], list[str]]:
        meant = await with_kinds(session, lambda kinds: _one(read_arguments(kinds, objects)))
        (name,), where = meant.names, namespace or DEFAULT_NAMESPACE
        key = key_form(meant.kind.key(where, name))
        form = await session.call("render", path=at, key=key)
        if live:
            lines = await _difference(session, at, meant, where, form["object"])
        elif why:
            lines = list(rendering_lines(form))
        else:
            lines = yaml_text(form["object"]).splitlines()
        return lines, form["notes"]

    with exit_code_two() if live else nullcontext(), refusals():
        lines, notes = in_session(data_dir, work)
    for note in notes:
        click.echo(f"Note: {sanitize(note)}", err=True)
    for line in lines:
        click.echo(sanitize(line))
    if live and lines:
        raise click.exceptions.Exit(1)


def _one(meant: Sequence[ObjectSelection]) -> ObjectSelection:
    if len(meant) != 1 or len(meant[0].names) != 1:
        raise BadResourceArguments("name one object, as in deployment/web")
    return meant[0]


async def _difference(
    session: Session, at: str, meant: ObjectSelection, namespace: str, wanted: Mapping[str, Any]
) -> list[str]:
    """How the copy at a destination would change to be as it is meant; nothing if it is."""
    reader = EdgeReader(session, at)
    try:
        live = await reader.get(meant.kind, namespace, meant.names[0])
    except NotFound:
        before, after = {}, dict(wanted)
    else:
        # What the edge brought up once does not tell how it is now.
        for failed in reader.away:
            raise failed
        there = said_by(live)
        before, after = wish_of(there), wish_of(merge_applied(there, {}, said_by(wanted)))
    name = f"{meant.kind.title(meant.names[0])} at {at}"
    return diff_lines(before, after, name, "RENDERED")
