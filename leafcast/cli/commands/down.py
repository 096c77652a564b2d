"""`leafcast down`: stops what `leafcast up` started, and keeps its data."""

from __future__ import annotations

from pathlib import Path

import click

from leafcast.cli.options.common import data_dir_option
from leafcast.daemon.process import stop_daemon
from leafcast.data_dir import DataDir
from leafcast.signals import EndedBySignal, run_until_signal
from relay.adapters.clock import SystemClock


@click.command()
@data_dir_option
def down(data_dir: Path | None) -> None:
    """Stop the tree in the background, and keep its data.

    The next `leafcast up` on the same data directory goes on where this one ended.
    """
    place = DataDir.at(data_dir)
    try:
        stopped = run_until_signal(stop_daemon(place, SystemClock()))
    except EndedBySignal as end:
        click.echo("leafcast: the tree is told to stop, and goes on stopping", err=True)
        raise click.exceptions.Exit(end.exit_code) from None
    if stopped:
        click.echo(f"Stopped. The data is kept in {place.folder}; `leafcast up` finds it again.")
    else:
        click.echo(f"No tree is running (data directory {place.folder}).")
