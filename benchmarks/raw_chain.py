"""The raw limit: publish, store, consume over the same servers and links, and nothing else.

At each tier a message is stored in a stream and delivered over the leaf link by a push consumer;
each publish waits for its acknowledgement. The last tier only stores.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from nats.aio.client import Client
from nats.aio.msg import Msg

from leafcast.node.credentials.account_seeds import SEEDS_FILE
from schemas.values.identity import NodePath

STREAM = "RAW"


class RawNode:
    """One node of the chain, in the process of the node whose server it uses.

    `stored` is called when a message is in the store of an edge: of a node without children.
    """

    def __init__(
        self,
        path: NodePath,
        url: str,
        folder: Path,
        children: Sequence[str],
        stored: Callable[[], None] = lambda: None,
    ) -> None:
        self._path = path
        self._url = url
        self._seeds = json.loads((folder / SEEDS_FILE).read_text())
        self._children = children
        self._stored = stored
        self._store = Client()
        self._uplink = Client()

    async def open(self) -> None:
        """Make the stream, and listen to the parent."""
        seed = self._seeds["relay"]
        await self._store.connect(self._url, nkeys_seed_str=seed, inbox_prefix="_INBOX.raw")
        api = self._store.jetstream()
        await api.add_stream(name=STREAM, subjects=["raw.*"], max_msgs_per_subject=1)
        if self._path.is_root:
            return
        seed = self._seeds["uplink"]
        await self._uplink.connect(self._url, nkeys_seed_str=seed, inbox_prefix="_INBOX.rawup")
        await self._uplink.subscribe(_deliveries(self._path.name), cb=self._came)
        await self._uplink.flush()

    async def serve(self) -> None:
        """Make a consumer for each child; the children listen by now."""
        for name in self._children:
            config = {
                "deliver_subject": _deliveries(name),
                "filter_subject": f"raw.{name}",
                "deliver_policy": "new",
                "ack_policy": "none",
                "mem_storage": True,
            }
            body = json.dumps({"stream_name": STREAM, "config": config}).encode()
            subject = f"$JS.API.CONSUMER.CREATE.{STREAM}"
            answer = await self._store.request(subject, body, timeout=5)
            assert "error" not in json.loads(answer.data), answer.data

    async def close(self) -> None:
        for client in (self._store, self._uplink):
            if client.is_connected:
                await client.close()

    async def send(self, payload: bytes) -> None:
        """Store the payload for each child; returns when that is done here."""
        await self._put(self._children, payload)

    async def _came(self, message: Msg) -> None:
        if self._children:
            await self._put(self._children, message.data)
            return
        await self._put(["kept"], message.data)
        self._stored()

    async def _put(self, names: Iterable[str], payload: bytes) -> None:
        async with asyncio.TaskGroup() as group:
            for name in names:
                group.create_task(self._store.request(f"raw.{name}", payload, timeout=5))


def _deliveries(name: str) -> str:
    return f"lc._d.{name}.raw"
