"""A SyncTarget whose node is there is not deleted in passing: the node would be emptied."""

from __future__ import annotations

from collections.abc import Mapping

from leafcast.cli.options.objects import refuse

NODES_NAMED_MAX = 10


def refuse_nodes_there(by_path: Mapping[str, str], unsure: str) -> None:
    """End with exit code 1 if there are SyncTargets of nodes in the tree, by their paths.

    Or if the centre cannot tell, and says why.
    """
    if unsure:
        refuse(
            [f"nobody can tell whether its node is there: {unsure}", "try again, or say --force"]
        )
    there = list(by_path)
    if not there:
        return
    faults = [
        f'synctarget "{by_path[path]}" is the destination of {path}, which is there and would be '
        f"emptied; if the node is to go: leafcast node remove {path}; else say --force"
        for path in there[:NODES_NAMED_MAX]
    ]
    more = len(there) - NODES_NAMED_MAX
    refuse([*faults, *([f"and {more} more"] if more > 0 else []), "nothing was deleted"])
