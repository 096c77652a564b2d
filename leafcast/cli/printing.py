"""How the commands about the tree ask and print: once, or again and again with `-w`."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Awaitable, Callable, Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leafcast.ask.session import Session
from leafcast.cli.options.output import Output
from leafcast.cli.session_calls import in_session, keep_looking
from leafcast.show.sanitize import sanitize, sanitize_lines
from relay.adapters.clock import SystemClock

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

    from leafcast.show.layout import View

_TABLE = Output()
WATCH_SECONDS = 1.0
WIDTH_MIN = 80
PIPE_WIDTH = 100_000
"""What rich draws into a pipe is neither cut nor folded."""

AskSession = Callable[[Session], Awaitable[Any]]
Draw = Callable[[Any, int], "View | RenderableType"]
Names = Callable[[Any], Iterable[str]]


def show(
    data_dir: Path | None, ask: AskSession, draw: Draw, output: Output, names: Names = tuple
) -> None:
    """Print what is asked: drawn, its names, or as a document."""
    found = in_session(data_dir, ask)
    print_found(found, draw, output, names)


def print_found(found: Any, draw: Draw, output: Output, names: Names = tuple) -> None:
    """Print what was found as the output says it."""
    if output.is_table:
        print_view(draw(found, SystemClock().now().wall_ms), output)
    elif output.format == "name":
        for name in names(found):
            click.echo(sanitize(name))
    else:
        click.echo(sanitize_lines(output.structured(found)), nl=False)


class Sanitized:
    """A view of rich whose texts cannot steer the terminal; its styles are its own."""

    def __init__(self, view: RenderableType) -> None:
        self._view = view

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.segment import Segment  # noqa: PLC0415 - only where rich draws

        for segment in console.render(self._view, options):
            clean = segment.text if segment.control else sanitize_lines(segment.text)
            yield Segment(clean, segment.style, segment.control)


def terminal_width() -> int | None:
    """How wide tables may be, at least as wide as they need to be; None in a pipe: as they are.

    A terminal that is narrower wraps their lines itself.
    """
    if not sys.stdout.isatty():
        return None
    return max(shutil.get_terminal_size().columns, WIDTH_MIN)


def _is_styled() -> bool:
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") in ("dumb", "unknown")
    return sys.stdout.isatty() and not plain


def print_view(view: View | RenderableType, output: Output = _TABLE) -> None:
    """Print a view, that cannot steer the terminal; in a pipe it is neither cut nor folded."""
    lines = getattr(view, "lines", None)
    if lines is None:
        _print_rich(view)  # type: ignore[arg-type]
        return
    if not output.headers:
        from leafcast.show.layout import rows_only  # noqa: PLC0415 - few leave them out

        lines = rows_only(view).lines  # type: ignore[arg-type]
    width = None if output.is_wide else terminal_width()
    for line in lines(width, styled=_is_styled()):
        click.echo(line)


def _print_rich(view: RenderableType) -> None:
    # Here, as it takes as long to import as the rest of a command.
    from rich.console import Console  # noqa: PLC0415

    console = Console(highlight=False)
    console.width = terminal_width() or PIPE_WIDTH
    if console.is_terminal:
        console.print(Sanitized(view))
        return
    with console.capture() as captured:
        console.print(Sanitized(view))
    for line in captured.get().splitlines():
        click.echo(line.rstrip())


def watch(
    data_dir: Path | None, ask: AskSession, draw: Draw, output: Output, names: Names = tuple
) -> None:
    """Print what is asked whenever it changes; at a terminal it stays in its place."""
    # Here, as only what stays needs it.
    from rich.console import Console  # noqa: PLC0415
    from rich.live import Live  # noqa: PLC0415

    console = Console(highlight=False)
    stays = console.is_terminal and output.is_table

    clock, before = SystemClock(), None
    with Live(console=console, auto_refresh=False) if stays else nullcontext() as live:

        async def look(session: Session) -> None:
            nonlocal before
            found = await ask(session)
            if live is not None:
                view = draw(found, clock.now().wall_ms)
                live.update(Sanitized(view), refresh=True)  # type: ignore[arg-type]
            elif found != before and output.format == "json":
                click.echo(json.dumps(found))
            elif found != before:
                print_found(found, draw, output, names)
            before = found
            await clock.sleep(WATCH_SECONDS)

        keep_looking(data_dir, look)
