"""`--place` and what goes with it: a placement of just what is in the files."""

from __future__ import annotations

import click

from leafcast.changes.forms import Placing
from leafcast.cli.options.common import Command, Parsed
from leafcast.cli.options.objects import LABELS
from schemas.objects.selectors import LabelSelector
from schemas.values import names


def _placement_name(text: str) -> str:
    name = text.removeprefix("epl/").removeprefix("edgeplacement/")
    if fault := names.subdomain_fault(name):
        raise ValueError(f'"{text}": {fault}; {names.SUBDOMAIN_RULE}')
    return name


PLACEMENT_NAME = Parsed("name", _placement_name)
"""The name of an EdgePlacement, which may be said as commands say placements: `epl/NAME`."""

where_option = click.option(
    "--where",
    type=LABELS,
    metavar="SELECTOR",
    help="To Locations with these labels: env=prod,region in (a,b).  [default: where it goes now, "
    "or all]",
)


def placing_options(command: Command) -> Command:
    """`--place`, `--where` and `--prune-all`; `placing_of` reads them."""
    place = click.option(
        "--place",
        type=PLACEMENT_NAME,
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
