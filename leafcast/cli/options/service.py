"""The options with which `join` writes a service instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, cast

import click

from leafcast.cli.options.common import Command
from leafcast.join.invitation import Invitation

ServiceCheck = Callable[[Invitation, Mapping[str, Any]], None]
"""Raises for options, by their parameters, with which the node of an invitation does not run."""


def service_options(check: ServiceCheck) -> Callable[[Command], Command]:
    """Have a command take --service: it then writes a service that joins as it would, itself.

    `check` is what the command would refuse as it starts.
    """

    def taking(command: Command) -> Command:
        @click.option(
            "--service",
            is_flag=True,
            help="Write a systemd unit that joins with these options, and start it; as root.",
        )
        @click.option(
            "--service-root",
            type=click.Path(exists=True, file_okay=False, path_type=Path),
            default="/",
            metavar="DIR",
            help="With --service: the file system to write it to, as of an image; nothing is "
            "started.",
        )
        @wraps(command)
        def either(*, service: bool, service_root: Path, **given: Any) -> Any:
            if service:
                # Here, as a node that runs has no use for it.
                from leafcast.cli.node_services import install_service  # noqa: PLC0415

                return install_service(click.get_current_context(), service_root, given, check)
            if service_root != Path("/"):
                raise click.UsageError("--service-root goes with --service")
            return command(**given)

        return cast("Command", either)

    return taking
