"""A relay's forwarding rate beside a bare loop that consumes, republishes and acknowledges.

Same servers, same library, windows of the same size. The relay checks each delta's signature, keeps
it in OWN and writes it into its child's mailbox; the bare loop only writes. Both begin with a
backlog at the parent and share their process with nothing that works.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import tempfile
import time
from pathlib import Path

from nats.aio.msg import Msg

from benchmarks.report import Report, middle
from benchmarks.wide_tree import WideTree, wide_tree
from controllers.core.drafts import Draft
from leafcast.node_runtime import SEEDS_FILE
from relay.adapters.jetstream_connection import Connection
from relay.adapters.jetstream_publish import Outgoing, Publisher
from schemas.identity import NodePath
from schemas.records import (
    API_PLACEMENT,
    OVER_SYNC_TARGET,
    Alternative,
    DeltaBody,
    DeltaHead,
    Gate,
    Source,
)
from schemas.selectors import LabelSelector

MESSAGES, ROUNDS, WINDOW, SIZE = 2000, 3, 512, 400
GOAL = 0.7


async def bare(tree: WideTree, number: int) -> float:
    """Messages a second: consumed over the leaf link, published, acknowledged."""
    region, path = tree.regions[0], tree.regions[0].name
    above = await _open(tree, NodePath(), "centre", "relay")
    here = await _open(tree, region, path, "relay")
    up = await _open(tree, region, path, "uplink")
    source, target = Publisher(above), Publisher(here)
    for connection, publisher, stream in ((above, source, "A"), (here, target, "B")):
        name = f"{stream}{number}"
        await connection.api(f"STREAM.CREATE.{name}", name=name, subjects=[f"{name}.*"])
        await publisher.start()
    await source.publish([Outgoing(f"A{number}.{n}", b"x" * SIZE) for n in range(MESSAGES)])
    queue: asyncio.Queue[Msg] = asyncio.Queue()
    deliver = f"lc._d.{path}.raw{number}"
    await up.client.subscribe(deliver, cb=queue.put)
    await up.client.flush()
    config = {"deliver_subject": deliver, "deliver_policy": "all", "ack_policy": "all"}
    config |= {"durable_name": "raw", "max_ack_pending": 20_000}
    began, done = time.perf_counter(), 0
    await above.api(f"CONSUMER.CREATE.A{number}.raw", stream_name=f"A{number}", config=config)
    while done < MESSAGES:
        batch = [await queue.get()]
        while len(batch) < WINDOW and not queue.empty():
            batch.append(queue.get_nowait())
        out = [Outgoing(f"B{number}.{done + n}", m.data) for n, m in enumerate(batch)]
        await target.publish(out)
        await above.client.publish(batch[-1].reply)
        done += len(batch)
    seconds = time.perf_counter() - began
    for connection in (up, above, here):
        await connection.close()
    return MESSAGES / seconds


async def relayed(tree: WideTree, number: int) -> float:
    """Deltas a second, from when the centre has written them all to the child's last one."""
    region = tree.nodes[tree.regions[0]].driver
    assert region is not None
    centre, drafts = tree.centre, [_delta(number, n) for n in range(MESSAGES)]
    above, below = centre.counters.mail_written, region.counters.mail_written
    await tree.controllers.issuer.issue(drafts)
    while centre.counters.mail_written < above + MESSAGES:
        await centre.progress()
    began, written = time.perf_counter(), region.counters.mail_written - below
    while region.counters.mail_written < below + MESSAGES:
        await region.progress()
    return (MESSAGES - written) / (time.perf_counter() - began)


def _delta(number: int, n: int) -> Draft:
    body = DeltaBody((Gate(None),)).encode()
    source = Source(API_PLACEMENT, f"round {number}", "", f"p{n}")
    who = (Alternative(OVER_SYNC_TARGET, LabelSelector()),)
    hashed = hashlib.sha256(body).digest()
    return Draft("delta", DeltaHead(source, 0, False, "", (), hashed, who, 0), body)  # noqa: FBT003


async def _open(tree: WideTree, path: NodePath, folder: str, account: str) -> Connection:
    seeds = json.loads((tree.folder / folder / SEEDS_FILE).read_text())
    connection = Connection(tree.nodes[path].server.url, seeds[account], "bare", "_INBOX.bare")
    await connection.open()
    return connection


async def main() -> None:
    columns = ("deltas a second", "middle", "each round")
    report = Report("forwarding", f"Forwarding a backlog of {MESSAGES} deltas", columns)
    with tempfile.TemporaryDirectory() as folder:
        async with wide_tree(Path(folder), 1, 1) as tree:
            loops, relays = [], []
            for number in range(ROUNDS):
                loops.append(await bare(tree, number))
                relays.append(await relayed(tree, number))
                await asyncio.sleep(5)
    for name, rates in (("bare loop", loops), ("relay", relays)):
        report.row(name, middle(rates), ", ".join(f"{rate:,.0f}" for rate in rates))
    report.goal("relay over bare loop", middle(relays) / middle(loops), GOAL, least=True)
    report.finish()


if __name__ == "__main__":
    asyncio.run(main())
