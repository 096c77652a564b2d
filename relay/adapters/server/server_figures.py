"""What a nats-server counts of itself, asked of it as its system account."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple

from nats.errors import Error as NatsError

from relay.adapters.server.admin import asked, system_connection

FIGURES_SECONDS = 2.0
"""A server that is frozen keeps nobody for longer who asks for figures."""


class ServerFigures(NamedTuple):
    """Of one server, since it was started, or now."""

    version: str
    connections: int
    leaf_links: int
    messages_in: int
    messages_out: int
    bytes_in: int
    bytes_out: int
    slow_consumers: int
    # What its process uses.
    memory_bytes: int
    processor_ratio: float
    streams: int
    consumers: int
    stored_messages: int
    stored_bytes: int


async def server_figures(url: str, system_seed: str) -> ServerFigures | None:
    """The figures of the server at an address; None if it does not tell them soon."""
    try:
        async with asyncio.timeout(FIGURES_SECONDS), system_connection(url, system_seed) as system:
            general, stored = await asked(system, "VARZ"), await asked(system, "JSZ")
    except (NatsError, OSError, TimeoutError, ValueError):
        return None
    return _read(_data(general), _data(stored))


def _data(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    found = answer.get("data")
    return found if isinstance(found, dict) else {}


def _read(general: Mapping[str, Any], stored: Mapping[str, Any]) -> ServerFigures:
    def count(form: Mapping[str, Any], name: str) -> int:
        value = form.get(name, 0)
        return value if isinstance(value, int) else 0

    percent = general.get("cpu", 0.0)
    return ServerFigures(
        str(general.get("version", "")),
        count(general, "connections"),
        count(general, "leafnodes"),
        count(general, "in_msgs"),
        count(general, "out_msgs"),
        count(general, "in_bytes"),
        count(general, "out_bytes"),
        count(general, "slow_consumers"),
        count(general, "mem"),
        percent / 100 if isinstance(percent, int | float) else 0.0,
        count(stored, "streams"),
        count(stored, "consumers"),
        count(stored, "messages"),
        count(stored, "bytes"),
    )
