"""`--place` and what goes with it, and the argument that names a Rollout or its placement."""

from __future__ import annotations

import click

from leafcast.ask.resource_names import ResourceKinds, UnknownKind
from leafcast.changes.forms import Placing
from leafcast.cli import shell_completion
from leafcast.cli.options.common import Parsed, gathered
from leafcast.cli.options.label_selectors import SOME_LABELS
from schemas.objects.selectors import LabelSelector
from schemas.records.placements import KINDS
from schemas.values import names
from schemas.values.groups import DENATURED_GROUP

where_option = click.option(
    "--where",
    type=SOME_LABELS,
    metavar="SELECTOR",
    help="To Locations with these labels: env=prod,region in (a,b).  [default: where it goes now, "
    "or all]",
)


def _placement_name(text: str) -> str:
    name = text.removeprefix("epl/").removeprefix("edgeplacement/")
    if fault := names.subdomain_fault(name):
        raise ValueError(f'"{text}": {fault}; {names.SUBDOMAIN_RULE}')
    return name


PLACEMENT_NAME = Parsed("name", _placement_name)
"""The name of an EdgePlacement, which may be said as commands say placements: `epl/NAME`."""


def _placing(*, place: str | None, where: LabelSelector | None, prune_all: bool) -> Placing | None:
    for is_given, option in ((where is not None, "--where"), (prune_all, "--prune-all")):
        if is_given and place is None:
            remedy = "say which: --place NAME"
            raise click.UsageError(f"{option} says how a placement is made; {remedy}")
    return None if place is None else Placing(place, where, prune_all)


placing_options = gathered(
    "placing",
    _placing,
    click.option(
        "--place",
        type=PLACEMENT_NAME,
        metavar="NAME",
        help="Make, and keep, the EdgePlacement NAME of just what is in the files.",
    ),
    where_option,
    click.option(
        "--prune-all",
        is_flag=True,
        help="Yes, take out of that placement, and off edges, what the files hold no more, however "
        "much it is.",
    ),
)
"""`--place`, `--where` and `--prune-all`, given as `placing: Placing | None`."""


def _rollout_name(text: str) -> str:
    """The name of a Rollout or of its placement; `rollout/shop` is `shop`, `epl/shop` stays."""
    word, slash, name = text.rpartition("/")
    if not slash:
        return name
    try:
        meant = ResourceKinds().resolve(word).group_resource
    except UnknownKind:
        meant = None
    if meant == (DENATURED_GROUP, "rollouts"):
        return name
    kind = next((kind for kind in KINDS if (kind.group, kind.resource) == meant), None)
    if kind is None:
        remedy = "write its name, rollout/NAME, or its placement as in epl/NAME"
        raise ValueError(f"{text!r} is no Rollout; {remedy}")
    return kind.said(name)


rollout_argument = click.argument(
    "name", type=Parsed("rollout", _rollout_name), shell_complete=shell_completion.rollouts
)
