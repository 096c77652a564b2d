"""Options of who serves others: where nodes dial in, and who asks for its health."""

from __future__ import annotations

from pathlib import Path

import click

from leafcast.cli.options.common import gathered
from leafcast.node.credentials.own_certificate import check_files
from leafcast.node.health_endpoint import LOOPBACK, HealthAddress
from leafcast.node.listen_settings import ListenRefused, ListenSettings, listen_settings
from relay.adapters.clock import SystemClock

_File = click.Path(exists=True, dir_okay=False, path_type=Path)


def _listens(
    listen: tuple[str, ...], tls_cert: Path | None, tls_key: Path | None, tls_ca: Path | None
) -> ListenSettings | None:
    files = [str(file.absolute()) if file else "" for file in (tls_cert, tls_key, tls_ca)]
    if not listen:
        if any(files):
            raise click.UsageError("--tls-cert, --tls-key and --tls-ca belong to --listen")
        return None
    try:
        settings = listen_settings(listen, *files)
    except ListenRefused as error:
        raise click.BadParameter(str(error), param_hint="--listen") from error
    check_files(settings, SystemClock().now().wall_ms)
    return settings


listen_options = gathered(
    "listens",
    _listens,
    click.option(
        "--listen",
        "listen",
        multiple=True,
        metavar="ADDRESS",
        help="Where nodes elsewhere dial in: NAME[:PORT], or wss://NAME/PATH of a proxy.",
    ),
    click.option("--tls-cert", type=_File, help="A certificate of yours, its chain behind it."),
    click.option("--tls-key", type=_File, help="Its key."),
    click.option("--tls-ca", type=_File, help="Who signed it.  [default: who every system trusts]"),
)
"""All of them, given to the command as `listens: ListenSettings | None`."""


def _health(health_port: int | None, health_host: str) -> HealthAddress | None:
    return HealthAddress(health_port, health_host) if health_port else None


health_options = gathered(
    "health",
    _health,
    click.option(
        "--health-port",
        type=click.IntRange(1, 65535),
        help="Answer there over HTTP: /livez, /readyz, /metrics.  [default: nowhere]",
    ),
    click.option(
        "--health-host",
        default=LOOPBACK,
        show_default=True,
        help="Whose addresses may ask; 0.0.0.0 for a kubelet's probes.",
    ),
)
"""Both options, given to the command as `health: HealthAddress | None`."""
