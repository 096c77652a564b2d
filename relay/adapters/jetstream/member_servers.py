"""The servers of a node's members, by what the leader of its ledger says of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from relay.adapters.jetstream.connection import Connection

ANSWER_SECONDS = 2.0
_LEDGER = "OWN"


@dataclass(frozen=True, slots=True)
class MemberServer:
    """One member's server: how many messages of the ledger it lacks, and whether it is reached."""

    member: str
    leads: bool = False
    is_reached: bool = True
    lag: int = 0


async def member_servers(connection: Connection) -> tuple[MemberServer, ...]:
    """All of them; raises BusBroken if the ledger has no leader."""
    info = await connection.api(f"STREAM.INFO.{_LEDGER}", ANSWER_SECONDS)
    return servers_in(info.get("cluster") or {})


def servers_in(cluster: dict[str, Any]) -> tuple[MemberServer, ...]:
    """What an answer of JetStream's says of a stream's cluster: the leader first."""
    leader = cluster.get("leader")
    found = [MemberServer(_member(leader), leads=True)] if leader else []
    for replica in cluster.get("replicas") or ():
        name, is_reached = _member(replica.get("name", "")), not replica.get("offline", False)
        found.append(MemberServer(name, is_reached=is_reached, lag=int(replica.get("lag") or 0)))
    return tuple(found)


def _member(server: str) -> str:
    """The last part of a server's name; see ClusterSettings.server_name."""
    return server.rpartition(".")[2]
