"""The servers of a node's members, by what the leaders of its streams say of them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from relay.adapters.jetstream import lease_stream, state_stream
from relay.adapters.jetstream.cluster_peers import peer_id
from relay.adapters.jetstream.connection import Connection
from relay.ports import BusBroken
from schemas.values import subjects

ANSWER_SECONDS = 2.0
NUMBERS_MAX = 100
"""Members are called m1, m2 and so on; no name is given twice."""
_UNHEARD = re.compile(r"\(peerID: (\w+)\)$")
_LEDGER = "OWN"
_OTHERS = tuple(it for it in subjects.STREAMS if it != _LEDGER)


@dataclass(frozen=True, slots=True)
class MemberServer:
    """One member's server: how many messages of the ledger it lacks, and whether it is reached.

    `is_current` is whether it has caught up with all streams of the node, that of the lease among
    them, which is empty where a server was started anew.
    """

    member: str
    leads: bool = False
    is_reached: bool = True
    lag: int = 0
    is_current: bool = True


async def member_servers(connection: Connection) -> tuple[MemberServer, ...]:
    """All of them; raises BusBroken if the ledger has no leader."""

    async def cluster_of(stream: str) -> dict[str, Any]:
        info = await connection.api(f"STREAM.INFO.{stream}", ANSWER_SECONDS)
        return info.get("cluster") or {}

    ledger, others = await cluster_of(_LEDGER), list[dict[str, Any]]()
    try:
        for stream in (*_OTHERS, lease_stream.STREAM, state_stream.STREAM):
            others.append(await cluster_of(stream))
    except BusBroken:
        # Without a leader of its own: none has caught up with it.
        return tuple(replace(server, is_current=False) for server in servers_in(ledger))
    return servers_in(ledger, *others)


def servers_in(cluster: dict[str, Any], *others: dict[str, Any]) -> tuple[MemberServer, ...]:
    """What JetStream says of the clusters of the ledger and of other streams: the leader first."""
    leader = cluster.get("leader") or ""
    behind = {
        _member(replica.get("name", ""), leader)
        for each in (cluster, *others)
        for replica in each.get("replicas") or ()
        if not replica.get("current", False)
    }
    first = _member(leader)
    found = [MemberServer(first, leads=True, is_current=first not in behind)] if leader else []
    for replica in cluster.get("replicas") or ():
        name = _member(replica.get("name", ""), leader)
        is_reached = not replica.get("offline", False)
        lag, is_current = int(replica.get("lag") or 0), name not in behind
        found.append(MemberServer(name, is_reached=is_reached, lag=lag, is_current=is_current))
    return tuple(found)


def _member(server: str, other: str = "") -> str:
    """The last part of a server's name; see ClusterSettings.server_name.

    A server that was started after another one was lost never heard its name, and says its id only:
    that is one like the `other`'s.
    """
    unheard, node = _UNHEARD.search(server), other.rpartition(".")[0]
    if unheard is None:
        return server.rpartition(".")[2]
    names = (f"m{number}" for number in range(1, NUMBERS_MAX))
    return next((it for it in names if peer_id(f"{node}.{it}") == unheard[1]), server)
