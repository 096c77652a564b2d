"""Work on a running tree: in one session, ended in good order by a signal, errors as exit codes."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from leafcast.ask.failures import AWAY
from leafcast.ask.node_names import with_meant
from leafcast.ask.session import CallFailed, NotRunning, Session, TellUser, open_session
from leafcast.data_dir import DataDirUnusable
from leafcast.errors import said
from leafcast.manifest_sources import BadManifests
from leafcast.show.sanitize import sanitize
from leafcast.signals import EndedBySignal, run_until_signal
from relay.adapters.clock import SystemClock
from relay.space_errors import SpaceError

T = TypeVar("T")
AGAIN_SECONDS = 0.5


def teller() -> TellUser:
    """Says what is waited for, each thing once, to a person: what a script reads is unchanged."""
    said: set[str] = set()

    def tell(text: str) -> None:
        if sys.stderr.isatty() and text not in said:
            said.add(text)
            click.echo(f"leafcast: {sanitize(text)} ...", err=True)

    return tell


def in_session(data_dir: Path | None, work: Callable[[Session], Awaitable[T]]) -> T:
    """Do the work in a session with the tree of the data directory, or of the default one.

    Raises NotRunning, DataDirUnusable, what the work raises, and click's Exit after a signal.
    """

    async def attended() -> T:
        async with open_session(data_dir, teller()) as session:
            try:
                return await work(session)
            except CallFailed as failed:
                raise await with_meant(session, failed) from None

    return until_signal(attended())


def keep_looking(data_dir: Path | None, look: Callable[[Session], Awaitable[None]]) -> None:
    """Look again and again until a signal, through restarts of the tree; raises as in_session.

    A person is told that the tree is away.
    """

    def tell(text: str) -> None:
        if sys.stderr.isatty():
            click.echo(f"leafcast: {sanitize(text)}", err=True)

    until_signal(look_until(data_dir, look, tell))


async def look_until(
    data_dir: Path | None,
    look: Callable[[Session], Awaitable[T | None]],
    tell: TellUser,
    gives_up: Callable[[], bool] = lambda: False,
) -> T:
    """Look again and again until there is a result, through restarts of the tree.

    A tree that is not there at first is not waited for. Each time it goes away that is told once.
    Raises what the look raises, and why the tree is away if it is when `gives_up` says so.
    """
    clock = SystemClock()
    reached = told = False
    while True:
        try:
            async with open_session(data_dir) as session:
                reached = True
                while (found := await look(session)) is None:
                    told = False
                return found
        except (NotRunning, CallFailed) as error:
            away = isinstance(error, NotRunning) or error.code in AWAY
            if not reached or not away or gives_up():
                raise
            if not told:
                tell(f"{error}; still waiting")
            told = True
            await clock.sleep(AGAIN_SECONDS)


def until_signal(work: Coroutine[Any, Any, T]) -> T:
    """Do the work; raises what it raises, and click's Exit after a signal."""
    try:
        return run_until_signal(work)
    except EndedBySignal as end:
        raise click.exceptions.Exit(end.exit_code) from None


def call(data_dir: Path | None, verb: str, *, seconds: float, **arguments: Any) -> Any:
    """As Session.call, in a session of its own; raises what that does, and in_session."""
    return in_session(data_dir, lambda session: session.call(verb, seconds=seconds, **arguments))


class _ExitCodeTwo(click.ClickException):
    exit_code = 2


@contextmanager
def exit_code_two() -> Iterator[None]:
    """End with exit code 2 on any error, told as other commands tell it."""
    try:
        yield
    except click.exceptions.Exit:
        raise
    except click.ClickException as error:
        raise _ExitCodeTwo(error.format_message()) from error
    except BadManifests as error:
        raise _ExitCodeTwo("\n".join(error.faults)) from error
    except (NotRunning, DataDirUnusable, SpaceError, CallFailed) as error:
        raise _ExitCodeTwo("\n".join(said(error))) from error
