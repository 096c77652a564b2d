"""How the commands about the tree ask and print: once, or again and again with `-w`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console, RenderableType
from rich.live import Live

from leafcast.session import Session, open_session
from leafcast.signals import Ended, run_until_signal
from relay.adapters.clock import SystemClock

WATCH_SECONDS = 1.0
INTERRUPTED = 130

T = TypeVar("T")

Ask = Callable[[Session], Awaitable[Any]]
Draw = Callable[[Any, int], RenderableType]


def in_session(data_dir: Path | None, work: Callable[[Session], Awaitable[T]]) -> T:
    """Do something in a session with the running tree; a signal ends it with its exit code."""

    async def run() -> T:
        async with open_session(data_dir) as session:
            return await work(session)

    try:
        return run_until_signal(run())
    except Ended as end:
        raise click.exceptions.Exit(end.exit_code) from None


def show(data_dir: Path | None, ask: Ask, draw: Draw, output: str | None) -> None:
    """Print what is asked, as JSON or drawn."""
    found = in_session(data_dir, ask)
    if output == "json":
        click.echo(json.dumps(found, indent=2))
    else:
        Console(highlight=False).print(draw(found, SystemClock().now().wall_ms))


def watch(data_dir: Path | None, ask: Ask, draw: Draw, output: str | None) -> None:
    """Print what is asked whenever it changes; at a terminal it stays in its place."""
    console = Console(highlight=False)

    async def run(session: Session) -> None:
        clock, before = SystemClock(), None
        live = Live(console=console, auto_refresh=False) if console.is_terminal else None
        if live is not None and output != "json":
            live.start()
        try:
            while True:
                found = await ask(session)
                picture = draw(found, clock.now().wall_ms)
                if output == "json":
                    if found != before:
                        click.echo(json.dumps(found))
                elif live is not None:
                    live.update(picture, refresh=True)
                elif found != before:
                    console.print(picture)
                before = found
                await clock.sleep(WATCH_SECONDS)
        finally:
            if live is not None:
                live.stop()

    with suppress(asyncio.CancelledError):
        in_session(data_dir, run)
