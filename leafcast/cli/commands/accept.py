"""`leafcast accept`: let removals go that nobody said, and that are held for a person's word."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from leafcast.cli.options import data_dir_option
from leafcast.cli.session_calls import call

SECONDS = 90.0

_call = partial(call, seconds=SECONDS)


@click.command()
@click.argument("placement", required=False, default="")
@click.option("--inventory", is_flag=True, help="SyncTargets and Locations, not a placement.")
@data_dir_option
def accept(placement: str, data_dir: Path | None, *, inventory: bool) -> None:
    """Let a placement's held removals go; without PLACEMENT, list what is held.

    A removal that is only inferred, because objects are not seen any more after a restart, is held
    if it is large or a whole kind vanished. What comes to be held later is held again.
    """
    if placement and inventory:
        raise click.UsageError("name a placement, or --inventory, not both")
    if not placement and not inventory:
        for line in _lines(_call(data_dir, "held")):
            click.echo(line)
        return
    found = _call(data_dir, "accept", placement=placement, inventory=inventory)
    what = "the inventory" if inventory else f"edgeplacement/{placement}"
    click.echo(f"{what}: accepted, it goes now ({found['accepted'].partition(';')[0]})")


def _lines(found: dict[str, Any]) -> list[str]:
    placements, inventory = found["placements"], found["inventory"]
    lines = [f"edgeplacement/{name}: {why}" for name, why in sorted(placements.items())]
    remedy = "apply them again, or let them go with `leafcast accept --inventory`"
    lines += [f"{name}: {why}; {remedy}" for name, why in sorted(inventory.items())]
    return lines or ["No removal is held."]
