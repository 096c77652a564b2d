"""`leafcast release`: what a publisher of releases makes, and what a machine believes of it."""

from __future__ import annotations

from pathlib import Path

import click

from leafcast.cli.command_group import CommandGroup
from leafcast.publisher.pinning import named_publisher, pin_publisher
from leafcast.publisher.publisher_files import (
    Signable,
    file_data,
    read_file,
    read_public_keys,
    read_publisher_key,
    write_file,
    write_publisher_key,
)
from leafcast.publisher.release_making import made_release, release_file, wheels_checked
from leafcast.publisher.root_making import RootWish, next_root
from leafcast.show.sanitize import sanitize
from relay.adapters.clock import SystemDice
from schemas.releases.publisher_roots import KEYS_MAX
from schemas.releases.release_manifest import (
    CENTRE_FIRST,
    CENTRE_LAST,
    PLATFORMS,
    ReleaseManifest,
    digest_of,
)
from schemas.values.wording import many

_path = click.Path(dir_okay=False, path_type=Path)
_folder = click.Path(file_okay=False, exists=True, path_type=Path)
_file = click.argument("file", type=_path)
_threshold = click.IntRange(1, KEYS_MAX)


@click.group(cls=CommandGroup)
def release() -> None:
    """Make and sign releases of Leafcast, for machines that keep themselves up to date.

    Nothing here asks a tree. A machine installs only what the publisher signed whom it pinned.
    """


@release.command()
@_file
def keygen(file: Path) -> None:
    """Make a key in FILE, and its public half in FILE.pub.

    Make it where it is kept, on a machine without network.
    """
    key, public = write_publisher_key(file, SystemDice().entropy(32))
    click.echo(f"{file}: key {key.keyid[:12]}; keep it, and hand on {public}")


@release.command()
@_file
@click.option("--after", type=_path, help="The root that this one follows.  [default: none]")
@click.option("--key", "keys", type=_path, multiple=True, help="A public key that signs roots.")
@click.option("--threshold", type=_threshold, help="So many of them must.  [default: as before; 1]")
@click.option(
    "--release-key",
    "release_keys",
    type=_path,
    multiple=True,
    help="A public key that signs releases.  [default: as before; those for roots]",
)
@click.option(
    "--release-threshold", type=_threshold, help="So many of them must.  [default: as before; 1]"
)
@click.option("--lowest", help="The lowest version that may still be installed.")
def root(
    *,
    file: Path,
    after: Path | None,
    keys: tuple[Path, ...],
    threshold: int | None,
    release_keys: tuple[Path, ...],
    release_threshold: int | None,
    lowest: str | None,
) -> None:
    """Write the publisher's next root to FILE: whose keys sign, and how many must.

    Machines pin it, and follow it from then on. What is not named stays as in --after. Enough keys
    of the former root and of this one sign it, by `leafcast release sign`.
    """
    before = named_publisher(after) if after else None
    if before is None and not keys:
        raise click.UsageError("the first root names its keys: --key FILE.pub")
    wish = RootWish(
        read_public_keys(keys),
        threshold or 0,
        read_public_keys(release_keys),
        release_threshold or 0,
        lowest or "",
    )
    _write(file, file_data(next_root(before, wish)))


@release.command()
@click.argument("file", type=_path)
@click.option("--wheels", type=_folder, required=True, help="The folder with all of its wheels.")
@click.option("--publisher", type=_path, required=True, help="The publisher's newest root.")
@click.option(
    "--upgrades-from", required=True, help="From no version below this one a machine comes to it."
)
@click.option(
    "--platform",
    "platforms",
    type=click.Choice(PLATFORMS),
    multiple=True,
    default=PLATFORMS,
    show_default="both",
    help="What it is for.",
)
@click.option(
    "--wire-lowest",
    type=click.IntRange(1, 1_000),
    help="The lowest wire version that it speaks.  [default: the one that its code names]",
)
@click.option(
    "--centre",
    type=click.Choice([CENTRE_FIRST, CENTRE_LAST]),
    default=CENTRE_FIRST,
    show_default=True,
    help="Whether the centre takes it before all others, or after them, if the wire allows both.",
)
def make(
    *,
    file: Path,
    wheels: Path,
    publisher: Path,
    upgrades_from: str,
    platforms: tuple[str, ...],
    wire_lowest: int | None,
    centre: str,
) -> None:
    """Write to FILE what a release consists of: the wheels of a folder, by their hashes.

    The folder holds Leafcast and all that it needs, for each platform and one version of Python.
    """
    roots = named_publisher(publisher)
    made = made_release(wheels, upgrades_from, wire_lowest or 0, platforms, centre)
    for line in _described(made):
        click.echo(line)
    _write(file, file_data(release_file(made, roots)))


@release.command()
@_file
@click.option("--key", type=_path, required=True, help="The key's file.")
def sign(file: Path, key: Path) -> None:
    """Sign a root or a release with a key, and say what it lacks still."""
    signed = Signable.parse(read_file(file)).signed_by(read_publisher_key(key))
    _write(file, file_data(signed.file))


@release.command()
@_file
@click.option("--publisher", type=_path, required=True, help="The root that a machine pinned.")
@click.option("--wheels", type=_folder, help="Look at its wheels there, too.")
def verify(file: Path, publisher: Path, wheels: Path | None) -> None:
    """Say whether a machine that pinned this root would install the release in FILE."""
    data = read_file(file)
    found = named_publisher(publisher).verified(data)
    for line in _described(found):
        click.echo(line)
    if wheels is not None:
        click.echo(f"{many(sum(1 for _ in wheels_checked(found, wheels)), 'wheel')} as they were")
    click.echo(f"signed by the publisher: manifest {digest_of(data)}")


@release.command()
@_file
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="The node's folder.",
)
def pin(file: Path, data_dir: Path) -> None:
    """Have the machine of a node install what the publisher with the root in FILE signs.

    It is done once, on the machine itself. From then on the publisher's own roots change it.
    """
    roots = pin_publisher(data_dir, file)
    click.echo(f"pinned: root {roots.version}; nothing below {roots.lowest} is installed")


def _write(file: Path, data: bytes) -> None:
    """Write a root or a release, and say what signatures it lacks."""
    write_file(file, data)
    lacks = list(Signable.parse(data).lacks())
    for lack in lacks:
        click.echo(f"{file} lacks {lack}: leafcast release sign {file} --key KEY")
    if not lacks:
        click.echo(f"{file} is signed")


def _described(made: ReleaseManifest) -> list[str]:
    wire = " to ".join(str(it) for it in sorted({made.wire_lowest, made.wire_highest}))
    served = f"nats-server {made.nats_server}, wire {wire}"
    lines = [f"release {made.version}, from {made.upgrades_from} on: {served}"]
    if made.centre != CENTRE_FIRST:
        lines.append("the centre takes it after all others")
    for platform, pieces in sorted(made.pieces.items()):
        size = sum(piece.size for piece in pieces) / 1e6
        lines.append(f"{platform}: {many(len(pieces), 'wheel')}, {size:.1f} MB")
    return [sanitize(line) for line in lines]
