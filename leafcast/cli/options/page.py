"""Options that say where the page is served."""

from __future__ import annotations

from pathlib import Path

import click

from leafcast.cli.options.common import gathered
from leafcast.ui.page_place import LOOPBACK, PagePlace, check_page_certificate, page_place
from relay.adapters.clock import SystemClock

PORT = 7780

_File = click.Path(exists=True, dir_okay=False, path_type=Path)


def _judged(place: PagePlace) -> PagePlace:
    check_page_certificate(place, SystemClock().now().wall_ms)
    return place


def _place(
    host: str, port: int, name: tuple[str, ...], tls_cert: Path | None, tls_key: Path | None
) -> PagePlace:
    return _judged(page_place(host, port, name, tls_cert, tls_key))


page_options = gathered(
    "place",
    _place,
    click.option(
        "--port",
        type=click.IntRange(0, 65_535),
        default=PORT,
        show_default=True,
        help="Where to listen; 0 takes any that is free.",
    ),
    click.option(
        "--host",
        default=LOOPBACK,
        show_default=True,
        metavar="ADDRESS",
        help="Who may reach it: this machine only, or by TLS those who reach this address.",
    ),
    click.option(
        "--name", multiple=True, metavar="HOST", help="A name of the certificate, for browsers."
    ),
    click.option("--tls-cert", type=_File, help="A certificate of yours, its chain behind it."),
    click.option("--tls-key", type=_File, help="Its key."),
)
"""All of them, given to the command as `place: PagePlace`."""


def _page(
    ui: str, ui_name: tuple[str, ...], ui_cert: Path | None, ui_key: Path | None
) -> PagePlace | None:
    if not ui:
        if ui_name or ui_cert or ui_key:
            raise click.UsageError("--ui-name, --ui-cert and --ui-key belong to --ui")
        return None
    host, colon, port = ui.rpartition(":")
    if not port.isdecimal() or int(port) > 65_535 or (colon and not host):
        remedy = "name an address and a port, as in 0.0.0.0:7780, or a port of this machine"
        raise click.BadParameter(f"{ui!r} is none; {remedy}", param_hint="--ui")
    return _judged(page_place(host.strip("[]") or LOOPBACK, int(port), ui_name, ui_cert, ui_key))


served_page_options = gathered(
    "page",
    _page,
    click.option(
        "--ui",
        default="",
        metavar="[ADDRESS:]PORT",
        help="At a centre: serve the page there, elsewhere than to this machine by TLS alone.",
    ),
    click.option(
        "--ui-name", multiple=True, metavar="HOST", help="A name of its certificate, for browsers."
    ),
    click.option("--ui-cert", type=_File, help="The page's certificate, its chain behind it."),
    click.option("--ui-key", type=_File, help="Its key."),
)
"""All of them, given to the command as `page: PagePlace | None`."""
