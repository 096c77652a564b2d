"""`leafcast wait`: until placements are synced or healthy everywhere; when time is up, how far."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from leafcast.ask.resource_names import ResourceKinds, UnknownKind
from leafcast.ask.session import CallFailed, Session
from leafcast.cli import shell_completion
from leafcast.cli.options.common import data_dir_option
from leafcast.cli.options.objects import refuse
from leafcast.cli.session_calls import look_until
from leafcast.show.holds import going_out, hold_text, milliseconds
from leafcast.signals import Ended, run_until_signal
from relay.adapters.clock import SystemClock
from schemas.durations import BadDuration, read_duration
from schemas.placements import (
    BINDING_POLICIES,
    PlacementKind,
    kind_of,
    long_title,
    placement_kind,
    short_title,
)
from schemas.wording import all_but, many, namespace_first

ERRORS_MAX = 5
SLICE_SECONDS, GRACE_SECONDS = 10.0, 5.0
ROLLED_OUT, DELETE = "rolled-out", "delete"
CONDITIONS = ("synced", "healthy", ROLLED_OUT, DELETE)
_CONDITION = "condition="


class _Duration(click.ParamType[float]):
    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            return read_duration(str(value))
        except BadDuration as error:
            self.fail(str(error), param, ctx)


def _condition(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    """`synced`, or `condition=Synced` as kubectl has it."""
    said = value.removeprefix(_CONDITION).lower()
    if said not in CONDITIONS:
        raise click.BadParameter(
            f'"{value}" is not a condition; write synced, healthy, rolled-out or delete'
        )
    return said


@click.command()
@click.argument(
    "placements",
    nargs=-1,
    required=True,
    metavar="PLACEMENT...",
    shell_complete=shell_completion.placements,
)
@click.option(
    "--for",
    "condition",
    required=True,
    callback=_condition,
    metavar="|".join(CONDITIONS),
    shell_complete=lambda _context, _option, said: [
        word for word in CONDITIONS if word.startswith(said)
    ],
    help="Delivered to all destinations, or also working at all of them, or through all waves "
    "of its Rollout, or gone from the centre.",
)
@click.option(
    "--timeout",
    type=_Duration(),
    default="60s",
    show_default=True,
    metavar="DURATION",
    help="How long at most, as in 90s, 5m or 1h30m; 0 looks once.",
)
@data_dir_option
def wait(
    *, placements: tuple[str, ...], condition: str, timeout: float, data_dir: Path | None
) -> None:
    """Wait until placements are synced or healthy at every destination, rolled out, or gone.

    What was applied before counts, so that `apply` and then `wait` do what one means. Exit code 1
    if time is up; the last state is told then.
    """
    if condition == DELETE and any("/" not in said for said in placements):
        # What is gone cannot tell which of two kinds the name meant.
        raise click.UsageError("--for=delete: name the kind, too: epl/NAME or bp/NAME")
    try:
        names = placements_named(placements)
        met, states = run_until_signal(_wait(data_dir, names, condition, timeout))
    except Ended as end:
        raise click.exceptions.Exit(end.exit_code) from end
    except UnknownKind as error:
        refuse([str(error)])
    except CallFailed as error:
        if error.code != "NotFound":
            raise
        click.echo(f"Error from server (NotFound): {error}", err=True)
        raise click.exceptions.Exit(1) from error
    by_name = {state["name"]: state for state in states}
    for name in names:
        if name in met:
            state = by_name[name]
            click.echo(f"{long_title(_placement(state))} condition met{_absent(state)}")
    late = [state for state in states if state["name"] not in met]
    if late:
        refuse([line for state in late for line in last_state(state, condition, timeout)])


async def _wait(
    data_dir: Path | None, names: Sequence[str], condition: str, seconds: float
) -> tuple[set[str], list[dict[str, Any]]]:
    """Ask until they meet the condition or time is up, through restarts of the tree.

    A tree that does not answer the first question is not waited for.
    """
    clock = SystemClock()
    until = clock.now().seconds + seconds

    async def look(session: Session) -> tuple[set[str], list[dict[str, Any]]] | None:
        left = max(0.0, until - clock.now().seconds)
        answer = await _asked(session, names, condition, min(left, SLICE_SECONDS))
        left = until - clock.now().seconds
        in_vain = not set(answer["met"]) >= set(names) and _opens_too_late(answer, left)
        if left <= 0 or set(answer["met"]) >= set(names) or in_vain:
            return set(answer["met"]), answer["placements"]
        return None

    return await look_until(data_dir, look, _tell, lambda: clock.now().seconds >= until)


def _tell(text: str) -> None:
    click.echo(f"leafcast: {text}", err=True)


def _opens_too_late(answer: Mapping[str, Any], seconds: float) -> bool:
    """Whether something holds a placement that ends only after so many seconds."""
    end_ms = SystemClock().now().wall_ms + seconds * 1000
    unmet = (state for state in answer["placements"] if state["name"] not in answer["met"])
    untils = (hold.get("until") for state in unmet for hold in state.get("held", ()))
    return any(until and (milliseconds(until) or 0) > end_ms for until in untils)


async def _asked(session: Session, names: Sequence[str], condition: str, seconds: float) -> Any:
    return await session.call(
        "wait",
        seconds=seconds + GRACE_SECONDS,
        placements=list(names),
        condition=condition,
        timeout=seconds,
    )


def last_state(state: Mapping[str, Any], condition: str, seconds: float) -> Iterator[str]:
    """Where a placement stood when time was up, the worst of it, and what to do."""
    name = state["name"]
    wanted = "gone" if condition == DELETE else condition
    waited = f"waiting for {long_title(_placement(state))} to be {wanted}"
    yield f"timed out after {seconds:g}s {waited}: {_figures(state)}"
    if state.get("problem"):
        yield f"  {state['problem']}"
    for hold in state.get("held", ()):
        yield f"  held: {hold_text(hold)}"
        yield f"  next: {hold['remedy']}"
    if condition == ROLLED_OUT and state.get("rollout"):
        yield f"  {state['rollout']}"
    worst = sorted(state["exceptions"], key=lambda one: (one["severity"], -one["count"]))
    for one in worst[:ERRORS_MAX]:
        what = ": ".join(filter(None, (namespace_first(one["object"]), one["reason"])))
        yield f"  {what} (at {one['count']}, e.g. {one['path']})"
    look = "rollout status" if condition == ROLLED_OUT else "status"
    yield f"  see: leafcast {look} {_short(name)}"


def _short(name: str) -> str:
    """A name as commands take it."""
    return short_title(name) if "/" in name else name


def _placement(state: Mapping[str, Any]) -> str:
    """Which one was meant by the name."""
    return str(state.get("placement", state["name"]))


def _absent(state: Mapping[str, Any]) -> str:
    """Who is not waited for."""
    return f" ({state['never_joined']} never joined)" if state["never_joined"] else ""


def _figures(state: Mapping[str, Any]) -> str:
    whole = state["destinations"]
    least = "" if state["complete"] else "at least "
    if not whole and state["never_joined"]:
        return f"none of its {many(state['never_joined'], 'destination')} has joined yet"
    if not whole and state["complete"]:
        if kind_of(_placement(state)) is BINDING_POLICIES:
            return "0 of 0 destinations; its clusterSelectors match no SyncTarget"
        return "0 of 0 destinations; its locationSelectors match no Location that has a SyncTarget"
    states, health = state["states"], state["health"]
    synced, healthy = states.get("synced", 0), health.get("healthy", 0)
    said = [
        f"{least}{synced} of {many(whole, 'destination')} synced{all_but(states, 'synced')}",
        f"{healthy} healthy{all_but(health, 'healthy')}",
    ]
    if going := going_out(state):
        said.append(going)
    if state["blocking"]:
        said.append(f"no answer yet from {', '.join(state['blocking'])}")
    return ", ".join(said)


def placements_named(placements: Sequence[str]) -> list[str]:
    """Names alone, or as kubectl would have them: `epl/shop`, `epl shop`, `bp/shop`.

    What comes back is for `schemas.placements.meant`.
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


def _kind(kinds: ResourceKinds, word: str) -> PlacementKind | None:
    """The kind of placements that a word says; None of what is the name of one."""
    try:
        resolved = kinds.resolve(word)
    except UnknownKind:
        return None
    return placement_kind(resolved.group, resolved.resource)
