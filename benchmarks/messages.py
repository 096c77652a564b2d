"""How many messages go between edges and the servers of their regions, by the servers' count."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from leafcast.node.credentials.account_seeds import SEEDS_FILE
from relay.adapters.jetstream.request_reply import brief_connection

PAGE = 500
"""Connections that a server tells of at once: an answer takes about 1 kB for each."""
ASK_SECONDS = 60.0


class Exchanged(NamedTuple):
    """Messages since the edges connected."""

    # To the edges, also answers to what they sent.
    down: int = 0
    # From them.
    up: int = 0

    def since(self, earlier: Exchanged) -> Exchanged:
        return Exchanged(self.down - earlier.down, self.up - earlier.up)


async def exchanged(servers: Iterable[tuple[str, Path]], named: str) -> Exchanged:
    """Summed over the connections whose client's name begins so.

    `servers` are the URLs of the servers, with the folders of their nodes.
    """
    down = up = 0
    for url, folder in servers:
        seed = json.loads((folder / SEEDS_FILE).read_text())["system"]
        async with brief_connection(url, seed, "benchmark") as system:
            offset, total = 0, 1
            while offset < total:
                body = json.dumps({"limit": PAGE, "offset": offset}).encode()
                answer = await system.request(
                    "$SYS.REQ.SERVER.PING.CONNZ", body, timeout=ASK_SECONDS
                )
                page = json.loads(answer.data)["data"]
                total, offset = page["total"], offset + PAGE
                for connection in page["connections"]:
                    if connection.get("name", "").startswith(named):
                        down += connection["out_msgs"]
                        up += connection["in_msgs"]
    return Exchanged(down, up)
