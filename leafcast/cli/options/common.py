"""Options that many commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from leafcast.data_dir import ENVIRONMENT
from schemas.identity import NodePath
from schemas.refusals import BadIdentity

Command = TypeVar("Command", bound=Callable[..., Any])


class NodeAt(click.ParamType[str]):
    """The path of a node; of the centre's only with `root`."""

    name = "path"

    def __init__(self, *, root: bool = False) -> None:
        self._root = root

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            path = NodePath.parse(value)
        except BadIdentity as error:
            self.fail(str(error), param, ctx)
        if path.is_root and not self._root:
            self.fail("'/' is the centre; name a node below it, such as /emea/store-1", param, ctx)
        return str(path)


class NodesAt(NodeAt):
    """The path of a node, or a pattern of paths with stars in the last name (`/emea/store-*`)."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if "*" not in value:
            return super().convert(value, param, ctx)
        # What is wrong with its place is said of any node that would fit.
        super().convert(value.replace("*", "0"), param, ctx)
        return str(value)


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
