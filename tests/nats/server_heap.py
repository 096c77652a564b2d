"""What a nats-server holds, as it tells its system account; no port is opened for that."""

import json
import math
import re
from base64 import b64decode
from dataclasses import dataclass

from nats.aio.client import Client

ASK_SECONDS = 60
SAMPLED_BYTES = 512 * 1024
"""One in so many bytes is noted by the Go runtime, all that is larger nearly always."""
_RECORDS = re.compile(r"^(\d+): (\d+) \[.*\n(?:#.*\n)*", re.MULTILINE)
_BUFFER = "server.getMsgBlockBuf"


@dataclass(frozen=True)
class ServerHeap:
    """Bytes in use as of the last collection: the buffers of its streams, and all else.

    `objects` counts all objects, with the garbage since then: only its lowest says what is held.
    """

    buffers: int
    rest: int
    objects: int


async def server_heap(system: Client) -> ServerHeap:
    """The heap of the server that this client of its system account is connected to."""
    profile = await _ask(system, "PROFILEZ", name="heap", debug=1)
    counted = await _ask(system, "EXPVARZ")
    buffers, rest = read_profile(b64decode(profile["profile"]).decode())
    return ServerHeap(buffers, rest, counted["memstats"]["HeapObjects"])


def read_profile(text: str) -> tuple[int, int]:
    """The bytes in use in buffers of streams, and in all else, estimated from what was noted."""
    found = {True: 0.0, False: 0.0}
    for record in _RECORDS.finditer(text):
        count, size = int(record[1]), int(record[2])
        if count:
            noted = 1 - math.exp(-size / count / SAMPLED_BYTES)
            found[_BUFFER in record[0]] += size / noted
    return round(found[True]), round(found[False])


async def _ask(system: Client, verb: str, **options: object) -> dict:
    answer = await system.request(
        f"$SYS.REQ.SERVER.PING.{verb}", json.dumps(options).encode(), timeout=ASK_SECONDS
    )
    return json.loads(answer.data)["data"]
