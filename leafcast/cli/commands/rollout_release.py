"""`leafcast rollout release`: a placement goes on whose Rollout was deleted under way."""

from __future__ import annotations

from pathlib import Path

import click

from leafcast.ask.resource_names import UnknownKind
from leafcast.cli import shell_completion
from leafcast.cli.apply.rollout_ends import released
from leafcast.cli.commands.wait import placements_named
from leafcast.cli.options.common import data_dir_option
from leafcast.cli.session_calls import in_session

RELEASE_SECONDS = 30.0


@click.command()
@click.argument("placement", shell_complete=shell_completion.placements)
@data_dir_option
def release(placement: str, data_dir: Path | None) -> None:
    """Let a placement go on whose Rollout was deleted under way.

    Everyone gets what the centre says now, at once.
    """
    try:
        [name] = placements_named([placement])
    except UnknownKind as error:
        raise click.UsageError(str(error)) from error
    answer = in_session(
        data_dir,
        lambda session: session.call("release", seconds=RELEASE_SECONDS, placement=name),
    )
    click.echo(released(answer))
