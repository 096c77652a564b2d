"""`leafcast doctor`: what is well, what is wrong, why, and what to do."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import click
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from leafcast.ask.session import CallFailed, NotRunning
from leafcast.cli.options.common import data_dir_option
from leafcast.cli.printing import print_view
from leafcast.cli.session_calls import in_session, until_signal
from leafcast.data_dir import DataDir
from leafcast.doctor.asking import asked_facts, free_bytes
from leafcast.doctor.checks import checks
from leafcast.doctor.findings import Check, DoctorFacts, SpaceFact, exit_code
from leafcast.doctor.space_checks import look_at_spaces
from relay.adapters.clock import SystemClock, SystemDice
from schemas.values.wording import many

NAMED_MAX = 8
_MARKS = {"ok": ("✓", "green"), "warning": ("!", "yellow"), "failure": ("✗", "red")}


@click.command()
@click.option("-o", "--output", type=click.Choice(["table", "json"]), help="How to print it.")
@click.option("--json", "as_json", is_flag=True, help="The same as -o json.")
@data_dir_option
def doctor(output: str | None, as_json: bool, data_dir: Path | None) -> None:  # noqa: FBT001 - click
    """Check the tree: servers, links, lag, clocks, disks, staleness, stuck objects.

    Each failure has its cause and a remedy. Exit code 1 if something failed; warnings do not count.
    """
    found = checks(replace(_facts(data_dir), spaces=_spaces(data_dir)))
    code = exit_code(found)
    if as_json or output == "json":
        click.echo(json.dumps(doctor_form(found), indent=2))
    else:
        print_view(doctor_view(found))
    if code:
        raise click.exceptions.Exit(code)


def doctor_form(found: Sequence[Check]) -> dict[str, Any]:
    """All checks for scripts, none left out."""
    states = [check.state for check in found]
    return {
        "ok": not exit_code(found),
        "failures": states.count("failure"),
        "warnings": states.count("warning"),
        "checks": list(map(asdict, found)),
    }


def doctor_view(found: Sequence[Check]) -> RenderableType:
    """The checks, group by group; of one where many failed, the first are told."""
    lines: list[RenderableType] = []
    for group, listed in groupby(found, key=lambda check: check.group):
        lines.append(Text(group, style="bold"))
        lines += _group([*listed])
    form = doctor_form(found)
    bad, odd = form["failures"], form["warnings"]
    said = f"{bad} failed, {many(odd, 'warning')}" if bad or odd else "all is well"
    return Group(*lines, Text(), Text(said, style="red" if bad else "yellow" if odd else "green"))


def _group(listed: Sequence[Check]) -> Iterator[RenderableType]:
    told = 0
    for check in listed:
        told += check.state != "ok"
        if told > NAMED_MAX:
            continue
        mark, style = _MARKS[check.state]
        yield _hanging(Text(mark, style=style), Text(check.said), 2)
        if check.cause:
            yield _hanging(Text("why:", style="dim"), Text(check.cause), 4)
        if check.remedy:
            yield _hanging(Text("do:", style="dim"), Text(check.remedy), 4)
    if told > NAMED_MAX:
        yield Text(f"    and {told - NAMED_MAX} more: leafcast doctor -o json", style="dim")


def _hanging(label: Text, said: Text, indent: int) -> RenderableType:
    """Text behind a label; further lines begin where the text does."""
    row = Table.grid(padding=(0, 1))
    row.add_column(no_wrap=True)
    row.add_column(overflow="fold")
    row.add_row(label, said)
    return Padding(row, (0, 0, 0, indent))


def _facts(data_dir: Path | None) -> DoctorFacts:
    place = DataDir.at(data_dir)
    try:
        return in_session(data_dir, lambda it: asked_facts(it.call, it.data_dir))
    except (NotRunning, CallFailed) as error:
        if isinstance(error, CallFailed) and place.is_of_node_below():
            # It runs, and says where one asks.
            raise
        now_ms = SystemClock().now().wall_ms
        hangs, folder = place.in_use(), str(place.folder)
        # The checks have a remedy of their own.
        reason = error.reason if isinstance(error, NotRunning) else error.message
        has_members = place.asks_members()
        return DoctorFacts(
            now_ms,
            folder,
            free_bytes(place),
            not_running=reason,
            hangs=hangs,
            has_members=has_members,
            unled=_unled(data_dir) if hangs and has_members else (),
        )


def _unled(data_dir: Path | None) -> Sequence[Mapping[str, Any]]:
    """What the members of the centre say of themselves, if none of them is active."""
    with suppress(NotRunning, CallFailed):
        told = in_session(data_dir, lambda it: it.unled())
        return [it for node in told.get("nodes", ()) for it in node["members"]]
    return ()


def _spaces(data_dir: Path | None) -> list[SpaceFact]:
    """What is seen from here of the centre's spaces on API servers."""
    looking = look_at_spaces(DataDir.at(data_dir).spaces(), SystemClock(), SystemDice())
    return until_signal(looking)
