"""The inventory that a tree on this machine begins with: its edges, labelled by region and id."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from schemas.values.groups import GROUP, PATH_ANNOTATION, VERSION
from schemas.values.identity import NodePath


def edge_objects(
    path: NodePath, name: str = "", labels: Mapping[str, str] = MappingProxyType({})
) -> list[dict[str, Any]]:
    """The SyncTarget and the Location of one edge; both are named by its path, or as said.

    Labels that are given win over `region`, never over `id`.
    """
    name = name or "-".join(path.names)
    metadata = {"name": name, "labels": {"region": path.names[0], **labels, "id": name}}
    sync_target = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "SyncTarget",
        "metadata": {**metadata, "annotations": {PATH_ANNOTATION: str(path)}},
        "spec": {},
    }
    location = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "Location",
        "metadata": metadata,
        "spec": {
            "resource": {"group": GROUP, "version": VERSION, "resource": "synctargets"},
            "instanceSelector": {"matchLabels": {"id": name}},
        },
    }
    return [sync_target, location]
