"""`leafcast recover`: a centre of three members goes on alone, where one of them is left."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import click

from leafcast.cli.options.common import data_dir_option
from leafcast.data_dir import DataDir
from leafcast.signals import run_until_signal
from relay.adapters.clock import SystemClock, SystemDice

_RECOVERY = "leafcast.centre.recovery"
"""It loads a whole centre, which the other commands do without."""


@click.command()
@click.option(
    "--from-member", is_flag=True, required=True, help="From what the member here has stored."
)
@click.option("--yes", is_flag=True, help="Go on without a question.")
@data_dir_option
def recover(*, from_member: bool, yes: bool, data_dir: Path | None) -> None:  # noqa: ARG001
    """Have a centre go on alone at the one member that is left: two are lost for good.

    The member must be ended. Copies of its store are read, and its next start (`leafcast up`) is
    that of a centre alone; the store itself is kept, in the folder store-of-member. While two
    members can be had again, start those in place of this: with one lost, two go on by themselves.
    """
    recovery = import_module(_RECOVERY)
    place = DataDir.at(data_dir)
    settings = recovery.lone_survivor(place)
    others = " and ".join(sorted(settings.keys.keys() - {settings.name}))
    click.echo(f"The centre goes on alone at {settings.name}, with what that has stored.")
    click.echo(f"What {others} acknowledged while {settings.name} was away or behind is lost.")
    click.echo(f"{others} must never be started again: they would go on as another centre.")
    if not yes and not click.confirm("Go on?", default=False, err=True):
        raise click.exceptions.Exit(1)
    with place.locked():
        work = recovery.recover(place, settings, SystemClock(), SystemDice())
        found = run_until_signal(work)
    messages = sum(int(it["state"]["messages"]) for it in found.streams.values())
    click.echo(f"{messages} messages are read; start the centre: leafcast up")
