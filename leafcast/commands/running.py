"""Work on a running tree: in one session, ended in good order by a signal, errors as exit codes."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from leafcast.harmless import harmless
from leafcast.session import Session, Tell, open_session
from leafcast.signals import Ended, run_until_signal

T = TypeVar("T")


def teller() -> Tell:
    """Says what is waited for, each thing once, to a person: what a script reads is unchanged."""
    said: set[str] = set()

    def tell(text: str) -> None:
        if sys.stderr.isatty() and text not in said:
            said.add(text)
            click.echo(f"leafcast: {harmless(text)} ...", err=True)

    return tell


def in_session(data_dir: Path | None, work: Callable[[Session], Awaitable[T]]) -> T:
    """Do the work in a session with the tree of the data directory, or of the default one.

    Raises NotRunning, DataDirUnusable, what the work raises, and click's Exit after a signal.
    """

    async def attended() -> T:
        async with open_session(data_dir, teller()) as session:
            return await work(session)

    try:
        return run_until_signal(attended())
    except Ended as end:
        raise click.exceptions.Exit(end.exit_code) from None


def call(data_dir: Path | None, verb: str, *, seconds: float, **arguments: Any) -> Any:
    """As Session.call, in a session of its own; raises what that does, and in_session."""
    return in_session(data_dir, lambda session: session.call(verb, seconds=seconds, **arguments))
