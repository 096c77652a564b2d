"""Options that name an API server, as kubectl has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


def kubeconfig_option(said: str) -> Callable[..., Any]:
    """`--kubeconfig`, given to the command as `kubeconfig: str | None`."""
    return click.option(
        "--kubeconfig",
        type=click.Path(),
        metavar="FILE",
        default=None,
        help=f"{said}  [default with --context: the file that kubectl takes]",
    )


context_option = click.option(
    "--context",
    metavar="NAME",
    default=None,
    help="The kubeconfig's context.  [default: its current one]",
)
"""Given to the command as `context: str | None`."""


def take_over_option(said: str) -> Callable[..., Any]:
    """`--take-over`, given to the command as `take_over: bool`."""
    return click.option("--take-over", is_flag=True, help=said)
