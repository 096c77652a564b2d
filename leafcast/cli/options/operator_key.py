"""Options of commands that open what was closed for an operator."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from leafcast.cli.options.common import Command

if TYPE_CHECKING:
    from leafcast.backups.operator_keys import OperatorKey

VARIABLE = "LEAFCAST_BACKUP_PASSPHRASE"
_file = click.Path(dir_okay=False, path_type=Path)


def key_options(command: Command) -> Command:
    """`--key` and `--passphrase-file`, given as `key` and `passphrase_file`: `Path | None`."""
    command = click.option(
        "--passphrase-file",
        type=_file,
        metavar="FILE",
        help=f"The key's passphrase.  [default: ${VARIABLE}, else it is asked for]",
    )(command)
    return click.option(
        "--key", type=_file, metavar="FILE", help="Your private key, of `leafcast backup key new`."
    )(command)


def operator_key(key: Path | None, passphrase_file: Path | None) -> OperatorKey | None:
    """The private key in a file; raises KeyFileRefused, or UsageError without its passphrase."""
    # Here, as most commands open nothing.
    from leafcast.backups.operator_keys import read_operator_key  # noqa: PLC0415

    if key is None:
        return None
    return read_operator_key(key, lambda: passphrase(passphrase_file))


def passphrase(file: Path | None, *, twice: bool = False) -> str:
    """What the file says, else the environment, else who sits there; raises UsageError."""
    if file is not None:
        try:
            said = file.read_text(encoding="utf-8").strip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            raise click.UsageError(f"--passphrase-file: {file} cannot be read: {error}") from error
    else:
        asked = "Passphrase of the backup key"
        said = os.environ.get(VARIABLE) or click.prompt(
            asked, hide_input=True, confirmation_prompt=twice, err=True
        )
    if not said:
        raise click.UsageError("an empty passphrase protects nothing: say another one")
    return str(said)
