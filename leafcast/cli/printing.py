"""How the commands about the tree ask and print: once, or again and again with `-w`."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click
from rich.console import Console, ConsoleOptions, RenderableType
from rich.live import Live
from rich.segment import Segment

from leafcast.ask.session import Session
from leafcast.cli.session_calls import in_session, keep_looking
from leafcast.show.sanitize import sanitize
from relay.adapters.clock import SystemClock

WATCH_SECONDS = 1.0
WIDTH_MIN = 80

Ask = Callable[[Session], Awaitable[Any]]
Draw = Callable[[Any, int], RenderableType]


def show(data_dir: Path | None, ask: Ask, draw: Draw, output: str | None) -> None:
    """Print what is asked, as JSON or drawn."""
    found = in_session(data_dir, ask)
    if output == "json":
        click.echo(json.dumps(found, indent=2))
    else:
        print_view(table_console(), draw(found, SystemClock().now().wall_ms))


class Sanitized:
    """A view whose texts cannot steer the terminal; its styles are its own."""

    def __init__(self, view: RenderableType) -> None:
        self._view = view

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for segment in console.render(self._view, options):
            clean = segment.text if segment.control else sanitize(segment.text)
            yield Segment(clean, segment.style, segment.control)


def table_console() -> Console:
    """One that is never narrower than tables need: a terminal that is wraps their lines itself."""
    console = Console(highlight=False)
    console.width = max(console.width, WIDTH_MIN)
    return console


def print_view(console: Console, view: RenderableType) -> None:
    """Print a view, that cannot steer the terminal; in a pipe no line ends in blanks."""
    view = Sanitized(view)
    if console.is_terminal:
        console.print(view)
        return
    with console.capture() as captured:
        console.print(view)
    for line in captured.get().splitlines():
        click.echo(line.rstrip())


def watch(data_dir: Path | None, ask: Ask, draw: Draw, output: str | None) -> None:
    """Print what is asked whenever it changes; at a terminal it stays in its place."""
    console = Console(highlight=False)
    stays = console.is_terminal and output != "json"

    clock, before = SystemClock(), None
    with Live(console=console, auto_refresh=False) if stays else nullcontext() as live:

        async def look(session: Session) -> None:
            nonlocal before
            found = await ask(session)
            if live is not None:
                live.update(Sanitized(draw(found, clock.now().wall_ms)), refresh=True)
            elif found != before and output == "json":
                click.echo(json.dumps(found))
            elif found != before:
                print_view(console, draw(found, clock.now().wall_ms))
            before = found
            await clock.sleep(WATCH_SECONDS)

        keep_looking(data_dir, look)
