"""Options that many commands share."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce, wraps
from inspect import signature
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from leafcast.data_dir import ENVIRONMENT
from schemas.values.durations import read_duration
from schemas.values.identity import NodePath
from schemas.values.refusals import BadIdentity

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])
"""A function that becomes a command, with options."""

SPAN_SECONDS_MAX = 36_500 * 86_400


class NodeAt(click.ParamType[str]):
    """The path of a node; of the centre's only with `root`.

    A node that is there may be named by its SyncTarget, too: the tree is asked for its path. One
    that is `new` is not.
    """

    name = "path"

    def __init__(self, *, root: bool = False, new: bool = False) -> None:
        self._root = root
        self._new = new

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not self._new and value and "/" not in value:
            value = self._path_of(value, param, ctx)
        try:
            path = NodePath.parse(value)
        except BadIdentity as error:
            self.fail(str(error), param, ctx)
        if path.is_root and not self._root:
            self.fail("'/' is the centre; name a node below it, such as /emea/store-1", param, ctx)
        return str(path)

    def _path_of(self, name: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The path of a SyncTarget; the name itself if the tree cannot be asked."""
        # Here, as few name a node so.
        from leafcast.ask.failures import CallFailed, NotRunning  # noqa: PLC0415
        from leafcast.ask.node_names import did_you_mean, named_nodes, path_meant  # noqa: PLC0415
        from leafcast.cli.session_calls import in_session  # noqa: PLC0415

        try:
            nodes = in_session(ctx.params.get("data_dir") if ctx else None, named_nodes)
        except (NotRunning, CallFailed):
            return name
        if path := path_meant(name, nodes):
            return path
        hint = did_you_mean(name, nodes) or "leafcast node list shows the nodes there are"
        said = f'no node has the path or the SyncTarget "{name}"; {hint}'
        raise click.BadParameter(said, ctx, param)


class NodesAt(NodeAt):
    """The path of a new node, or a pattern of such with stars in the last name: `/emea/store-*`."""

    def __init__(self, *, root: bool = False) -> None:
        super().__init__(root=root, new=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if "*" not in value:
            return super().convert(value, param, ctx)
        # What is wrong with its place is said of any node that would fit.
        super().convert(value.replace("*", "0"), param, ctx)
        return str(value)


class Parsed(click.ParamType[T]):
    """What `read` makes of a text; it raises ValueError for one that it refuses."""

    def __init__(self, name: str, read: Callable[[str], T]) -> None:
        self.name = name
        self._read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> T:
        if not isinstance(value, str):
            return value  # type: ignore[no-any-return]
        try:
            return self._read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def span_seconds(text: str) -> int:
    """The seconds of a span of at least one; raises ValueError."""
    seconds = int(read_duration(text))
    if not 0 < seconds <= SPAN_SECONDS_MAX:
        raise ValueError(f'"{text}" is not between 1s and 36500d')
    return seconds


SPAN = Parsed("duration", span_seconds)
"""A span of time, in seconds, of at least one: `30m`, `24h`, `7d`."""


data_dir_option = click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    metavar="DIR",
    default=None,
    envvar=ENVIRONMENT,
    # Known before the nodes that are named by their SyncTargets.
    is_eager=True,
    help="Where the tree's state is.  [default: $XDG_STATE_HOME/leafcast, else "
    f"~/.local/state/leafcast; environment: {ENVIRONMENT}]",
)
"""Given to the command as `data_dir: Path | None`; None is the default place."""


def gathered(
    into: str, read: Callable[..., Any], *options: Callable[..., Any]
) -> Callable[[Command], Command]:
    """Options that a command is given as one value: what `read` makes of them, by their names."""
    names = signature(read).parameters

    def decorated(command: Command) -> Command:
        @wraps(command)
        def run(*given: Any, **said: Any) -> Any:
            value = read(**{name: said.pop(name) for name in names})
            return command(*given, **{into: value}, **said)

        return reduce(lambda inner, option: option(inner), reversed(options), cast("Command", run))

    return decorated
