"""`leafcast accept`: let removals go that nobody said, and that are held for a person's word."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from leafcast.ask.failures import CallFailed
from leafcast.cli.commands.wait import placement_named
from leafcast.cli.options.common import data_dir_option
from leafcast.cli.options.label_selectors import SOME_LABELS
from leafcast.cli.session_calls import call
from leafcast.show.sanitize import sanitize
from schemas.objects.selectors import LabelSelector
from schemas.records.placements import title

SECONDS = 90.0

_call = partial(call, seconds=SECONDS)


@click.command()
@click.argument("placement", required=False, default="")
@click.option("--inventory", is_flag=True, help="SyncTargets and Locations, not a placement.")
@click.option(
    "-l",
    "--selector",
    type=SOME_LABELS,
    metavar="SELECTOR",
    help="What has these labels, such as region=eu: see above.",
)
@click.option("--space", default="", metavar="ID", help="All that a lost space said.")
@click.option("--ledger", is_flag=True, help="What the ledger lost, and nodes still hold.")
@data_dir_option
def accept(
    placement: str,
    space: str,
    selector: LabelSelector | None,
    data_dir: Path | None,
    *,
    inventory: bool,
    ledger: bool,
) -> None:
    """Let a placement's held removals go; without PLACEMENT, list what is held.

    A removal that nobody named is held if it is large: what an edit of a selector or a label takes,
    or objects that are not seen any more after a restart; so is all that a space said which is
    not there any more, and what a restored centre misses. What comes to be held later is held
    again.

    --selector decides for many: SyncTargets and Locations with these labels, and placements with
    them, or that are for such SyncTargets alone. A label that a placement lacks says
    nothing of it. Where nodes have something newer, as after a restore (`leafcast orphans`), it has
    the centre's form count again.
    """
    if bool(placement) + bool(space) + (selector is not None) + inventory + ledger > 1:
        choices = "a placement, --selector, --inventory, --space, or --ledger"
        raise click.UsageError(f"one at a time: {choices}")
    if selector is not None:
        for line in _chosen_lines(selector, data_dir):
            click.echo(sanitize(line))
        return
    if not (placement or space or inventory or ledger):
        for line in _lines(_call(data_dir, "held")):
            click.echo(line)
        return
    named = placement_named(placement) if placement else ""
    try:
        found = _call(
            data_dir, "accept", placement=named, inventory=inventory, ledger=ledger, space=space
        )
    except CallFailed as failed:
        if not named or failed.code != "NotHeld":
            raise
        # Nothing of it is to go, and nodes may have it newer.
        (what,) = _call(data_dir, "accept-newer", placement=named)["newer"]
        click.echo(f"{what}: accepted, the centre's form counts again")
        return
    what = title(found["placement"]) if named else "the ledger" if ledger else "the inventory"
    what = f"space {space}" if space else what
    click.echo(f"{what}: accepted, it goes now ({found['accepted'].partition(';')[0]})")


def _chosen_lines(selector: LabelSelector, data_dir: Path | None) -> list[str]:
    """Decide what has these labels; what became of it."""
    found = _call(data_dir, "accept-chosen", selector=selector.to_kubernetes())
    lines = [f"{what}: accepted, it goes now" for what in found["removals"]]
    lines += [f"{what}: accepted, the centre's form counts again" for what in found["newer"]]
    lines += [
        f"{what}: left as it is: it is for others, too; name it, or widen the selector"
        for what in found["partly"]
    ]
    none = "Nothing with these labels waits"
    return lines or [f"{none}: `leafcast accept` and `leafcast orphans` list all"]


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
