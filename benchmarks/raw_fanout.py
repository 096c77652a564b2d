"""The raw limit of a fan-out: over the same servers, accounts and processes, with the same library.

The centre puts a message for each region into a stream; the region's relay, told by a push
consumer, puts one for each edge into its own; each edge answers with one report, which is stored,
read, counted, and passed on as one by the region. Nothing is signed, compared, kept or applied.

Run as `python -m benchmarks.raw_fanout FILE` for the edges of one region; says "ready" when all
listen, and ends when its standard input does.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg

from leafcast.node.credentials.account_seeds import SEEDS_FILE
from schemas.values.identity import NodePath

STREAM = "RAW"
CONSUMERS_MAX = 5000
SEND_SECONDS, START_SECONDS = 120.0, 300.0
CONNECT_AT_ONCE = 50
REPORT = b"r" * 100


class RawFan:
    """Centre and regions of the raw fan-out; `send` brings a payload to all edges and back."""

    def __init__(
        self, nodes: Mapping[NodePath, tuple[str, Path]], edges: Mapping[NodePath, Sequence[str]]
    ) -> None:
        self._nodes = nodes
        self._edges = edges
        self._relays: dict[NodePath, Client] = {}
        self._uplinks: dict[NodePath, Client] = {}
        self._answered: dict[NodePath, int] = {}
        self._known = asyncio.Event()
        self.processes: dict[str, Process] = {}

    async def open(self, files: Mapping[NodePath, Path]) -> None:
        """Make streams and consumers, and start a process for the edges of each region."""
        for path, (url, folder) in self._nodes.items():
            seeds = json.loads((folder / SEEDS_FILE).read_text())
            relay = self._relays[path] = await connect(url, seeds["relay"], "_INBOX.raw")
            config = {"name": STREAM, "subjects": ["raw.*"], "max_msgs_per_subject": 1}
            config["max_consumers"] = CONSUMERS_MAX
            await _api(relay, f"STREAM.CREATE.{STREAM}", {**config, "storage": "file"})
            await relay.subscribe("rawup", cb=self._counter(path))
            await consume(relay, "STAT", "rawup", f"{path.prefix}.*._stat.raw")
            for name in self._below(path):
                await consume(relay, STREAM, f"lc._d.{name}.raw", f"raw.{name}")
            if not path.is_root:
                up = self._uplinks[path] = await connect(url, seeds["uplink"], "_INBOX.rawup")
                await up.subscribe(f"lc._d.{path.name}.raw", cb=self._forwarder(path))
                await up.flush()
        for region, file in files.items():
            command = [sys.executable, "-m", "benchmarks.raw_fanout", str(file)]
            process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
            self.processes[f"raw edges of {region}"] = process
        for process in self.processes.values():
            assert process.stdout is not None
            async with asyncio.timeout(START_SECONDS):
                line = await process.stdout.readline()
            assert line == b"ready\n", "the raw edges did not start"

    async def close(self) -> None:
        for process in self.processes.values():
            process.kill()
            await process.wait()
        for client in (*self._relays.values(), *self._uplinks.values()):
            await client.close()

    async def send(self, payload: bytes) -> None:
        """Returns when the centre has counted all regions, and each of them all its edges."""
        self._answered = dict.fromkeys(self._nodes, 0)
        self._known.clear()
        async with asyncio.timeout(SEND_SECONDS):
            await self._pass_on(NodePath(), payload)
            await self._known.wait()

    def _below(self, path: NodePath) -> Sequence[str]:
        return [region.name for region in self._edges] if path.is_root else self._edges[path]

    async def _pass_on(self, path: NodePath, payload: bytes) -> None:
        """Put a message for each child into the stream; ends when all are stored."""
        relay, names = self._relays[path], self._below(path)
        inbox = relay.new_inbox()
        stored = await relay.subscribe(inbox, max_msgs=len(names))
        for name in names:
            await relay.publish(f"raw.{name}", payload, reply=inbox)
        for _ in names:
            await stored.next_msg(timeout=SEND_SECONDS)

    def _forwarder(self, path: NodePath) -> Any:
        async def came(message: Msg) -> None:
            await self._pass_on(path, message.data)

        return came

    def _counter(self, path: NodePath) -> Any:
        async def came(message: Msg) -> None:
            self._answered[path] += 1
            if self._answered[path] < len(self._below(path)):
                return
            if path.is_root:
                self._known.set()
            else:
                await self._uplinks[path].publish(f"{path.prefix}._stat.raw", message.data)

        return came


async def connect(url: str, seed: str, inbox: str) -> Client:
    client = Client()
    await client.connect(url, nkeys_seed_str=seed, inbox_prefix=inbox)
    return client


async def _api(client: Client, verb: str, body: Mapping[str, Any]) -> None:
    answer = await client.request(f"$JS.API.{verb}", json.dumps(body).encode(), timeout=30)
    assert "error" not in json.loads(answer.data), answer.data


async def consume(client: Client, stream: str, deliver: str, subject: str) -> None:
    config = {
        "deliver_subject": deliver,
        "filter_subject": subject,
        "deliver_policy": "new",
        "ack_policy": "none",
        "mem_storage": True,
        # Else the server forgets it after five seconds, and thousands of edges take longer to come.
        "inactive_threshold": 3600 * 10**9,
    }
    body = {"stream_name": stream, "config": config}
    await _api(client, f"CONSUMER.CREATE.{stream}", body)


async def _edge(url: str, path: NodePath, seed: str) -> None:
    client = await connect(url, seed, "_INBOX.rawedge")

    async def came(_message: Msg) -> None:
        await client.publish(f"{path.prefix}._stat.raw", REPORT)

    await client.subscribe(f"lc._d.{path.name}.raw", cb=came)
    await client.flush()


async def _edges(said: Mapping[str, Any]) -> None:
    edges = [(NodePath.parse(path), seed) for path, seed in said["edges"].items()]
    for at in range(0, len(edges), CONNECT_AT_ONCE):
        async with asyncio.TaskGroup() as group:
            for path, seed in edges[at : at + CONNECT_AT_ONCE]:
                group.create_task(_edge(said["url"], path, seed))
    print("ready", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    os._exit(0)  # Whoever started this has gone; nothing here is kept.


if __name__ == "__main__":
    asyncio.run(_edges(json.loads(Path(sys.argv[1]).read_text())))
