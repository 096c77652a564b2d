"""Which streams of a centre's server a backup holds, and how they are reached."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from relay.adapters.jetstream.connection import Connection

RELAY, SPACE = "relay", "space"

# Content comes after the records that lead to it, and what people wrote last: what is written
# meanwhile is then only missing where it is made again.
STREAMS = ((RELAY, "OWN"), (RELAY, "BLOB"), (SPACE, "KV_workloads"), (SPACE, "KV_inventory"))
SPACES = {"KV_workloads": "workloads", "KV_inventory": "inventory"}
"""The buckets of these streams."""
PASSES_MAX = 5
"""So often a backup looks whether all stood still meanwhile; a centre that never does is taken."""


@dataclass(frozen=True, slots=True)
class CentreServer:
    """Where a centre's streams are, and what opens the accounts that hold them."""

    url: str
    seeds: Mapping[str, str]


@asynccontextmanager
async def account(server: CentreServer, name: str, what: str) -> AsyncIterator[Connection]:
    """A connection to one of the accounts, for a piece of work; raises BusBroken."""
    connection = Connection(server.url, server.seeds[name], f"leafcast {what}", f"_INBOX.{what}")
    await connection.open()
    try:
        yield connection
    finally:
        await connection.close()
