"""Where a daemon is asked whether it is live and ready: `--health-port` and `--health-host`."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from leafcast.node.health_endpoint import LOOPBACK, HealthAddress


def health_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Both options, given to the command as `health: HealthAddress | None`."""

    @click.option(
        "--health-port",
        type=click.IntRange(1, 65535),
        help="Answer there over HTTP: /livez, /readyz.  [default: nowhere]",
    )
    @click.option(
        "--health-host",
        default=LOOPBACK,
        show_default=True,
        help="Whose addresses may ask; 0.0.0.0 for a kubelet's probes.",
    )
    @wraps(command)
    def run(*given: Any, health_port: int | None, health_host: str, **others: Any) -> Any:
        health = HealthAddress(health_port, health_host) if health_port else None
        return command(*given, health=health, **others)

    return run
