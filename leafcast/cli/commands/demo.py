"""`leafcast demo`: a real tree on this machine delivers an application, and shows how it went.

Standard output is a live picture at a terminal, else one document; everything else is said on
standard error.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from rich.console import Console

from leafcast.cli.options.objects import refusals
from leafcast.demo.progress import DemoProgress
from leafcast.demo.run import run_demo, temporary_folder
from leafcast.demo.screen import Screen
from leafcast.demo.view import summary_table
from leafcast.demo.workload import Workload, load_files, load_shop
from leafcast.local.tree import local_tree
from leafcast.local.views import (
    DEPTH_MAX,
    DEPTH_MIN,
    REGIONS_MAX,
    SERVERS_MAX,
    SITES_MAX,
    TIMEOUT_SECONDS_MAX,
    TreeShape,
    TreeView,
)
from leafcast.signals import EndedBySignal, run_until_signal
from relay.adapters.clock import SystemClock
from schemas.values.wording import many

KEPT_NAMED_MAX = 5
CTRL_C = 130


@click.command()
@click.option(
    "--regions",
    type=click.IntRange(1, REGIONS_MAX),
    default=2,
    show_default=True,
    help="Relays below the centre.",
)
@click.option(
    "--sites",
    type=click.IntRange(1, SITES_MAX),
    default=3,
    show_default=True,
    help="Edges below each region, each with a simulated cluster.",
)
@click.option(
    "--depth",
    type=click.IntRange(DEPTH_MIN, DEPTH_MAX),
    default=3,
    show_default=True,
    help="Tiers in all: 3 are centre, regions and sites; more put relays between those two.",
)
@click.option(
    "--file",
    "-f",
    "files",
    multiple=True,
    metavar="PATH",
    help="Deliver these manifests and not the shop: a file, a folder (all its *.yaml, *.yml and "
    "*.json), or - for standard input. Repeatable. Without an EdgePlacement among them, one is "
    "made that sends all of them everywhere.",
)
@click.option(
    "--timeout",
    "timeout_seconds",
    metavar="SECONDS",
    default=120.0,
    show_default=True,
    type=click.FloatRange(0, TIMEOUT_SECONDS_MAX, min_open=True),
    help="Give up unless all is healthy within this time from the start.",
)
@click.option("--once", is_flag=True, help="End as soon as all is healthy.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["json", "table"]),
    help="What to print. json, and anything that is not a terminal, implies --once.  "
    "[default: table at a terminal, else json]",
)
def demo(
    regions: int,
    sites: int,
    depth: int,
    files: Sequence[str],
    timeout_seconds: float,
    once: bool,  # noqa: FBT001 - click passes options by name
    output: str | None,
) -> None:
    """Deliver an application through a real tree on this machine.

    Starts a nats-server for the centre, for each region and for each site, joined as leaf nodes,
    and a simulated cluster at each site. Then applies a small shop at the centre, and shows how it
    gets to every site and how status comes back. Leaves nothing running.

    Exit code 0 if everything was delivered and works, 1 if not in time.
    """
    if math.isnan(timeout_seconds):
        raise click.BadParameter("nan is not a number of seconds", param_hint="'--timeout'")
    shape = TreeShape(regions, sites, depth)
    if shape.nodes > SERVERS_MAX:
        raise click.UsageError(
            f"this tree has {shape.nodes} nats-servers: a centre, {regions} x {depth - 2} relays "
            f"and {shape.destinations} sites; one machine carries about {SERVERS_MAX}: "
            "lower --regions, --sites or --depth"
        )
    with refusals():
        workload = load_files(files, _read_stdin) if files else load_shop()
    for line in _stays(workload):
        click.echo(f"leafcast: {line}", err=True)
    at_terminal = sys.stdout.isatty()
    output = output or ("table" if at_terminal else "json")
    live = at_terminal and output == "table"
    screen = Screen(live=live, stays=live and not once, next_command=_next_command(shape, files))
    progress = DemoProgress(shape, workload, SystemClock().now().seconds)
    view = _run(progress, timeout_seconds, screen)
    if not (live and progress.healthy is not None):
        _print_result(progress, view, output)
    if progress.healthy is None:
        waited = f"{timeout_seconds:g} s"
        for line in (*progress.missing(view), f"gave up after {waited}; --timeout gives it longer"):
            click.echo(f"leafcast: {line}", err=True)
        raise click.exceptions.Exit(1)


def _run(progress: DemoProgress, timeout_seconds: float, screen: Screen) -> TreeView:
    """Run to the end, or exit with the code of the signal that ended it.

    To end what was to run until Ctrl-C by Ctrl-C is no failure, once all is healthy.
    """
    with temporary_folder() as folder:
        tree = local_tree(progress.shape, folder, screen.say, temporary=True)
        try:
            with screen:
                return run_until_signal(
                    run_demo(
                        tree,
                        progress,
                        SystemClock(),
                        screen.show,
                        timeout_seconds=timeout_seconds,
                        keep_running=screen.stays,
                    )
                )
        except EndedBySignal as end:
            done = screen.stays and progress.healthy is not None and end.exit_code == CTRL_C
            if done:
                screen.console.print("Stopped; nothing is left running.")
            raise click.exceptions.Exit(0 if done else end.exit_code) from None


def _print_result(progress: DemoProgress, view: TreeView, output: str) -> None:
    document = progress.document(view)
    if output == "json":
        click.echo(json.dumps(document))
        return
    Console(highlight=False).print(summary_table(document))


def _stays(workload: Workload) -> Iterator[str]:
    """Say which objects are not sent, and why."""
    for key in workload.kept[:KEPT_NAMED_MAX]:
        yield f"{key} is not sent: each cluster makes its own, or it is for the centre only"
    if len(workload.kept) > KEPT_NAMED_MAX:
        yield f"not sent besides: {many(len(workload.kept) - KEPT_NAMED_MAX, 'object')}"


def _read_stdin() -> str:
    return sys.stdin.buffer.read().decode()


def _next_command(shape: TreeShape, files: Sequence[str]) -> str:
    """What to try next, as it can be typed here."""
    program = _typed()
    if not files and shape.depth > DEPTH_MIN:
        return f"{program} demo --file my-manifests/"
    return f"{program} demo --depth {shape.depth + 1 if shape.depth < DEPTH_MAX else DEPTH_MIN}"


def _typed() -> str:
    """The program as it was called, or as its environment has it."""
    called = Path(sys.argv[0])
    if called.name == "__main__.py":
        return "python -m leafcast"
    found = shutil.which(called.name)
    if found and Path(found).resolve() == called.resolve():
        return called.name.replace("kubectl-", "kubectl ")
    near = os.path.relpath(called)
    return str(called) if near.startswith("..") else near
