"""A SyncTarget whose node is there is not deleted in passing: the node would be emptied."""

from __future__ import annotations

from collections.abc import Iterable

from leafcast.ask.session import CallFailed, Session
from leafcast.cli.options.objects import refuse
from relay.ports import Object
from schemas.values.groups import PATH_ANNOTATION

NODES_SECONDS, NODES_NAMED_MAX = 90.0, 10


async def refuse_nodes_there(session: Session, targets: Iterable[Object]) -> None:
    """End with exit code 1 if the node of one of these SyncTargets is in the tree."""
    by_path = {path: str(it["metadata"]["name"]) for it in targets if (path := _path_of(it))}
    if not by_path:
        return
    try:
        nodes = (await session.call("node-list", seconds=NODES_SECONDS))["nodes"]
    except CallFailed as error:
        refuse([f"nobody can tell whether its node is there: {error}", "try again, or say --force"])
    there = [node["path"] for node in nodes if node["path"] in by_path]
    if not there:
        return
    faults = [
        f'synctarget "{by_path[path]}" is the destination of {path}, which is there and would be '
        f"emptied; if the node is to go: leafcast node remove {path}; else say --force"
        for path in there[:NODES_NAMED_MAX]
    ]
    more = len(there) - NODES_NAMED_MAX
    refuse([*faults, *([f"and {more} more"] if more > 0 else []), "nothing was deleted"])


def _path_of(target: Object) -> str:
    return str((target["metadata"].get("annotations") or {}).get(PATH_ANNOTATION, ""))
