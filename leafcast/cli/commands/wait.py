"""`leafcast wait`: until placements are synced, healthy or ready; when time is up, how far."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from leafcast.ask.failures import CallFailed
from leafcast.ask.resource_names import ResourceKinds, UnknownKind
from leafcast.ask.wait_goals import CONDITIONS, COUNTED, DELETE, Goal, check_share
from leafcast.ask.waits import Wait
from leafcast.cli import shell_completion
from leafcast.cli.options.common import Parsed, data_dir_option
from leafcast.cli.options.label_selectors import SOME_LABELS
from leafcast.cli.options.objects import refuse
from leafcast.cli.session_calls import until_signal
from leafcast.cli.waiting import wait_for
from leafcast.show.wait_states import last_state, met_text
from schemas.objects.selectors import LabelSelector
from schemas.records.placements import PlacementKind, placement_kind
from schemas.values.durations import read_duration

_CONDITION = "condition="


def _conditions(
    _ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...]:
    """`synced`, or `condition=Synced` as kubectl has it, each once."""
    return tuple(dict.fromkeys(map(_read_condition, values)))


def _read_condition(value: str) -> str:
    said = value.removeprefix(_CONDITION).lower()
    if said not in CONDITIONS:
        listed = f"{', '.join(CONDITIONS[:-1])} or {CONDITIONS[-1]}"
        raise click.BadParameter(f'"{value}" is not a condition; write {listed}')
    return said


@click.command()
@click.argument(
    "placements", nargs=-1, metavar="[PLACEMENT]...", shell_complete=shell_completion.placements
)
@click.option(
    "--for",
    "conditions",
    required=True,
    multiple=True,
    callback=_conditions,
    metavar="|".join(CONDITIONS),
    shell_complete=lambda _context, _option, said: [
        word for word in CONDITIONS if word.startswith(said)
    ],
    help="Delivered to all destinations, or also working at all of them, or as its spec.readiness "
    "asks, or through all waves of its Rollout, or gone from the centre. Given several times, all "
    "of these.",
)
@click.option("--all", "every", is_flag=True, help="All placements that there are.")
@click.option(
    "--at-least",
    type=Parsed("share", check_share),
    metavar="SHARE",
    help="Of which share of the destinations, as 95%, it has to be so.  [default: of all]",
)
@click.option(
    "--except-unreachable", is_flag=True, help="Do not wait for those that cannot be reached."
)
@click.option(
    "--except",
    "excepted",
    type=SOME_LABELS,
    multiple=True,
    metavar="LABEL=VALUE",
    help="Nor for those whose SyncTarget has these labels, as -l takes them. May be given again.",
)
@click.option(
    "--timeout",
    type=Parsed("duration", read_duration),
    default="60s",
    show_default=True,
    metavar="DURATION",
    help="How long at most, as in 90s, 5m or 1h30m; 0 looks once.",
)
@data_dir_option
def wait(  # noqa: PLR0913 - click passes options by name
    *,
    placements: tuple[str, ...],
    conditions: tuple[str, ...],
    every: bool,
    at_least: str | None,
    except_unreachable: bool,
    excepted: tuple[LabelSelector, ...],
    timeout: float,
    data_dir: Path | None,
) -> None:
    """Wait until placements are synced or healthy everywhere, ready, rolled out, or gone.

    What was applied before counts, so that `apply` and then `wait` do what one means. Exit code 1
    if time is up, and the last state is told then; at once if it cannot come without a person,
    with the next command. At a terminal a line shows how far it is.
    """
    _check_usage(placements, conditions, every=every)
    if (at_least or except_unreachable or excepted) and not set(conditions) & set(COUNTED):
        raise click.UsageError(
            "--at-least, --except-unreachable and --except go with --for synced or healthy; for "
            "ready the placement says it: spec.readiness.maxUnavailable"
        )
    try:
        goal = Goal(at_least or "", except_unreachable)
        asked = Wait(placements_named(placements), conditions, goal, excepted, timeout)
        met, states, in_vain = until_signal(wait_for(data_dir, asked))
    except UnknownKind as error:
        refuse([str(error)])
    except CallFailed as error:
        if error.code != "NotFound":
            raise
        click.echo(f"Error from server (NotFound): {error}", err=True)
        raise click.exceptions.Exit(1) from error
    for state in states:
        if state["name"] in met:
            click.echo(met_text(state, conditions))
    late = [state for state in states if state["name"] not in met]
    if late:
        seconds = None if in_vain else timeout
        refuse([line for state in late for line in last_state(state, conditions, seconds)])


def _check_usage(placements: Sequence[str], conditions: Sequence[str], *, every: bool) -> None:
    """Refuse what does not go together; raises UsageError."""
    if every and placements:
        raise click.UsageError("name placements or say --all, not both")
    if not every and not placements:
        raise click.UsageError("name a placement, or say --all")
    if DELETE in conditions and len(conditions) > 1:
        raise click.UsageError("--for=delete: what is gone is nothing else; wait for it alone")
    if DELETE in conditions and every:
        raise click.UsageError("--for=delete: name the placements")


def placements_named(placements: Sequence[str]) -> list[str]:
    """Names alone, or as kubectl would have them: `epl/shop`, `epl shop`, `bp/shop`.

    What comes back is for `schemas.records.placements.meant`.
    """
    names = []
    kinds = ResourceKinds()
    first = None
    if len(placements) > 1 and "/" not in placements[0]:
        first = _kind(kinds, placements[0])
    for said in placements[1:] if first else placements:
        word, slash, name = said.partition("/")
        kind = first
        if slash:
            resolved = kinds.resolve(word)
            kind = placement_kind(resolved.group, resolved.resource)
            if kind is None:
                named = "name an EdgePlacement or a BindingPolicy"
                raise click.UsageError(f'"{said}": {named}, not a {resolved.kind}')
        bare = name if slash else said
        names.append(kind.said(bare) if kind else bare)
    return list(dict.fromkeys(names))


def placement_named(word: str) -> str:
    """The one placement that a word names; raises UsageError."""
    try:
        return placements_named([word])[0]
    except UnknownKind as error:
        raise click.UsageError(str(error)) from error


def _kind(kinds: ResourceKinds, word: str) -> PlacementKind | None:
    """The kind of placements that a word says; None of what is the name of one."""
    try:
        resolved = kinds.resolve(word)
    except UnknownKind:
        return None
    return placement_kind(resolved.group, resolved.resource)
