"""Whose server leads what in a trio, and where a child hangs; either can be had elsewhere."""

import json

from nats.errors import Error as NatsError

from leafcast.ask.session import INVENTORY_BUCKET, WORKLOADS_BUCKET
from relay.adapters.jetstream.request_reply import CannotConnect
from relay.adapters.server.admin import cut_links
from relay.adapters.spaces.bucket import stream_of
from tests.awaiting import eventually
from tests.nats.chaos_member import Member, until
from tests.nats.conftest import links_of_server
from tests.nats.trio_tree import TrioTree

META, LINK = "meta", "link"
GROUPS = (META, "LEASE", "OWN")
BUCKETS = tuple(stream_of(each) for each in (WORKLOADS_BUCKET, INVENTORY_BUCKET))
WRITTEN = (*GROUPS, "MAIL", "STAT", "BLOB", "STATE", *BUCKETS)
"""All that a centre that becomes active waits for."""
AWAY = (CannotConnect, NatsError, OSError, KeyError)


async def arrange(tree: TrioTree, where: dict[str, str], child: str) -> None:
    """Have each group be led by the server of the member named, and the child's link go there."""
    asked = tree.centres[tree.active()]
    for group in GROUPS:
        await lead(asked, group, where[group])
    await hang(tree, child, where[LINK])


async def leader_of(member: Member, group: str, seconds: float = 1.0) -> str:
    """The name of the member whose server leads it, as this one knows; "" if nobody does."""
    servers = await _servers(member, group, seconds)
    return _name(servers[0]) if servers else ""


async def lead(asked: Member, group: str, name: str) -> None:
    """Have the server of a member lead a stream, or the cluster itself, by asking another one."""
    account = _account(group)
    verb = "META.LEADER.STEPDOWN" if group == META else f"STREAM.LEADER.STEPDOWN.{group}"

    async def is_led_there() -> bool:
        try:
            servers = await _servers(asked, group)
            if servers and _name(servers[0]) == name:
                return True
            for wanted in servers:
                if _name(wanted) == name:
                    body = {"placement": {"preferred": wanted}}
                    await _ask(asked, account, f"$JS.API.{verb}", body)
        except AWAY:
            pass
        return False

    await until(is_led_there, lambda: f"the server of {name} does not lead {group}")


async def hang(tree: TrioTree, child: str, name: str) -> None:
    """Have a child's link be at the server of this member."""

    async def hangs_there() -> bool:
        for each, member in tree.centres.items():
            try:
                async with member.client("system") as system:
                    if not await links_of_server(system, child):
                        continue
                    if each == name:
                        return True
                    await cut_links(system, child)
            except AWAY:
                continue
        return False

    # A link that is cut waits a moment, and takes any of the servers.
    await eventually(hangs_there, f"{child} does not hang at {name}", seconds=60, every=1.0)


async def _servers(member: Member, group: str, seconds: float = 1.0) -> list[str]:
    """The servers of a group, its leader first; those that have not caught up are left out."""
    account, verb, body = _account(group), f"$JS.API.STREAM.INFO.{group}", {}
    if group == META:
        verb, body = "$SYS.REQ.SERVER.PING.JSZ", {"leader_only": True}
    answer = await _ask(member, account, verb, body, seconds)
    cluster = answer["data"]["meta_cluster"] if group == META else answer["cluster"]
    if not cluster.get("leader"):
        return []
    followers = cluster.get("replicas") or ()
    return [cluster["leader"], *(its["name"] for its in followers if its.get("current"))]


def _account(group: str) -> str:
    if group == META:
        return "system"
    return "space" if group.startswith(stream_of("")) else "relay"


async def _ask(
    member: Member, account: str, subject: str, body: dict, seconds: float = 1.0
) -> dict:
    async with member.client(account) as client:
        answer = await client.request(subject, json.dumps(body).encode() if body else b"", seconds)
    return json.loads(answer.data)


def _name(server: str) -> str:
    return server.rpartition(".")[2]
