"""`leafcast rollout`: see how far a change is, and steer it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from leafcast.ask.node_names import must_be_there
from leafcast.ask.rollouts import ask_of, rollout_named, rollouts
from leafcast.ask.session import Session
from leafcast.cli import shell_completion
from leafcast.cli.apply.rollout_ends import released
from leafcast.cli.command_group import CommandGroup
from leafcast.cli.commands.rollout_restore import restore_command, tell_differences
from leafcast.cli.commands.wait import placement_named
from leafcast.cli.options.common import Command, NodeAt, data_dir_option
from leafcast.cli.options.objects import refuse
from leafcast.cli.options.output import Output, output_options
from leafcast.cli.options.placing import rollout_argument
from leafcast.cli.printing import print_found, show, watch
from leafcast.cli.session_calls import call, in_session
from leafcast.show.rollout_tables import history_view, rollout_view, rollouts_view
from leafcast.show.sanitize import sanitize

RELEASE_SECONDS = 30.0


_OF_A_NODE = frozenset({"pin", "freeze"})
_restore_option = click.option(
    "--restore", "restores", is_flag=True, help="Also write the former content at the centre."
)


_at_option = click.option(
    "--at",
    "path",
    required=True,
    type=NodeAt(),
    metavar="PATH",
    shell_complete=shell_completion.paths,
    help="A destination, or a node with all below it, such as /emea.",
)


@click.group(cls=CommandGroup)
def rollout() -> None:
    """See how far a change is, and steer it: approve, pause, abort, undo, pin."""


@rollout.command()
@rollout_argument
@click.option("-w", "--watch", "stays", is_flag=True, help="Go on until Ctrl-C.")
@output_options
@data_dir_option
def status(name: str, *, stays: bool, output: Output, data_dir: Path | None) -> None:
    """Show the waves of a rollout: who is in each, how they fare, and what it waits for.

    Counts are those of the wave's own members. A percentage goes by a hash of each destination, so
    that 10% of 100 may be 7 or 13.
    """
    (watch if stays else show)(data_dir, _finder(name), rollout_view, output, _title)


@rollout.command("list")
@output_options
@data_dir_option
def list_rollouts(*, output: Output, data_dir: Path | None) -> None:
    """List all Rollouts: of which placement, how far, and what each waits for."""
    found = in_session(data_dir, rollouts)
    if output.is_document:
        # As `get rollouts` has it.
        print_found({"apiVersion": "v1", "kind": "List", "items": found}, rollouts_view, output)
    else:
        print_found(found, rollouts_view, output, lambda listed: [_title(it)[0] for it in listed])


@rollout.command()
@rollout_argument
@output_options
@data_dir_option
def history(name: str, *, output: Output, data_dir: Path | None) -> None:
    """List the revisions that `undo` and `pin` can go back to."""
    show(data_dir, _finder(name), history_view, output, _title)


def _steer(action: str, help_text: str, *options: Callable[[Command], Command]) -> None:
    """A command that asks for this, with what its options say."""

    def ask(name: str, data_dir: Path | None, **said: Any) -> None:
        _ask(data_dir, name, action, **said)

    command: Any = data_dir_option(ask)
    for option in reversed(options):
        command = option(command)
    rollout.command(action, help=help_text)(rollout_argument(command))


_steer("pause", "Open no further gate. Who has begun goes on.")
_steer("resume", "Go on where it paused, failed or was held.")
_steer(
    "promote",
    "Skip what the present wave waits for, and begin the next.",
    click.option("--all", is_flag=True, help="All waves: let everyone begin now."),
)
_steer("approve", "Approve a wave that waits for it.", click.argument("wave"))


@rollout.command()
@rollout_argument
@click.option("--keep", is_flag=True, help="Who has the new content keeps it.")
@_restore_option
@data_dir_option
def abort(name: str, data_dir: Path | None, *, keep: bool, restores: bool) -> None:
    """End the rollout. All go back to the former content."""
    _ask(data_dir, name, "abort", restores=restores, keep=keep)


@rollout.command()
@rollout_argument
@click.option("--to", type=click.IntRange(1), metavar="N", help="Which revision.  [the former]")
@click.option("--now", is_flag=True, help="Everywhere at once, not by the waves.")
@_restore_option
@data_dir_option
def undo(name: str, to: int | None, data_dir: Path | None, *, now: bool, restores: bool) -> None:
    """Roll out what an earlier revision was, as a new revision."""
    _ask(data_dir, name, "undo", restores=restores, revision=to, now=now)


_steer("retry", "Let out again, by waves, what was aborted or undone.")
_steer(
    "pin",
    "Keep a destination at one revision, whatever else is rolled out.",
    _at_option,
    click.option("--revision", type=click.IntRange(1), metavar="N", required=True),
)
_steer("unpin", "Let a pinned destination follow the waves again.", _at_option)
_steer("freeze", "Let nothing new go to a node and all below it.", _at_option)
_steer("unfreeze", "Let what is new go there again.", _at_option)


@rollout.command()
@click.argument("placement", shell_complete=shell_completion.placements)
@data_dir_option
def release(placement: str, data_dir: Path | None) -> None:
    """Let a placement go on whose Rollout was deleted under way.

    Everyone gets what the centre says now, at once.
    """
    name = placement_named(placement)
    click.echo(released(call(data_dir, "release", seconds=RELEASE_SECONDS, placement=name)))


def _title(obj: Mapping[str, Any]) -> list[str]:
    """A Rollout as `-o name` prints it."""
    return [f"rollout.leafcast.io/{obj['metadata']['name']}"]


def _finder(name: str) -> Callable[[Session], Any]:
    return lambda session: rollout_named(session, name)


def _ask(
    data_dir: Path | None,
    name: str,
    action: str,
    *,
    restores: bool | None = None,
    **arguments: Any,
) -> None:
    """Have the centre do it; say what became of it, and what differs there, unless it `restores`.

    With None that is nobody's question.
    """
    given = {key: value for key, value in arguments.items() if value is not None}

    async def ask(session: Session) -> None:
        if action in _OF_A_NODE:
            await must_be_there(session, given["path"])
        handled = await ask_of(session, name, action, **given)
        if handled.outcome != "Done":
            refuse([f"rollout/{handled.rollout}: {sanitize(handled.message)}"])
        click.echo(f"rollout.leafcast.io/{handled.rollout} {sanitize(handled.message)}")
        if restores is not None:
            await tell_differences(session, handled.rollout, restores=restores)

    in_session(data_dir, ask)


rollout.add_command(restore_command)
