"""`--place` and what goes with it: a placement of just what is in the files."""

from __future__ import annotations

from typing import Any

import click

from leafcast.changes.forms import Placing
from leafcast.cli.options.common import Command
from leafcast.cli.options.objects import Labels
from schemas.objects.selectors import LabelSelector
from schemas.values import names


class PlacementName(click.ParamType[str]):
    """The name of an EdgePlacement, which may be said as commands say placements: `epl/NAME`."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        name = str(value).removeprefix("epl/").removeprefix("edgeplacement/")
        if fault := names.subdomain_fault(name):
            self.fail(f'"{value}": {fault}; {names.SUBDOMAIN_RULE}', param, ctx)
        return name


where_option = click.option(
    "--where",
    type=Labels(),
    metavar="SELECTOR",
    help="To Locations with these labels: env=prod,region in (a,b).  [default: where it goes now, "
    "or all]",
)


def placing_options(command: Command) -> Command:
    """`--place`, `--where` and `--prune-all`; `placing_of` reads them."""
    place = click.option(
        "--place",
        type=PlacementName(),
        metavar="NAME",
        help="Make, and keep, the EdgePlacement NAME of just what is in the files.",
    )
    prune = click.option(
        "--prune-all",
        is_flag=True,
        help="Yes, take out of that placement, and off edges, what the files hold no more, however "
        "much it is.",
    )
    return place(where_option(prune(command)))


def placing_of(
    place: str | None, where: LabelSelector | None, *, prune_all: bool
) -> Placing | None:
    """What these options say; raises UsageError if they say nothing together."""
    if place is not None:
        return Placing(place, where, prune_all)
    for given, option in ((where is not None, "--where"), (prune_all, "--prune-all")):
        if given:
            raise click.UsageError(
                f"{option} says how a placement is made; say which: --place NAME"
            )
    return None
