"""What a nats-server holds, as it tells its system account; no port is opened for that."""

import json
from dataclasses import dataclass

from nats.aio.client import Client

ASK_SECONDS = 60


@dataclass(frozen=True)
class ServerHeap:
    """Bytes on the heap in small objects and in large ones, and how many there are of both.

    Large is what takes more than 19 kB: nearly all are buffers of streams and of links. Garbage is
    counted until it is collected, so only the lowest of many says what is held.
    """

    small: int
    large: int
    objects: int


async def server_heap(system: Client) -> ServerHeap:
    """The heap of the server that this client of its system account is connected to."""
    answer = await system.request("$SYS.REQ.SERVER.PING.EXPVARZ", timeout=ASK_SECONDS)
    told = json.loads(answer.data)["data"]["memstats"]
    sizes = told["BySize"]
    small = sum(each["Size"] * (each["Mallocs"] - each["Frees"]) for each in sizes)
    return ServerHeap(small, max(0, told["HeapAlloc"] - small), told["HeapObjects"])
