"""What one asks of a nats-server as its system account: to read its configuration, to cut links."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any

from nats.aio.client import Client

from relay.adapters.jetstream.backpressure_client import close
from relay.adapters.jetstream.server_floor import server_id
from relay.adapters.jetstream.server_url import connect_options

REQUEST_SECONDS = 5.0
RELOAD_SECONDS = 30.0
"""A stranger who does not go on with TLS holds up a reload for the ten seconds that he has."""
_NANOSECONDS = 1_000_000_000
LINKS_MAX = 64
"""More than a child may have, by its account's limits."""


class ConfigRefused(Exception):
    """The server keeps its old configuration; says what is wrong with the new one."""


@asynccontextmanager
async def system_connection(url: str, seed: str) -> AsyncIterator[Client]:
    """A client of the system account; raises NatsError, OSError or TimeoutError, and soon."""
    client = Client()
    try:
        # Left alone, the library knocks for two minutes where nobody listens.
        async with asyncio.timeout(REQUEST_SECONDS):
            await client.connect(
                **connect_options(url),
                nkeys_seed_str=seed,
                allow_reconnect=False,
                error_cb=_raised_anyway,
            )
        yield client
    finally:
        await close(client)


async def _raised_anyway(error: Exception) -> None:
    """Whoever asks gets the error."""


async def cut_links(system: Client, account: str, keep: Collection[str] = ()) -> None:
    """Close links bound to the account, save those of these keys.

    A reload leaves the links of keys that are good no more open, only deaf.
    """
    found = await asked(system, "LEAFZ", account=account)
    kept = await _links_of(system, account, keep) if keep else frozenset()
    for link in found["data"].get("leafs") or ():
        if link["id"] not in kept:
            await asked(system, "KICK", cid=link["id"])


async def _links_of(system: Client, account: str, keys: Collection[str]) -> Collection[int]:
    """The links that were let in by one of these keys; only an account that is there has any."""
    found = await asked(system, "CONNZ", acc=account, auth=True, limit=LINKS_MAX)
    links = found["data"].get("connections") or ()
    return {link["cid"] for link in links if link.get("authorized_user") in keys}


async def sync_seconds(system: Client) -> int | None:
    """For how long what the server acknowledged may not be on its disk yet; None unless it says."""
    found = await asked(system, "JSZ")
    config = found.get("data", {}).get("config", {})
    if config.get("sync_always"):
        return 0
    interval = config.get("sync_interval")
    return int(interval / _NANOSECONDS) if isinstance(interval, int) else None


async def reload_config(system: Client) -> None:
    """Have the server read its configuration file; raises ConfigRefused."""
    answer = await asked(system, "RELOAD", RELOAD_SECONDS)
    error = answer.get("error")
    if error:
        raise ConfigRefused(str(error.get("description", error)))


async def asked(
    system: Client, verb: str, seconds: float = REQUEST_SECONDS, **body: Any
) -> dict[str, Any]:
    """What the server that the client is connected to answers; of a cluster others would, too."""
    data = json.dumps(body).encode() if body else b""
    server = server_id(system)
    answer = await system.request(f"$SYS.REQ.SERVER.{server}.{verb}", data, timeout=seconds)
    form: dict[str, Any] = json.loads(answer.data)
    return form
