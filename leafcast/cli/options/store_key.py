"""The option that names the file with the key of what servers store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import click

from relay.adapters.server.store_key import StoreKey, StoreKeyRefused, read_store_key


@dataclass(frozen=True, slots=True)
class StoreKeyFile:
    """A key that was read, and from where."""

    file: Path
    key: StoreKey


def store_key_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """It, given to the command as `store_key: StoreKeyFile | None`."""

    @click.option(
        "--store-key-file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Encrypt what is stored with the key in this file, one line of 32 characters or more.",
    )
    @wraps(command)
    def run(*given: Any, store_key_file: Path | None, **others: Any) -> Any:
        if store_key_file is None:
            return command(*given, store_key=None, **others)
        file = store_key_file.absolute()
        try:
            said = StoreKeyFile(file, read_store_key(file))
        except StoreKeyRefused as error:
            raise click.BadParameter(str(error), param_hint="--store-key-file") from error
        return command(*given, store_key=said, **others)

    return run
