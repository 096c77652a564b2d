"""`leafcast events`: what nodes noted and how placements changed, the last of it last."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from leafcast.ask.node_names import did_you_mean, named_nodes, path_meant
from leafcast.ask.resource_names import UnknownKind
from leafcast.ask.session import Session
from leafcast.cli import shell_completion
from leafcast.cli.commands.wait import placements_named
from leafcast.cli.options.common import data_dir_option
from leafcast.cli.printing import WATCH_SECONDS, print_view
from leafcast.cli.session_calls import in_session, keep_looking
from leafcast.show.durations import span_text
from leafcast.show.layout import Table, Text
from relay.adapters.clock import SystemClock
from schemas.records.placements import KINDS, kind_of, meant, title
from schemas.values.identity import NodePath
from schemas.values.refusals import BadIdentity
from schemas.values.wording import some_of

TYPES = ("Normal", "Warning")
NAMED_MAX = 12
TITLES = ("AGE", "TYPE", "REASON", "NODE")
WIDTHS_MIN, WIDTHS_MAX = (4, 7, 11, 8), (8, 7, 18, 18)


@click.command()
@click.option("-w", "--watch", "stays", is_flag=True, help="Go on until Ctrl-C.")
@click.option(
    "--for",
    "about",
    metavar="PLACEMENT|PATH",
    default="",
    shell_complete=shell_completion.placements,
    help="Only those about a placement, or about a node and those below it.",
)
@click.option("--types", metavar="TYPE,...", default="", help="Only these: Normal, Warning.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), help="How to print it.")
@click.option("--no-headers", is_flag=True, help="Tables without their header.")
@data_dir_option
def events(
    stays: bool,  # noqa: FBT001 - click passes options by name
    about: str,
    types: str,
    output: str | None,
    no_headers: bool,  # noqa: FBT001
    data_dir: Path | None,
) -> None:
    """Show what happened in the tree lately.

    How placements fared (created, delivered, working, failing), which nodes joined, went and came
    back, and what nodes noted: the last 1,000 different events since the tree was started. With
    -o json: one event a line.
    """
    clock = SystemClock()
    wanted = events_wanted(about, types)

    run, since, titled = "", 0, not no_headers

    async def look(session: Session) -> None:
        nonlocal run, since, titled
        answer = await session.call("events", since=since, run=run)
        run, since = answer["run"], answer["through"]
        found = list(filter(wanted, answer["events"]))
        if output == "json":
            for item in found:
                click.echo(json.dumps(item))
        elif found:
            now_ms = clock.now().wall_ms
            print_view(_events_table(found, now_ms, titled=titled, aligned=stays))
            titled = False
        elif not stays:
            await _check_known(session, about)
            click.echo("No events.", err=True)
        if stays:
            await clock.sleep(WATCH_SECONDS)

    if stays:
        keep_looking(data_dir, look)
    else:
        in_session(data_dir, look)


async def _check_known(session: Session, about: str) -> None:
    """Raises UsageError, naming what there is, if there is nothing of that name."""
    if about.startswith("/"):
        names = [form["path"] for form in (await session.call("tree"))["nodes"]]
        about = str(NodePath.parse(about))
    else:
        names = [form["name"] for form in (await session.call("status"))["placements"]]
        about = meant(placements_named([about])[0], names) if about else ""
    if about and about not in names:
        listed = some_of(names, NAMED_MAX) or "none yet"
        what = "node" if about.startswith("/") else kind_of(about).kind
        nodes = await named_nodes(session)
        hint = did_you_mean(about, nodes) if path_meant(about, nodes) else f"there are: {listed}"
        raise click.UsageError(f"--for {about}: there is no such {what}; {hint}")


def events_wanted(about: str, types: str) -> Callable[[Mapping[str, Any]], bool]:
    """Which events are asked for; raises UsageError."""
    kinds = {word.strip().capitalize() for word in types.split(",")} if types else set(TYPES)
    if unknown := kinds - set(TYPES):
        raise click.UsageError(f"--types {min(unknown)}: name {' or '.join(TYPES)}")
    try:
        node = NodePath.parse(about) if about.startswith("/") else None
        placement = placements_named([about])[0] if about and node is None else ""
        # A name alone may be one of either kind.
        both = [kind.named(about) for kind in KINDS] if placement == about else [placement]
        titles = set(map(title, both))
    except (BadIdentity, UnknownKind) as error:
        raise click.UsageError(f"--for {about}: {error}") from error

    def wanted(event: Mapping[str, Any]) -> bool:
        if event["type"] not in kinds:
            return False
        if node is not None:
            named = (event["node"], event["object"])
            return any(path.startswith("/") and node.holds(NodePath.parse(path)) for path in named)
        return not placement or event["object"] in titles

    return wanted


def _events_table(
    found: Sequence[dict[str, Any]], now_ms: int, *, titled: bool = True, aligned: bool = False
) -> Table:
    """A row an event; `aligned` ones come below each other in several tables."""
    table = Table(headers=titled)
    for header, least, most in zip(TITLES, WIDTHS_MIN, WIDTHS_MAX, strict=True):
        table.add_column(
            header,
            min_width=least if aligned else None,
            max_width=most,
            no_wrap=True,
            overflow="ellipsis",
        )
    table.add_column("MESSAGE", overflow="fold")
    for item in found:
        times = f" (x{item['count']})" if item["count"] > 1 else ""
        about, said = item["object"].removeprefix("edgeplacement/"), item["message"]
        if about and not said.startswith(f"{about} "):
            said = f"{about}: {said}"
        table.add_row(
            span_text((now_ms - item["last_ms"]) / 1000),
            Text(item["type"], style="yellow" if item["type"] == "Warning" else "dim"),
            Text(item["reason"]),
            Text(item["node"]),
            Text(f"{said}{times}"),
        )
    return table
