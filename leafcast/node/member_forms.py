"""How the members of a node stand, as it is told: what each says of itself, and of its server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from leafcast.node.member_change import UnderWay
from relay.adapters.jetstream.member_presence import ACTIVE, CLOCK_TROUBLE, ROLE

if TYPE_CHECKING:
    from relay.adapters.jetstream.member_servers import MemberServer

NONE, SILENT = "none", "silent"
"""What a member is beside active and standby: it hears of nobody who is active, or it is silent."""
LEADS, FOLLOWS, BEHIND, DOWN, FULL = "leads", "follows", "behind", "down", "full"
ANSWERS = "answers"
"""What a server is while no member is active, who would know whether it follows."""
CHILDREN = "children"
"""The fact of a member that says which children its server lets in, by which keys."""
VERSION = "version"
"""Of its release."""
STORE_FULL = "storeFull"
"""What a member says of itself: its server cannot write, for want of room on the disk."""
UNFIT = "unfit"
"""What a member says of itself: why its machine keeps it from being active, "" if it does not."""
ENCRYPTED = "encrypted"
"""Whether what its server stores is encrypted."""
APPLIED = "applied"
"""Number and step of the last change of the members that a member carried out."""
SERVERS = "servers"
"""Of which members the servers answered a member of late."""
LISTENS = "listens"
"""Where children from elsewhere dial in at a member."""
STUCK = "stuck"
"""What the active one says of streams that take no writes: the servers that lead them, by name."""
MEMBERS_ASKED = "members"
"""The argument with which a node is asked for them."""

Form = dict[str, Any]


def member_forms(
    facts: Mapping[str, Mapping[str, Any]],
    servers: Iterable[MemberServer],
    change: UnderWay | None = None,
) -> list[Form]:
    """How each stands, by name.

    `{name, role, seconds, server, lag, version, sameChildren, encrypted, clock, change}`.

    A member whose process does not answer is `silent`; `seconds` is for how long it is active, or
    has heard nothing of one that is; `sameChildren` is whether its server lets in whom the active
    one's does, by the same keys. A server is `stuck` that leads a stream that takes no writes.
    `encrypted` is whether its store is, None if it does not say. `clock` is why its clock, or what
    its machine lacks, keeps it from being active. `change` says of a member that is lost, or that
    comes in its place, how far that is.
    """
    stuck = {
        str(server).rpartition(".")[2]
        for said in facts.values()
        for server in (said.get(STUCK) or {}).values()
    }
    standing = {server.member: server for server in servers}
    active = next((it for it in facts.values() if it.get(ROLE) == ACTIVE), {})
    forms = []
    changing = {change.lost, change.came} if change is not None and change.said else set[str]()
    for name in sorted(facts.keys() | standing.keys() | changing):
        said, server = facts.get(name, {}), standing.get(name)
        is_encrypted = said.get(ENCRYPTED)
        seconds = said.get("activeSeconds", said.get("silentSeconds", 0))
        forms.append(
            {
                "name": name,
                "role": str(said.get(ROLE, SILENT)),
                "seconds": int(seconds) if isinstance(seconds, (int, float)) else 0,
                "server": _server(server, said, is_stuck=name in stuck),
                "lag": server.lag if server is not None else 0,
                "version": str(said.get(VERSION, "")),
                "sameChildren": CHILDREN in said and said[CHILDREN] == active.get(CHILDREN),
                "encrypted": is_encrypted if isinstance(is_encrypted, bool) else None,
                "clock": str(said.get(CLOCK_TROUBLE) or said.get(UNFIT, "")),
                "change": change.said if change is not None and name in changing else "",
            }
        )
    return forms


def unled_forms(names: Iterable[str], facts: Mapping[str, Mapping[str, Any]]) -> list[Form]:
    """How the members of these names stand while none is active: what each says of itself.

    As `member_forms`; a server `answers` that one of those reached of late that answer now. Nothing
    if one is active.
    """
    if any(said.get(ROLE) == ACTIVE for said in facts.values()):
        return []
    answering = {name for said in facts.values() for name in said.get(SERVERS) or ()}
    forms = member_forms({name: facts.get(name, {}) for name in names}, ())
    for form in forms:
        if form["server"] == DOWN and form["name"] in answering:
            form["server"] = ANSWERS
    return forms


def _server(server: MemberServer | None, said: Mapping[str, Any], *, is_stuck: bool) -> str:
    if said.get(STORE_FULL) is True:
        return FULL
    if is_stuck:
        return STUCK
    if server is None or not server.is_reached:
        return DOWN
    if server.leads and server.is_current:
        return LEADS
    return FOLLOWS if server.is_current and not server.lag else BEHIND
