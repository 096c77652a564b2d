"""`leafcast version`: which release this is, and whether its files are what was installed."""

from __future__ import annotations

from importlib.metadata import version as version_of
from pathlib import Path

import click

from leafcast.show.sanitize import sanitize

_SHOWN_MAX = 20


@click.command()
@click.option("--verify", is_flag=True, help="Compare the files that are installed.")
def version(*, verify: bool) -> None:
    """Print which release of Leafcast this is; with --verify, compare its files.

    Each file of Leafcast, and of all packages beside it, has to be what its package brought, by the
    list that lies with it; none may lack, and no other may be there. The list is not signed: it
    shows a broken disk or a changed file, and not somebody who changed the list as well. Exit code
    1 if something differs.
    """
    click.echo(f"leafcast {version_of('leafcast')}")
    if not verify:
        return
    # Here, as it is asked for seldom.
    from leafcast.bundles.installed_files import compare_installed  # noqa: PLC0415

    found = compare_installed(Path(__file__).parents[2])
    differences = found.differences
    for one in differences[:_SHOWN_MAX]:
        click.echo(sanitize(f"error: {one.file}: {one.what}"), err=True)
    if more := len(differences[_SHOWN_MAX:]):
        click.echo(f"error: and {more} more", err=True)
    if differences:
        click.echo("error: install the release anew, from what you verified", err=True)
        raise click.exceptions.Exit(1)
    click.echo(f"{found.files} files of {found.packages} packages are what was installed")
