"""Which node leaves its place together with its destination, and which move makes no sense."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from schemas.identity import MailKey, NodePath
from schemas.moves import former_paths
from schemas.records import NodeRecord, Profile, Record

NodeAt = Callable[[NodePath], NodeRecord | None]
"""The record in force of a node."""


def left_nodes(
    records: Mapping[MailKey, Record], node_at: NodeAt, news: Iterable[Record]
) -> list[MailKey]:
    """The nodes that moved away with destinations, whose new profiles these are.

    They are deleted together with what the new profiles replace: one snapshot drops both.
    """
    found = []
    for profile in news:
        former = records.get(profile.source.key)
        if not isinstance(profile, Profile) or not isinstance(former, Profile):
            continue
        if former.path == profile.path or former.path not in former_paths(profile.annotations):
            continue
        left = node_at(former.path)
        if left and node_at(profile.path) and not nodes_below(records, former.path):
            found.append(left.source.key)
    return found


def move_fault(
    records: Mapping[MailKey, Record], node_at: NodeAt, old: NodePath, new: NodePath
) -> tuple[NodePath, str, str] | None:
    """Why a node cannot move to a path: of which path it is said, the reason, and what to do."""
    if old.is_root or new.is_root:
        return NodePath(), "the centre is no child", "name a path such as /emea/store-1"
    if node_at(old) is None:
        return old, "there is no such node", "`leafcast node list` shows the nodes there are"
    if new == old:
        return old, "it hangs there already", "name another path for it"
    if old.holds(new):
        reason = f"{new} lies below it, and no node hangs below itself"
        return old, reason, "name a path below another node"
    if below := nodes_below(records, old):
        reason = (
            f"there are nodes below it ({', '.join(map(str, below))}), and only a leaf can move"
        )
        return old, reason, "move or remove these first"
    if node_at(new) is not None:
        remedy = f"name another path, or free this one with `leafcast node remove {new}`"
        return new, "there is such a node already", remedy
    if not new.parent.is_root and node_at(new.parent) is None:
        return new, f"its parent {new.parent} is no node", f"add {new.parent} first, as a relay"
    return None


def nodes_below(records: Mapping[MailKey, Record], path: NodePath) -> list[NodePath]:
    """The nodes in force below a path."""
    found = (item for item in records.values() if isinstance(item, NodeRecord))
    return sorted(item.path for item in found if item.path != path and path.holds(item.path))
