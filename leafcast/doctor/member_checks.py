"""Whether each node that runs several times could lose one of its members now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from leafcast.doctor.common import bytes_text
from leafcast.doctor.findings import Check, DoctorFacts, NodeFacts
from schemas.values.wording import many, some_of

GROUP, NAMED_MAX = "Members", 3
LAG_MESSAGES_MAX = 1000
"""A server that lacks more of the ledger is not caught up yet."""


def member_checks(facts: DoctorFacts) -> Iterator[Check]:
    """A failure for each member that is lost, and whether one may be lost or restarted now.

    Nothing of nodes that run once.
    """
    nodes = [node for node in facts.nodes if node.members]
    judged = [
        (node, [_changing(node), *(_lost(node, it) or _not_yet(node, it) for it in _settled(node))])
        for node in nodes
    ]
    for _, found in judged:
        yield from filter(None, found)
    yield from (check for node in nodes if (check := _mixed(node)))
    yield from (check for node in nodes if (check := _partly_clear(node)))
    yield from (_whole(node) for node, found in judged if not any(found))


def unled_checks(facts: DoctorFacts) -> Iterator[Check]:
    """Of the centre, while none of its members is active: a failure for each that could not be."""
    centre = NodeFacts("/", "centre", "", members=facts.unled)
    yield from (check for it in centre.members if (check := _lost(centre, it, is_led=False)))


def _whole(node: NodeFacts) -> Check:
    """One of each node: who restarts members one at a time waits for it."""
    members = many(len(node.members), "member")
    said = f"the {members} of {node.path} are there: one may be lost, or restarted now"
    stored = bytes_text((node.store_bytes or 0) * len(node.members))
    content = f"each keeps all, and its content: {stored} together"
    return Check(GROUP, "ok", f"{said}; {content}", about=node.path)


def _settled(node: NodeFacts) -> list[Mapping[str, Any]]:
    """The members but for one that is lost, and the one that comes in its place."""
    return [it for it in node.members if not it.get("change")]


def _changing(node: NodeFacts) -> Check | None:
    """That a machine takes the place of a lost member, and how far that is."""
    change = next((it["change"] for it in node.members if it.get("change")), "")
    if not change:
        return None
    cause = f"until that is done {node.path} stops when another member is lost"
    remedy = (
        "wait, and let `leafcast join` run on the new machine; if that is lost, too, say `leafcast "
        f"node replace {node.path} --member` for it"
    )
    return Check(GROUP, "warning", f"of {node.path} {change}", cause, remedy, node.path)


def _not_yet(node: NodeFacts, member: Mapping[str, Any]) -> Check | None:
    """Why no other member may be restarted now; None if one may."""
    who, path = f"member {member['name']} of {node.path}", node.path
    if member["server"] == "behind":
        said = f"the server of {who} has not caught up"
    elif not member["sameChildren"]:
        said = f"{who} does not let in the same children as the active one yet"
    else:
        return None
    cause = f"{path} may stop for a while if another member is restarted or lost before it has"
    remedy = (
        "restart no other one, and ask again in some seconds; its daemon.log says what it waits for"
    )
    return Check(GROUP, "warning", said, cause, remedy, path)


def _mixed(node: NodeFacts) -> Check | None:
    """That its members are of several releases: an upgrade is under way."""
    versions = {it["version"]: it["name"] for it in node.members if it["version"]}
    if len(versions) <= 1:
        return None
    named = some_of(
        [f"{name} is of {version}" for version, name in sorted(versions.items())], NAMED_MAX
    )
    return Check(
        GROUP,
        "warning",
        f"members of {node.path} are of different releases: {named}",
        "an upgrade was begun, and an older one that becomes active may not know what is new",
        "install the newest release at each, and restart them one at a time",
        node.path,
    )


def _partly_clear(node: NodeFacts) -> Check | None:
    """That some of its members keep in clear what others encrypt."""
    said = {it["name"]: it.get("encrypted") for it in node.members}
    clear = [name for name, is_encrypted in said.items() if is_encrypted is False]
    if not clear or True not in said.values():
        return None
    return Check(
        GROUP,
        "warning",
        f"the store of {some_of(clear, NAMED_MAX)} of {node.path} is in clear, others' are not",
        "each keeps the same content: who gets one of those disks can read it",
        "start those members anew with --store-key-file: a store is encrypted at the next start",
        node.path,
    )


def _lost(node: NodeFacts, member: Mapping[str, Any], *, is_led: bool = True) -> Check | None:
    """What is wrong with a member; None if it could take over now.

    Another one takes the place of a lost one only while one of them is active.
    """
    who = f"member {member['name']} of {node.path}"
    cause, lost = f"one of the members of {node.path} is active only while two could be", ""
    if is_led:
        replace = f"leafcast node replace {node.path} --member {member['name']}"
        cause = f"until it is back {node.path} stops when another member is lost"
        lost = f"; if it is lost for good: {replace}"
    if member["server"] == "full":
        said = f"the disk of {who} is full, so its server keeps nothing"
        remedy = "make room there: the server is started again by itself then"
    elif member["server"] == "stuck":
        said = f"the server of {who} leads a stream that takes no writes, and calls it healthy"
        remedy = (
            "start the process of that member anew: its server starts with it, and loses nothing"
        )
    elif member["server"] == "down":
        said = f"the server of {who} is not reached by the others"
        remedy = (
            f"start it where it runs, and see that the routes between the members are open{lost}"
        )
    elif member["role"] not in ("active", "standby"):
        said = f"the process of {who} does not answer"
        remedy = f"start it where it runs; daemon.log in its data directory says why it ended{lost}"
    elif member["lag"] > LAG_MESSAGES_MAX:
        said = f"the server of {who} lacks {member['lag']} messages of the ledger"
        remedy = "wait until it has caught up; if that does not end, look at its disk and its route"
    elif trouble := member.get("clock", ""):
        trouble, _, remedy = trouble.partition(": ")
        said = f"{who} does not become active: {trouble}"
    else:
        return None
    return Check(GROUP, "failure", said, cause, remedy, node.path)
