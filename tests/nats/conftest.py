"""Real servers for tests: `async with Grove(tmp_path) as grove`, then nodes and connections."""

import json
import os
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

import pytest
from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.errors import NoRespondersError
from nats.errors import TimeoutError as NatsTimeout

from relay.adapters.clock import SystemClock
from relay.adapters.server.guard import ProcessGuard
from relay.adapters.server.leaf_address import LeafAddress
from relay.adapters.server.nats_config import AccountSeeds, Neighbours, ParentRemote
from relay.adapters.server.nats_server import EmbeddedServer
from relay.adapters.server.nkey_pairs import new_user_nkey
from schemas.values.identity import NodePath
from schemas.values.subjects import stream_subjects
from tests.awaiting import WAIT_SECONDS, eventually


def new_nkey() -> tuple[str, str]:
    return new_user_nkey(os.urandom(32))


def new_seeds() -> AccountSeeds:
    return AccountSeeds(*(new_nkey()[0] for _ in range(4)))


@dataclass
class Node:
    """A running server, its secrets, and the seed by which it is known at its parent."""

    server: EmbeddedServer
    seeds: AccountSeeds
    link_seed: str = ""
    path: NodePath = field(default_factory=NodePath)


class Grove:
    """Servers and connections that end with the block, under a guard of their own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = AsyncExitStack()
        self.guard = ProcessGuard()

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self.guard)
        return self

    async def __aexit__(self, *error) -> None:
        await self._stack.aclose()

    def server(
        self, path="/", seeds=None, parent: ParentRemote | None = None, entrance="", **options
    ) -> EmbeddedServer:
        """Not started; the same path gives the same folder."""
        node = NodePath.parse(path)
        return EmbeddedServer(
            self._folder / node.domain,
            node,
            seeds or new_seeds(),
            Neighbours(parent, entrance=entrance),
            guard=self.guard,
            clock=SystemClock(),
            **options,
        )

    async def plant(
        self,
        path="/",
        parent: Node | None = None,
        link: ParentRemote | None = None,
        leaf_address: LeafAddress | None = None,
    ) -> Node:
        """Start a node; below a parent, after opening its account there.

        `link` says how to get there, unless by the port on this machine; its seed is not used.
        """
        seeds, (link_seed, link_nkey) = new_seeds(), new_nkey()
        node_path = NodePath.parse(path)
        if parent is not None:
            await parent.server.add_child(node_path.name, link_nkey)
            way = link or ParentRemote((parent.server.leaf_url,), link_seed)
            link = replace(way, seed=link_seed)
        server = self.server(path, seeds, parent=link, leaf_address=leaf_address)
        await self._stack.enter_async_context(server)
        return Node(server, seeds, link_seed, node_path)

    async def connect(self, node: Node, seed: str | None, **options) -> Client:
        async def quiet(error: Exception) -> None:
            pass

        options = {"error_cb": quiet, "allow_reconnect": False, **options}
        client = Client()
        self._stack.push_async_callback(_close, client)
        await client.connect(node.server.url, nkeys_seed_str=seed, **options)
        return client

    async def is_refused(self, node: Node, seed: str | None) -> bool:
        while True:
            try:
                await in_force(await self.connect(node, seed))
            except NatsError as refusal:
                # On a busy machine the end of the connection overtakes the word why: ask again.
                if "authorization" in str(refusal).lower():
                    return True
            else:
                return False


async def _close(client: Client) -> None:
    await client.close()
    if client._transport is not None:  # nats-py leaves it open when it was refused
        client._transport.close()
        with suppress(ConnectionError):
            await client._transport.wait_closed()


async def call(client: Client, subject: str, body: object = b"", timeout: float = 30) -> dict:
    """A JetStream API request; the answer as it stands."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return json.loads((await client.request(subject, data, timeout=timeout)).data)


async def in_force(client: Client) -> None:
    """All that the client said before is known to its server.

    Twice, because nats-py sends the first ping ahead of commands that it still holds back.
    """
    await client.flush()
    await client.flush()


async def links_of_server(system: Client, child: str) -> list[dict]:
    """The links of a child that the server has which this client of its system account asks."""
    verb = f"$SYS.REQ.SERVER.{system._server_info['server_id']}.LEAFZ"
    return (await call(system, verb, {"account": child}))["data"].get("leafs") or []


async def until_answered(client: Client, subject: str, *, seconds: float = WAIT_SECONDS) -> None:
    """Ask until a link is up and somebody answers."""

    async def answered() -> bool:
        try:
            await client.request(subject, b"beat", timeout=1)
        except (NoRespondersError, NatsTimeout):
            return False
        return True

    await eventually(answered, f"nobody answers {subject}", seconds=seconds)


async def make_streams(relay: Client, path: NodePath, *children: str) -> None:
    """The streams of a relay, and for each child a mail consumer and the stream of its copies."""
    for name, subjects in stream_subjects(path).items():
        config = {
            "name": name,
            "subjects": list(subjects),
            "max_msgs_per_subject": 1,
            "allow_direct": True,
            "max_consumers": 5000,
            "retention": "limits",
            "storage": "file",
            "discard": "old",
            "num_replicas": 1,
        }
        assert "error" not in await call(relay, f"$JS.API.STREAM.CREATE.{name}", config)
    for child in children:
        await make_mail_consumer(relay, path, child)
        subjects = [f"{path.child(child).prefix}._up.*"]
        config = {"name": child, "subjects": subjects, "allow_direct": True}
        assert "error" not in await call(relay, f"$JS.API.STREAM.CREATE.{child}", config)


async def make_mail_consumer(relay: Client, path: NodePath, child: str) -> None:
    config = {
        "name": child,
        "durable_name": child,
        "deliver_subject": f"lc._d.{child}.m",
        "filter_subject": f"{path.child(child).prefix}._mail.*",
        "deliver_policy": "all",
        "ack_policy": "all",
        "flow_control": True,
        "idle_heartbeat": 30_000_000_000,
        "ack_wait": 3_600_000_000_000,
        "max_ack_pending": 10_000,
    }
    subject = f"$JS.API.CONSUMER.CREATE.MAIL.{child}.{config['filter_subject']}"
    answer = await call(relay, subject, {"stream_name": "MAIL", "config": config})
    assert "error" not in answer, answer


@pytest.fixture
def grove(tmp_path) -> Grove:
    """To be entered by the test: `async with grove`."""
    return Grove(tmp_path)
