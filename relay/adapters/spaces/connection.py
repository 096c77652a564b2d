"""A connection to a server's SPACE account: embedded spaces, and nothing of the relay's."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from nats.aio.client import Client as Client

from relay.adapters.jetstream.backpressure_client import close
from relay.adapters.jetstream.reconnecting_client import (
    PING_SECONDS,
    PINGS_UNANSWERED_MAX,
    ReconnectingClient,
)
from relay.adapters.jetstream.server_url import connect_options

RECONNECT_WAIT_SECONDS = 1

logger = logging.getLogger(__name__)


@asynccontextmanager
async def space_connection(url: str, seed: str, name: str) -> AsyncIterator[ReconnectingClient]:
    """A client of the account that the seed opens; it comes back by itself after an outage."""

    async def note(error: Exception) -> None:
        logger.debug("%s: %s", name, error)

    client = ReconnectingClient()
    try:
        await client.connect(
            **connect_options(url),
            nkeys_seed_str=seed,
            name=name,
            max_reconnect_attempts=-1,
            reconnect_time_wait=RECONNECT_WAIT_SECONDS,
            ping_interval=PING_SECONDS,
            max_outstanding_pings=PINGS_UNANSWERED_MAX,
            error_cb=note,
        )
        yield client
    finally:
        await close(client)
