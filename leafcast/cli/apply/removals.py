"""What a change takes off edges is told before it is made, and asked for where it is much."""

from __future__ import annotations

import sys

import click

from leafcast.ask.session import CallFailed, Session
from leafcast.changes.asked_plans import losses
from leafcast.changes.forms import Written
from leafcast.changes.removals import Removals
from leafcast.cli.options.objects import refuse
from leafcast.show.sanitize import sanitize

FLAG = "--confirm-removals"
confirm_removals_option = click.option(
    FLAG,
    "confirmed",
    is_flag=True,
    help="Yes, take off edges what goes by this, however many copies it is.",
)


async def removals_of(session: Session, written: Written) -> Removals:
    """What a change takes; nothing if the centre cannot tell now: then it holds what is much."""
    if not written:
        return Removals()
    try:
        return Removals(await losses(session, written))
    except CallFailed as error:
        click.echo(f"Warning: what goes by this cannot be told: {sanitize(str(error))}", err=True)
        return Removals()


def ask_for(removals: Removals, *, confirmed: bool, undone: str, always: bool = False) -> None:
    """Tell of removals, and ask for them if they are large; ends with exit code 1 if they stay.

    With `always` small ones are told of, too. `undone` says what was not done.
    """
    if not removals.losses or not (always or removals.are_large):
        return
    said = sanitize(str(removals))
    if confirmed or not removals.are_large:
        click.echo(f"Note: this {said}", err=True)
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        refuse([f"this {said}; {undone}; if that is meant, say {FLAG}"])
    click.echo(f"This {said}.", err=True)
    if not click.confirm("Go on?", default=False, err=True):
        refuse([undone])


def tell_if_held(warning: str) -> None:
    """Warn that the centre could not be told what was confirmed: it holds that, and says so."""
    if warning:
        click.echo(f"Warning: {sanitize(warning)}: the removal may be held", err=True)
