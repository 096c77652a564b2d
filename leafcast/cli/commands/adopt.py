"""`leafcast adopt` and `withdraw`: what the edges hold and no object of the centre says."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

from leafcast.cli.options import data_dir_option
from leafcast.cli.session_calls import call
from leafcast.show.plurals import inventory_objects, many

SECONDS = 120.0

Command = TypeVar("Command", bound=Callable[..., Any])

_call = partial(call, seconds=SECONDS)


def _space_option(command: Command) -> Command:
    return click.option(
        "--space", default="", metavar="ID", help="The space it was said in, or how its id begins."
    )(command)


@click.command()
@click.argument("placement", required=False, default="")
@_space_option
@click.option(
    "--without",
    metavar="PATH",
    default="",
    help="Go on although this child of the centre does not show what it holds.",
)
@click.option("--inventory", is_flag=True, help="The SyncTargets and Locations that were lost.")
@data_dir_option
def adopt(
    placement: str, space: str, without: str, data_dir: Path | None, *, inventory: bool
) -> None:
    """Make an orphan a placement again; without PLACEMENT, list orphans.

    An orphan is a placement that edges hold and no EdgePlacement says, as after the centre was
    lost. Its objects are written into the centre's space; what is there already stays as it is. A
    centre that lost its ledger waits for all its children: --without goes on without one, and what
    only that one holds, and cannot show now, is removed from it.
    """
    if bool(placement) + bool(without) + inventory > 1:
        raise click.UsageError("one at a time: a placement, --inventory, or --without")
    if space and not placement:
        raise click.UsageError("--space goes with a PLACEMENT")
    if inventory:
        found = _call(data_dir, "adopt-inventory")
        click.echo(f"inventory adopted: {inventory_objects(found['objects'])}")
        return
    if without:
        _call(data_dir, "go-on-without", path=without)
        click.echo(f"The centre goes on without {without}.")
        return
    if not placement:
        for line in _lines(_call(data_dir, "orphans")):
            click.echo(line)
        return
    found = _call(data_dir, "adopt", placement=placement, space=space)
    click.echo(f"edgeplacement/{placement} adopted, with {many(found['objects'] - 1, 'object')}")


@click.command()
@click.argument("placement")
@_space_option
@data_dir_option
def withdraw(placement: str, space: str, data_dir: Path | None) -> None:
    """Remove an orphan from all edges; `leafcast adopt` lists orphans.

    Objects that another placement wants as well stay.
    """
    _call(data_dir, "withdraw", placement=placement, space=space)
    click.echo(f"{placement} withdrawn")


def _lines(found: dict[str, Any]) -> list[str]:
    if found["recovering"]:
        waiting = ", ".join(found["recovering"])
        return [
            f"The centre lost its ledger, and reads it back; it waits for {waiting}.",
            f"To go on without one: leafcast adopt --without {found['recovering'][0]}",
        ]
    lost = []
    if found["strangers"]:
        what = f"Of an inventory that is lost: {inventory_objects(found['strangers'])}"
        lost = [f"{what}; bring them back: leafcast adopt --inventory"]
    if not found["orphans"]:
        return lost or ["No orphans: each placement in force has its EdgePlacement."]
    rows = [("PLACEMENT", "SPACE")] + [
        (orphan["name"], "this one" if orphan["here"] else orphan["space"])
        for orphan in found["orphans"]
    ]
    width = max(len(name) for name, _ in rows)
    return [f"{name:<{width}}   {space}" for name, space in rows] + lost
