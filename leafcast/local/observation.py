"""What is known of a running tree at a moment, as plain values for the views."""

from __future__ import annotations

from collections.abc import Mapping

from leafcast.local.views import NodeRow, PlacementView, TreeView
from leafcast.node.runtime import NodeRuntime
from relay.core.node import Node
from relay.core.records.accepted import is_delta
from schemas.records.placements import placement_of
from schemas.reports.reports import ExceptionSample
from schemas.values.identity import NodePath
from schemas.values.wording import namespace_first


def observe_tree(nodes: Mapping[NodePath, NodeRuntime]) -> TreeView:
    """The nodes that run here, the placements as the centre knows them, and what was noted."""
    runtimes = sorted(nodes.values(), key=lambda runtime: runtime.path)
    noted: dict[str, int] = {}
    for runtime in runtimes:
        for reason, count in runtime.driver.counters.noted.items() if runtime.driver else ():
            noted[reason] = noted.get(reason, 0) + count
    centre = nodes.get(NodePath())
    node = centre.node if centre else None
    placements = _placements(node) if node else ()
    return TreeView(tuple(map(_node_view, runtimes)), placements, noted)


def _sample_text(sample: ExceptionSample) -> str:
    """What is wrong, in one line."""
    where = f" ({sample.count}, e.g. {sample.path})"
    said = ": ".join(filter(None, (namespace_first(sample.object), sample.reason)))
    return said + where


def _node_view(runtime: NodeRuntime) -> NodeRow:
    node, driver = runtime.node, runtime.driver
    role = "edge" if runtime.attached else "relay"
    return NodeRow(
        path=str(runtime.path),
        role="centre" if runtime.path.is_root else role,
        up=node is not None and node.ready,
        children=len(node.children()) if node else 0,
        mail_written=driver.counters.mail_written if driver else 0,
        blobs_kept=driver.counters.blobs_kept if driver else 0,
        objects_applied=runtime.objects_applied,
    )


def _placements(node: Node) -> tuple[PlacementView, ...]:
    views = []
    for held in list(node.records.values()):
        if is_delta(held):
            count = node.count(held.key)
            summary = count.summary
            views.append(
                PlacementView(
                    name=placement_of(held.record.source) or held.record.source.name,
                    destinations=summary.destinations,
                    states=summary.states,
                    health=summary.health,
                    complete=count.exact,
                    exceptions=tuple(map(_sample_text, summary.exceptions)),
                )
            )
    return tuple(sorted(views, key=lambda view: view.name))
