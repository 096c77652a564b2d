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
    """A failure for each member that is lost; nothing of nodes that run once."""
    nodes = [node for node in facts.nodes if node.members]
    lost = [check for node in nodes for it in node.members if (check := _lost(node, it))]
    yield from lost
    whole = [node for node in nodes if not any(_lost(node, it) for it in node.members)]
    if whole:
        names = some_of([node.path for node in whole], NAMED_MAX)
        members = many(len(whole[0].members), "member")
        stored = sum((node.store_bytes or 0) * len(node.members) for node in whole)
        said = f"{members} of {names} are there, so one of each may be lost"
        yield Check(GROUP, "ok", f"{said}; each keeps all: {bytes_text(stored)} together")


def _lost(node: NodeFacts, member: Mapping[str, Any]) -> Check | None:
    """What is wrong with a member; None if it could take over now."""
    who = f"member {member['name']} of {node.path}"
    cause = f"until it is back {node.path} stops when another member is lost"
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
        remedy = "start it where it runs, and see that the routes between the members are open"
    elif member["role"] not in ("active", "standby"):
        said = f"the process of {who} does not answer"
        remedy = "start it where it runs; daemon.log in its data directory says why it ended"
    elif member["lag"] > LAG_MESSAGES_MAX:
        said = f"the server of {who} lacks {member['lag']} messages of the ledger"
        remedy = "wait until it has caught up; if that does not end, look at its disk and its route"
    else:
        return None
    return Check(GROUP, "failure", said, cause, remedy, node.path)
