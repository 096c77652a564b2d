"""Which node leaves its place together with its destination, and which move makes no sense."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from schemas.records.moves import former_paths
from schemas.records.records import API_NODE, NodeRecord, Profile, Record, Source
from schemas.records.snapshots import EntryKey, path_entry_key
from schemas.values.identity import MailKey, NodePath, TreeId

Records = Mapping[MailKey, Record]
"""What is in force."""


def node_in(records: Records, tree: TreeId, path: NodePath) -> NodeRecord | None:
    """The record of a node in force."""
    record = records.get(Source(API_NODE, tree, "", str(path)).key)
    return record if isinstance(record, NodeRecord) else None


def left_nodes(
    records: Records, tree: TreeId, moved: Iterable[tuple[NodePath, Profile]]
) -> list[MailKey]:
    """The nodes that moved away with destinations: where each hung, and its new profile.

    They are deleted together with what the new profiles replace: one snapshot drops both.
    """
    found = []
    for old, profile in moved:
        if old == profile.path or old not in former_paths(profile.annotations):
            continue
        left = node_in(records, tree, old)
        if left and node_in(records, tree, profile.path) and not nodes_below(records, old):
            found.append(left.source.key)
    return found


def still_left(records: Records, tree: TreeId, listed: Container[EntryKey]) -> list[MailKey]:
    """The nodes that moved away with destinations, as far as the last snapshot does not know it.

    It lists them where they were, or not where they are. Who begins on this ledger drops the old
    profile, and the node with it. A node that is newer than the move came after it.
    """
    moved = [
        (old, profile)
        for key, profile in records.items()
        if isinstance(profile, Profile)
        for old in former_paths(profile.annotations)
        if path_entry_key(old, key) in listed or path_entry_key(profile.path, key) not in listed
        if (node := node_in(records, tree, old)) and node.generation < profile.generation
    ]
    return left_nodes(records, tree, moved)


def move_fault(
    records: Records, tree: TreeId, old: NodePath, new: NodePath
) -> tuple[NodePath, str, str] | None:
    """Why a node cannot move to a path: of which path it is said, the reason, and what to do."""
    if old.is_root or new.is_root:
        return NodePath(), "the centre is no child", "name a path such as /emea/store-1"
    if node_in(records, tree, old) is None:
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
    if node_in(records, tree, new) is not None:
        remedy = f"name another path, or free this one with `leafcast node remove {new}`"
        return new, "there is such a node already", remedy
    if not new.parent.is_root and node_in(records, tree, new.parent) is None:
        return new, f"its parent {new.parent} is no node", f"add {new.parent} first, as a relay"
    return None


def nodes_below(records: Records, path: NodePath) -> list[NodePath]:
    """The nodes in force below a path."""
    found = (item for item in records.values() if isinstance(item, NodeRecord))
    return sorted(item.path for item in found if item.path != path and path.holds(item.path))
