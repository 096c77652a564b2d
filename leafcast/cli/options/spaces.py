"""Options of `leafcast up` that put the centre's spaces on API servers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from leafcast.cli.options.common import gathered
from leafcast.doctor.live_cluster import ALLOW
from leafcast.space_settings import EMBEDDED, CentreSpaces, SpaceSetting


def _kubeconfig(role: str, what: str) -> Callable[..., Any]:
    return click.option(
        f"--{role}-kubeconfig",
        type=click.Path(),
        metavar="FILE",
        help=f"The API server where {what}.  [default: an embedded space]",
    )


def _context(role: str) -> Callable[..., Any]:
    return click.option(
        f"--{role}-context",
        metavar="NAME",
        help="The context to take there.  [default: its current one]",
    )


def _named(kubeconfig: str | None, context: str | None) -> SpaceSetting | None:
    if not (kubeconfig or context):
        return None
    return SpaceSetting("kubeconfig", kubeconfig or "", context or "").seen_from(Path.cwd())


def _spaces(
    *,
    workloads_kubeconfig: str | None,
    workloads_context: str | None,
    inventory_kubeconfig: str | None,
    inventory_context: str | None,
    allow_live: bool,
) -> CentreSpaces | None:
    workloads = _named(workloads_kubeconfig, workloads_context)
    inventory = _named(inventory_kubeconfig, inventory_context)
    if not (workloads or inventory):
        return None
    return CentreSpaces((workloads or EMBEDDED,), (inventory or EMBEDDED,), allow_live=allow_live)


spaces_options = gathered(
    "spaces",
    _spaces,
    _kubeconfig("workloads", "people write workload objects and placements"),
    _context("workloads"),
    _kubeconfig("inventory", "Locations and SyncTargets are"),
    _context("inventory"),
    click.option(
        ALLOW,
        "allow_live",
        is_flag=True,
        help="Also where workload objects come to life beside the centre.",
    ),
)
"""All of them, given to the command as `spaces: CentreSpaces | None`, None if none is given."""
