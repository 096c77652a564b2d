"""`leafcast bundle`: one file to install from where there is no network."""

from __future__ import annotations

from pathlib import Path

import click

from leafcast.cli.command_group import CommandGroup
from leafcast.show.sanitize import sanitize

_path = click.Path(dir_okay=False, path_type=Path)


class _MakesBundles(CommandGroup):
    """Makes one where no other command is named: `leafcast bundle --images`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0].startswith("-") and args[0] not in ctx.help_option_names:
            args = ["make", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_MakesBundles)
def bundle() -> None:
    """Make and verify one file to install from where there is no network.

    With options alone it makes one: `leafcast bundle --images --packages`.
    """


@bundle.command("make")
@click.argument(
    "folder", type=click.Path(file_okay=False, path_type=Path), default="dist", required=False
)
@click.option("--images", is_flag=True, help="With the container images of FOLDER.")
@click.option(
    "--packages", is_flag=True, help="With its Debian packages, and the wheels that Leafcast needs."
)
@click.option(
    "-o",
    "--out",
    "file",
    type=_path,
    metavar="FILE",
    default="leafcast-bundle.tar",
    show_default=True,
    help="The new file.",
)
@click.option(
    "--sign",
    "key_file",
    type=_path,
    metavar="KEY",
    help="Sign it with this Ed25519 key, as openssl writes them (PEM).",
)
def make(folder: Path, file: Path, key_file: Path | None, *, images: bool, packages: bool) -> None:
    """Put what is in FOLDER (dist), as `make bundle` gathers it, into one file.

    Packages, wheels, images, chart and bills of materials, with a list of their sums and
    `install.sh`. What you ask for has to be there; with `--images` alone no packages go in, with
    `--packages` alone no images, with neither all that is there. It is a plain tar, and the same
    files give the same bytes.
    """
    # Here, as no other command makes bundles.
    from leafcast.bundles.keys import signing_key  # noqa: PLC0415
    from leafcast.bundles.packing import BundlePart, make_bundle  # noqa: PLC0415

    key = signing_key(key_file) if key_file else None
    said = {BundlePart.IMAGES: images, BundlePart.PACKAGES: packages}
    made = make_bundle(folder, file, key, frozenset(kind for kind in BundlePart if said[kind]))
    size = -(-made.size // 1_000_000)
    signed = "signed" if key else "not signed"
    name = f"{file}: leafcast {made.version}, {made.files} files, {size} MB, {signed}"
    click.echo(sanitize(name))
    click.echo(f"sha256 {made.sha256}")


@bundle.command("verify")
@click.argument("file", type=_path)
@click.option(
    "--key",
    "key_file",
    type=_path,
    metavar="PUBLIC",
    help="The public key (PEM) of who has to have signed it.",
)
def verify(file: Path, key_file: Path | None) -> None:
    """Look whether FILE is a whole bundle, and signed by whom it should be.

    Each file in it has to be what the list of sums says, and no other may be there. Without `--key`
    compare the sum that it prints with the one that its maker published.
    """
    from leafcast.bundles.keys import public_key  # noqa: PLC0415
    from leafcast.bundles.verification import verify_bundle  # noqa: PLC0415

    found = verify_bundle(file, public_key(key_file) if key_file else None)
    said = "signed by this key" if key_file else "its signature was not looked at"
    if not found.is_signed:
        said = "not signed"
    name = f"{file}: leafcast {found.version}, {found.files} files, all whole, {said}"
    click.echo(sanitize(name))
    click.echo(f"sha256 {found.sha256}")
