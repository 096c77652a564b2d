"""The way out through an HTTP proxy, as the server takes it."""

from __future__ import annotations

from collections.abc import Sequence

import click

from relay.adapters.server.nats_config import BadServerSettings, check_proxy

PROXY_VARIABLE = "LEAFCAST_PROXY"


def check_way_out(proxy: str, urls: Sequence[str]) -> None:
    """Refuse a proxy through which a server does not go out to these URLs: UsageError."""
    try:
        if proxy:
            check_proxy(proxy, urls)
    except BadServerSettings as error:
        raise click.BadParameter(error.rule, param_hint="--proxy") from error
