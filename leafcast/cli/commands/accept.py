"""`leafcast accept`: let removals go that nobody said, and that are held for a person's word."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from leafcast.ask.resource_names import UnknownKind
from leafcast.cli.commands.wait import placements_named
from leafcast.cli.options.common import data_dir_option
from leafcast.cli.session_calls import call
from schemas.records.placements import title

SECONDS = 90.0

_call = partial(call, seconds=SECONDS)


@click.command()
@click.argument("placement", required=False, default="")
@click.option("--inventory", is_flag=True, help="SyncTargets and Locations, not a placement.")
@click.option("--space", default="", metavar="ID", help="All that a lost space said.")
@click.option("--ledger", is_flag=True, help="What the ledger lost, and nodes still hold.")
@data_dir_option
def accept(
    placement: str, space: str, data_dir: Path | None, *, inventory: bool, ledger: bool
) -> None:
    """Let a placement's held removals go; without PLACEMENT, list what is held.

    A removal that nobody named is held if it is large: what an edit of a selector or a label takes,
    or objects that are not seen any more after a restart; so is all that a space said which is
    not there any more. What comes to be held later is held again.
    """
    if bool(placement) + bool(space) + inventory + ledger > 1:
        raise click.UsageError("one at a time: a placement, --inventory, --space, or --ledger")
    if not (placement or space or inventory or ledger):
        for line in _lines(_call(data_dir, "held")):
            click.echo(line)
        return
    try:
        named = placements_named([placement])[0] if placement else ""
    except UnknownKind as error:
        raise click.UsageError(str(error)) from error
    found = _call(
        data_dir, "accept", placement=named, inventory=inventory, ledger=ledger, space=space
    )
    what = title(found["placement"]) if named else "the ledger" if ledger else "the inventory"
    what = f"space {space}" if space else what
    click.echo(f"{what}: accepted, it goes now ({found['accepted'].partition(';')[0]})")


def _lines(found: dict[str, Any]) -> list[str]:
    placements, inventory = found["placements"], found["inventory"]
    lines = [f"{title(name)}: {why}" for name, why in sorted(placements.items())]
    remedy = "apply them again, or let them go with `leafcast accept --inventory`"
    lines += [f"{name}: {why}; {remedy}" for name, why in sorted(inventory.items())]
    for space, what in sorted(found["spaces"].items()):
        remedy = f"apply them again, then let these go with `leafcast accept --space {space}`"
        lines.append(f"of a space that is lost: {what}; {remedy}")
    if why := found["ledger"]:
        lines.append(f"{why}; apply them again, or let them go with `leafcast accept --ledger`")
    return lines or ["No removal is held."]
