"""The servers of a cluster as JetStream counts them: one that is gone for good is taken out."""

from __future__ import annotations

import asyncio
import hashlib
import json
import string
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from relay.adapters.jetstream.connection import Connection, JetStreamRefused, checked
from relay.ports import BusBroken

ANSWER_SECONDS = 2.0
REMOVE_SECONDS = 5.0
_ALL_SERVERS = "$SYS.REQ.SERVER.PING.JSZ"
_REMOVE = "$JS.API.SERVER.REMOVE"
_DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase
_ID_LENGTH = 8


async def cluster_peers(system: Connection, servers: int) -> frozenset[str] | None:
    """The ids of all servers that the cluster counts; None if nobody leads it now.

    `system` is of the system account, and so many servers may answer. Raises BusBroken.
    """
    return peers_in(await _asked_all(system, {}, servers))


def peers_in(answers: Mapping[str, Mapping[str, Any]]) -> frozenset[str] | None:
    """The same, of what each server says of itself, by its name."""
    for name, said in answers.items():
        group = said.get("meta_cluster") or {}
        if group.get("leader") == name:
            return _counted(name, group)
    return None


def _counted(leader: str, group: Mapping[str, Any]) -> frozenset[str]:
    """The ids of the servers of a group, by what its leader says."""
    # A server that was started after another one was lost never heard its name.
    others = (
        str(it.get("peer") or peer_id(str(it.get("name", ""))))
        for it in group.get("replicas") or ()
    )
    return frozenset((peer_id(leader), *others))


def peer_id(name: str) -> str:
    """What nats-server calls the server of this name among those of a cluster."""
    digest = hashlib.sha256(name.encode()).digest()
    return "".join(_DIGITS[byte % len(_DIGITS)] for byte in digest[:_ID_LENGTH])


async def remove_peer(system: Connection, name: str) -> None:
    """Have the cluster, and each of its streams, count this server no more; raises BusBroken.

    While its leader changes nobody answers: then it is to be done again.
    """
    body = json.dumps({"peer": name, "peer_id": peer_id(name)}).encode()
    try:
        checked(_REMOVE, await system.client.request(_REMOVE, body, timeout=REMOVE_SECONDS))
    except (NatsError, OSError, TimeoutError) as error:
        raise BusBroken(f"the server {name} is not taken out of its cluster: {error!r}") from error


async def streams_behind(system: Connection, name: str, servers: int) -> list[str]:
    """The streams, of all accounts, that are not whole at the server of this name.

    One that has no leader is not, and none is where the server does not answer. Raises BusBroken.
    """
    answers = await _asked_all(system, {"accounts": True, "streams": True}, servers)
    return behind_in(answers, name) if name in answers else [f"all of {name}"]


def behind_in(answers: Mapping[str, Mapping[str, Any]], name: str) -> list[str]:
    """The same, of what each server says of its streams, by its name."""
    whole: dict[str, bool] = {}
    for server, said in answers.items():
        for account in said.get("account_details") or ():
            for stream in account.get("stream_detail") or ():
                title = f"{stream.get('name', '')} of {account.get('name', '')}"
                cluster = stream.get("cluster") or {}
                if cluster.get("leader") == server:
                    whole[title] = name in _current_at(server, cluster)
                else:
                    whole.setdefault(title, False)
    return sorted(title for title, is_whole in whole.items() if not is_whole)


def _current_at(leader: str, cluster: Mapping[str, Any]) -> set[str]:
    found = {
        str(it.get("name", ""))
        for it in cluster.get("replicas") or ()
        if it.get("current") and not it.get("offline")
    }
    return {leader, *found}


@dataclass(frozen=True, slots=True)
class UnplacedStream:
    """A stream that should lie at a server and is not meant to, and the ids of those it counts."""

    account: str
    stream: str
    counts: frozenset[str]


async def streams_lacking(system: Connection, name: str, servers: int) -> list[UnplacedStream]:
    """The streams, of all accounts, that are to lie at all servers, and not at that of this name.

    Raises BusBroken.
    """
    asked = {"accounts": True, "streams": True, "config": True}
    return lacking_in(await _asked_all(system, asked, servers), name, servers)


def lacking_in(
    answers: Mapping[str, Mapping[str, Any]], name: str, servers: int
) -> list[UnplacedStream]:
    """The same, of what each server says of its streams, by its name."""
    found = []
    for server, said in answers.items():
        for account in said.get("account_details") or ():
            for stream in account.get("stream_detail") or ():
                cluster = stream.get("cluster") or {}
                replicas = (stream.get("config") or {}).get("num_replicas", 0)
                if cluster.get("leader") != server or replicas != servers:
                    continue
                counts = _counted(server, cluster)
                if peer_id(name) not in counts:
                    title = str(account.get("name", "")), str(stream.get("name", ""))
                    found.append(UnplacedStream(*title, counts))
    return found


async def have_placed(connection: Connection, it: UnplacedStream, gone: str) -> None:
    """Have a stream lie at a server of the cluster where it does not; raises BusBroken.

    `gone` is the server that the stream counts in its place, "" if it counts too few. `connection`
    is of the stream's account. Who leads the cluster does so by itself as a server goes or comes,
    and nobody does if that one ended just then.
    """
    if gone:
        await connection.api(f"STREAM.PEER.REMOVE.{it.stream}", peer=gone)
        return
    config = (await connection.api(f"STREAM.INFO.{it.stream}"))["config"]
    # A number that is as it was places nothing anew.
    for replicas in (len(it.counts), config["num_replicas"]):
        wish = {**config, "num_replicas": replicas}
        await connection.api(f"STREAM.UPDATE.{it.stream}", **wish)


async def _asked_all(
    system: Connection, body: Mapping[str, Any], servers: int
) -> dict[str, Mapping[str, Any]]:
    """What the servers answer in time, by name."""
    client, found = system.client, dict[str, Mapping[str, Any]]()
    all_there = asyncio.Event()

    async def hear(message: Msg) -> None:
        with suppress(JetStreamRefused):
            said = checked(_ALL_SERVERS, message)
            server, data = said.get("server"), said.get("data")
            if isinstance(server, dict) and isinstance(data, dict):
                found[str(server.get("name", ""))] = data
        if len(found) >= servers:
            all_there.set()

    inbox = client.new_inbox()
    try:
        subscription = await client.subscribe(inbox, cb=hear)
        try:
            await client.publish(_ALL_SERVERS, json.dumps(body).encode(), reply=inbox)
            with suppress(TimeoutError):
                async with asyncio.timeout(ANSWER_SECONDS):
                    await all_there.wait()
        finally:
            await subscription.unsubscribe()
    except (NatsError, OSError) as error:
        raise BusBroken(f"the servers of this node cannot be asked: {error}") from error
    return found
