"""`leafcast version`: which release this is, and whether its files are what was installed."""

from __future__ import annotations

from importlib.metadata import version as version_of
from pathlib import Path

import click


@click.command()
@click.option("--verify", is_flag=True, help="Compare the files that are installed.")
def version(*, verify: bool) -> None:
    """Print which release of Leafcast this is; with --verify, compare its files.

    Each file of Leafcast, and of all packages beside it, has to be what its package brought, by the
    list that lies with it; none may lack, and no other may be there. What Python compiled of them
    has to be what it compiles now. The list is not signed: it shows a broken disk or a changed
    file, and not somebody who changed the list as well, nor what runs before this command does.
    Exit code 1 if something differs.
    """
    click.echo(f"leafcast {version_of('leafcast')}")
    if not verify:
        return
    # Here, as it is asked for seldom.
    from leafcast.bundles.installed_files import say_compared  # noqa: PLC0415

    raise click.exceptions.Exit(say_compared(Path(__file__).parents[2]))
