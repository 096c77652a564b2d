"""The inventory that a tree on this machine begins with: its edges, labelled by region and id."""

from __future__ import annotations

from typing import Any

from schemas.values.groups import GROUP, PATH_ANNOTATION, VERSION
from schemas.values.identity import NodePath


def edge_objects(path: NodePath, name: str = "") -> list[dict[str, Any]]:
    """The SyncTarget and the Location of one edge; both are named by its path, or as said."""
    name = name or "-".join(path.names)
    labels = {"id": name, "region": path.names[0]}
    sync_target = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "SyncTarget",
        "metadata": {
            "name": name,
            "labels": labels,
            "annotations": {PATH_ANNOTATION: str(path)},
        },
        "spec": {},
    }
    location = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "Location",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "resource": {"group": GROUP, "version": VERSION, "resource": "synctargets"},
            "instanceSelector": {"matchLabels": {"id": name}},
        },
    }
    return [sync_target, location]
