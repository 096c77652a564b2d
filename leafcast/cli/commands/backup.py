"""`leafcast backup` and `restore`: what a centre holds, in one file."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import click

from leafcast.centre.backup import BackupUnusable, place_backup
from leafcast.cli.options.common import data_dir_option
from leafcast.cli.session_calls import call
from leafcast.data_dir import DataDir

SECONDS = 3600.0

_call = partial(call, seconds=SECONDS)
_file = click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
_KUBERNETES = "The objects of a centre whose spaces are API servers are theirs to back up."


@click.command(epilog=_KUBERNETES)
@_file
@click.option("--force", is_flag=True, help="Replace FILE if it is there.")
@data_dir_option
def backup(file: Path, data_dir: Path | None, *, force: bool) -> None:
    """Write the running centre's ledger, content, objects and keys to FILE.

    FILE holds the keys of the tree: keep it where nobody else reads it.
    """
    if file.exists() and not force:
        raise BackupUnusable(file, "it is there already", "say --force to replace it")
    _call(data_dir, "backup", file=str(file.absolute()))
    click.echo(f"{file}: {file.stat().st_size} bytes written; it holds the tree's keys")


@click.command()
@_file
@click.option("--force", is_flag=True, help="Replace what the data directory's centre holds.")
@data_dir_option
def restore(file: Path, data_dir: Path | None, *, force: bool) -> None:
    """Put a backup into the data directory of a tree that is stopped; its next start uses it.

    What the centre issued after the backup stays in force at the nodes until somebody says it again
    or withdraws it: see `leafcast orphans`.
    """
    found = place_backup(file, DataDir.at(data_dir), force=force)
    when = datetime.fromtimestamp(found.time_ms // 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    click.echo(f"The backup of {when} is in place; start the tree: leafcast up")
