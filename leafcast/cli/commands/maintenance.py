"""`leafcast maintenance`: let nothing new go to a place while a person works there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from leafcast.ask.failures import CallFailed
from leafcast.ask.maintenance import MaintainedSite, set_maintenance, sites_below
from leafcast.ask.node_names import must_be_there
from leafcast.ask.session import Session
from leafcast.cli import shell_completion
from leafcast.cli.command_group import CommandGroup
from leafcast.cli.options.common import SPAN, NodeAt, data_dir_option
from leafcast.cli.session_calls import in_session
from relay.adapters.clock import SystemClock
from schemas.records.maintenance import NONE, REASON_MAX_CHARACTERS, SECONDS_MAX, Maintenance
from schemas.reports.states import IN_MAINTENANCE
from schemas.values.wording import many


def _seconds(_ctx: click.Context, _param: click.Parameter, said: int) -> int:
    if said > SECONDS_MAX:
        raise click.BadParameter(f"say at most {SECONDS_MAX // 86_400}d; it can be said again")
    return said


def _reason(_ctx: click.Context, _param: click.Parameter, said: str) -> str:
    if len(said) > REASON_MAX_CHARACTERS or not said.isprintable():
        raise click.BadParameter(f"say it in one line of at most {REASON_MAX_CHARACTERS} letters")
    return said


@click.group(cls=CommandGroup)
def maintenance() -> None:
    """Say that a person works at a place: nothing new goes there, and nobody waits for it."""


_path_argument = click.argument(
    "path", type=NodeAt(root=True), shell_complete=shell_completion.paths
)


@maintenance.command()
@_path_argument
@click.option(
    "--for",
    "seconds",
    type=SPAN,
    callback=_seconds,
    default="2h",
    show_default=True,
    metavar="DURATION",
    help="How long, as in 30m, 2h or 3d; it ends by itself.",
)
@click.option("--reason", default="", callback=_reason, metavar="TEXT", help="Why, for others.")
@data_dir_option
def on(path: str, seconds: int, reason: str, data_dir: Path | None) -> None:
    """Begin maintenance at PATH and all edges below it, or say another end or reason.

    They keep what they have: nothing new is applied, nothing is removed, and what somebody changes
    there is not put right, until it ends. They count as in maintenance, also while they are off: no
    wait, rollout or condition waits for them. An edge that is added later is not in it.
    """
    until_ms = SystemClock().now().wall_ms + seconds * 1000
    said = Maintenance(until_ms, " ".join(reason.split()))
    done = in_session(data_dir, lambda session: _set(session, path, said))
    click.echo(f"{_named(path, done)} {IN_MAINTENANCE} {said}")
    click.echo(f"It ends by itself; sooner: leafcast maintenance off {path}")


@maintenance.command()
@_path_argument
@data_dir_option
def off(path: str, data_dir: Path | None) -> None:
    """End maintenance at PATH and all edges below it: what was held back goes there now."""
    done = in_session(data_dir, lambda session: _set(session, path, NONE))
    click.echo(f"{_named(path, done)} {IN_MAINTENANCE} no more")


@maintenance.command("list")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table")
@data_dir_option
def list_(output: str, data_dir: Path | None) -> None:
    """List the edges that are in maintenance, and until when."""
    sites = in_session(data_dir, lambda session: sites_below(session, "/"))
    now_ms = SystemClock().now().wall_ms
    found = [site for site in sites if site.maintenance.is_on(now_ms)]
    if output == "json":
        click.echo(json.dumps([_form(site) for site in found], indent=2))
    for site in found if output != "json" else ():
        click.echo(f"{site.path} is {IN_MAINTENANCE} {site.maintenance}")
    if not found and output != "json":
        click.echo("No edge is in maintenance.")


async def _set(session: Session, path: str, said: Maintenance) -> Sequence[MaintainedSite]:
    if path != "/":
        await must_be_there(session, path)
    sites = await sites_below(session, path)
    if not sites:
        remedy = "maintenance is of edges: leafcast node list shows them"
        raise CallFailed("maintenance", "NotFound", f"no edge is at or below {path}", remedy)
    now_ms = SystemClock().now().wall_ms
    meant = [site for site in sites if said.until_ms or site.maintenance.is_on(now_ms)]
    if not meant:
        message = f"no edge at or below {path} is in maintenance"
        raise CallFailed("maintenance", "NotFound", message, "see: leafcast maintenance list")
    await set_maintenance(session, meant, said)
    return meant


def _named(path: str, sites: Sequence[MaintainedSite]) -> str:
    if len(sites) == 1:
        return f"{sites[0].path} is"
    return f"{many(len(sites), 'edge')} at or below {path} are"


def _form(site: MaintainedSite) -> Mapping[str, Any]:
    said = site.maintenance
    return {
        "path": site.path,
        "syncTarget": site.name,
        "until": said.until,
        "reason": said.reason,
    }
