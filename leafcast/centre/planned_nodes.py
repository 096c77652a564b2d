"""Nodes that were laid out to run elsewhere: the list that the centre registers once, at its start.

The list goes when it is done, so that a node removed later does not come back with a restart.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from controllers.issuing.issuer import Issuer
from controllers.issuing.nodes import enrol_nodes, node_record
from leafcast.ask.session import NODE_MANAGER
from leafcast.centre.inventory import edge_objects
from leafcast.data_dir import DataDir, DataDirUnusable
from relay.atomic_file import atomic_write
from relay.space_port import Space
from schemas.values.codec import from_json
from schemas.values.identity import NodePath

FILE = "planned.json"


@dataclass(frozen=True, slots=True)
class PlannedNode:
    """A node below the centre, and the public key it will prove itself with."""

    path: NodePath
    nkey: str
    # Whether it comes with inventory.
    edge: bool
    # It takes the place of one that the ledger of a backup knows.
    replaces: bool = False


def plan_nodes(place: DataDir, nodes: Iterable[PlannedNode]) -> None:
    """Leave the list for the centre; parents come before their children."""
    forms = [
        {"path": str(it.path), "nkey": it.nkey, "edge": it.edge}
        | ({"replaces": True} if it.replaces else {})
        for it in nodes
    ]
    atomic_write(place.folder / FILE, json.dumps(forms, indent=2) + "\n")


def planned_nodes(place: DataDir) -> list[PlannedNode]:
    """What is still to be registered; mostly nothing. Raises DataDirUnusable."""
    try:
        forms = from_json((place.folder / FILE).read_bytes())
        return [
            PlannedNode(
                NodePath.parse(form["path"]),
                str(form["nkey"]),
                bool(form["edge"]),
                bool(form.get("replaces")),
            )
            for form in forms
        ]
    except FileNotFoundError:
        return []
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        remedy = "write it anew with `leafcast layout`"
        raise DataDirUnusable(place.folder, f"{FILE} is damaged", remedy) from error


async def register_planned(place: DataDir, issuer: Issuer, inventory: Space) -> None:
    """Register those that are not in the tree yet, edges with inventory, and forget the list.

    Those that replace others get their keys into the records that there are.
    """
    for planned in planned_nodes(place):
        if planned.edge:
            for obj in edge_objects(planned.path):
                await inventory.apply(obj, NODE_MANAGER, create_only=True)
        if (node_record(issuer, planned.path) is not None) is planned.replaces:
            await enrol_nodes(issuer, {planned.path: planned.nkey})
    (place.folder / FILE).unlink(missing_ok=True)
