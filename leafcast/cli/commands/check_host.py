"""`leafcast check-host`: whether this machine is fit for a node, before it joins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from leafcast.cli.commands.doctor import doctor_form, doctor_view
from leafcast.cli.options.proxy import PROXY_VARIABLE, check_way_out
from leafcast.cli.printing import print_view
from leafcast.data_dir import DataDir
from leafcast.doctor.findings import exit_code
from leafcast.join.invitation import (
    TOKEN_VARIABLE,
    InvitationUnusable,
    check_address,
    invitation_of,
)
from leafcast.service.host_checks import host_checks
from leafcast.service.host_facts import host_facts
from leafcast.signals import run_until_signal
from relay.adapters.clock import SystemClock

_LISTEN_PORT = 7422


class _Port(click.IntRange):
    """A port; other commands take an address at their option of that name."""

    def __init__(self) -> None:
        super().__init__(1, 65535)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return int(super().convert(value, param, ctx))
        except click.BadParameter:
            said = f'"{value}" is no port: write it alone, 1 to 65535, such as {_LISTEN_PORT}'
            self.fail(said, param, ctx)


@click.command("check-host")
@click.argument("source", metavar="[URL|FILE]", required=False)
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    metavar="DIR",
    default=None,
    help="Where the node is to keep its state.  [default: where the tree's data is]",
)
@click.option(
    "--listen",
    "ports",
    type=_Port(),
    is_flag=False,
    flag_value=_LISTEN_PORT,
    multiple=True,
    metavar="PORT",
    help=f"A port where nodes below are to dial in; without a value {_LISTEN_PORT}.",
)
@click.option(
    "--proxy",
    default="",
    envvar=PROXY_VARIABLE,
    metavar="URL",
    help=f"An HTTP proxy to go out through.  [environment: {PROXY_VARIABLE}]",
)
@click.option("-o", "--output", type=click.Choice(["table", "json"]), help="How to print it.")
def check_host(
    *,
    source: str | None,
    data_dir: Path | None,
    ports: tuple[int, ...],
    proxy: str,
    output: str | None,
) -> None:
    """Look whether this machine is fit for a node, before it joins.

    Versions, the clock and who keeps it, random numbers, disk, limits, the ports of a relay, and
    the way to the parent at URL, or at what the FILE of `leafcast node add` names: whether a
    parent answers there, and whether its time is the one here. No token is used up: it asks
    without one. Each failure has its cause and a remedy. Exit code 1 if something failed; warnings
    do not count.
    """
    folder, urls = DataDir.at(data_dir).folder, _urls(source)
    check_way_out(proxy, urls)
    found = host_checks(run_until_signal(host_facts(folder, ports, urls, proxy, SystemClock())))
    if output == "json":
        click.echo(json.dumps(doctor_form(found), indent=2))
    else:
        print_view(doctor_view(found))
    if code := exit_code(found):
        raise click.exceptions.Exit(code)


def _urls(source: str | None) -> tuple[str, ...]:
    """The addresses that were named; raises InvitationUnusable."""
    if source is None:
        return ()
    if "://" in source:
        urls = tuple(source.split(","))
        for url in urls:
            check_address(url)
        return urls
    invitation = invitation_of(source, None, None)
    if invitation is None:
        remedy = (
            f"name an address, or a file that `leafcast node add -o` wrote (not {TOKEN_VARIABLE})"
        )
        raise InvitationUnusable(source, "it says no address", remedy)
    return invitation.urls
