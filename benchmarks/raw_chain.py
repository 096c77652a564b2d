"""The raw limit: publish, store, consume over the same servers and links, and nothing else.

At each tier a message is stored in a stream and delivered over the leaf link by a push consumer;
each publish waits for its acknowledgement. The last tier only stores.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from nats.aio.client import Client
from nats.aio.msg import Msg

from leafcast.node_runtime import SEEDS_FILE
from schemas.identity import NodePath

STREAM = "RAW"


class RawChain:
    """`send` brings a payload from the centre into the store of each edge, along the tree."""

    def __init__(self, servers: Mapping[NodePath, tuple[str, Path]]) -> None:
        self._servers = servers
        self._children: dict[NodePath, list[NodePath]] = {path: [] for path in servers}
        for path in servers:
            if not path.is_root:
                self._children[path.parent].append(path)
        self._edges = [path for path in servers if not self._children[path]]
        self._stores: dict[NodePath, Client] = {}
        self._clients: list[Client] = []
        self._missing: set[NodePath] = set()
        self._all_stored = asyncio.Event()

    async def open(self) -> None:
        for path, (url, folder) in self._servers.items():
            seeds = json.loads((folder / SEEDS_FILE).read_text())
            store = self._stores[path] = await self._connect(url, seeds["relay"], "_INBOX.raw")
            api = store.jetstream()
            await api.add_stream(name=STREAM, subjects=["raw.*"], max_msgs_per_subject=1)
        for path, (url, folder) in self._servers.items():
            if path.is_root:
                continue
            seeds = json.loads((folder / SEEDS_FILE).read_text())
            uplink = await self._connect(url, seeds["uplink"], "_INBOX.rawup")
            await uplink.subscribe(_deliveries(path), cb=self._relay_at(path))
            await uplink.flush()
            await self._make_consumer(path)

    async def close(self) -> None:
        for client in self._clients:
            await client.close()

    async def send(self, payload: bytes) -> None:
        """Returns when every edge has stored it."""
        self._missing = set(self._edges)
        self._all_stored.clear()
        await self._pass_on(NodePath(), payload)
        await self._all_stored.wait()

    async def _connect(self, url: str, seed: str, inbox: str) -> Client:
        client = Client()
        await client.connect(url, nkeys_seed_str=seed, inbox_prefix=inbox)
        self._clients.append(client)
        return client

    async def _make_consumer(self, path: NodePath) -> None:
        config = {
            "deliver_subject": _deliveries(path),
            "filter_subject": f"raw.{path.name}",
            "deliver_policy": "new",
            "ack_policy": "none",
            "mem_storage": True,
        }
        body = json.dumps({"stream_name": STREAM, "config": config}).encode()
        answer = await self._stores[path.parent].request(
            f"$JS.API.CONSUMER.CREATE.{STREAM}", body, timeout=5
        )
        assert "error" not in json.loads(answer.data), answer.data

    def _relay_at(self, path: NodePath):
        async def came(message: Msg) -> None:
            if self._children[path]:
                await self._pass_on(path, message.data)
                return
            await self._store(path, ["kept"], message.data)
            self._missing.discard(path)
            if not self._missing:
                self._all_stored.set()

        return came

    async def _pass_on(self, path: NodePath, payload: bytes) -> None:
        await self._store(path, [child.name for child in self._children[path]], payload)

    async def _store(self, path: NodePath, names: Iterable[str], payload: bytes) -> None:
        client = self._stores[path]
        async with asyncio.TaskGroup() as group:
            for name in names:
                group.create_task(client.request(f"raw.{name}", payload, timeout=5))


def _deliveries(path: NodePath) -> str:
    return f"lc._d.{path.name}.raw"
