"""Options that many commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from leafcast.data_dir import ENVIRONMENT

Command = TypeVar("Command", bound=Callable[..., Any])


def data_dir_option(command: Command) -> Command:
    """`--data-dir`, given to the command as `data_dir: Path | None`; None is the default place."""
    return click.option(
        "--data-dir",
        type=click.Path(path_type=Path),
        metavar="DIR",
        default=None,
        envvar=ENVIRONMENT,
        help="Where the tree's state is.  [default: $XDG_STATE_HOME/leafcast, else "
        f"~/.local/state/leafcast; environment: {ENVIRONMENT}]",
    )(command)
