"""An edge that has no destination gets one: a SyncTarget, and a Location if that is gone, too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controllers.issuing.nodes import nodes
from leafcast.ask.api import ApiError
from leafcast.ask.session import NODE_MANAGER
from leafcast.centre.centre import Centre
from leafcast.centre.inventory import edge_objects
from leafcast.daemon.nodes.enrolment import path_of, valid
from leafcast.daemon.nodes.relocation import name_for
from schemas.values.groups import GROUP
from schemas.values.identity import NodePath

Json = dict[str, Any]


async def register(centre: Centre, path: str, labels: Mapping[str, str]) -> Json:
    """Give the edge at a path its destination: `{name}` of it; raises ApiError.

    A Location that is there stays as it is.
    """
    where = NodePath.parse(path)
    known = [node.path for node in nodes(centre.issuer())]
    if where not in known and not centre.runs_here(where):
        remedy = f"`leafcast node add {where}` makes one"
        raise ApiError("NotFound", f"node {where}: there is no such node", remedy)
    if any(other.parent == where for other in known if other.names):
        remedy = "name an edge: `leafcast node list` shows them"
        raise ApiError("Invalid", f"node {where} is a relay, and has no cluster", remedy)
    space = centre.inventory_space()
    listing = await space.list(GROUP, "synctargets")
    paths = {obj["metadata"]["name"]: path_of(obj) for obj in listing.objects}
    if there := [name for name, at in paths.items() if at == str(where)]:
        remedy = f"change it with `leafcast label synctarget {there[0]} KEY=VALUE`"
        raise ApiError("Exists", f'node {where} is destination "{there[0]}" already', remedy)
    name = name_for(where, paths)
    objects = edge_objects(where, name)
    for obj in objects:
        own = obj["metadata"]["labels"]
        obj["metadata"]["labels"] = {**own, **labels, "id": own["id"]}
    target, location = valid(objects)
    await space.apply(location, NODE_MANAGER, create_only=True)
    await space.apply(target, NODE_MANAGER)
    return {"name": name}
