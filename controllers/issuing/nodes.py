"""Nodes of the tree come and go by signed records, issued to the parent of their path."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from controllers.core.ledger.ledger import Draft
from controllers.core.ledger.node_moves import move_fault, node_in, nodes_below
from controllers.issuing.issuer import Issuer
from controllers.issuing.node_credentials import NodeCredentials
from schemas.records.records import API_NODE, NodeRecord, Source
from schemas.values.faults import Unusable
from schemas.values.identity import MailKey, NodePath, TreeId

NewNkey = Callable[[bytes], tuple[str, str]]
"""Entropy (32 bytes) to (seed, public nkey)."""


class NodeRefused(Unusable, ValueError):
    """A node that cannot be added or removed; names its path and the remedy."""

    word = "node "


async def add_node(
    issuer: Issuer, path: NodePath, entropy: bytes, new_nkey: NewNkey
) -> NodeCredentials:
    """Make a key pair and issue the node's record; a node that exists gets a new key.

    Raises NodeRefused for the centre itself, and below a parent that has no record.
    """
    if path.is_root:
        raise NodeRefused(path, "the centre is no child", "name a path such as /emea")
    if not path.parent.is_root and node_record(issuer, path.parent) is None:
        reason = f"its parent {path.parent} is no node"
        raise NodeRefused(path, reason, f"add {path.parent} first")
    seed, nkey = new_nkey(entropy)
    await enrol_nodes(issuer, {path: nkey})
    return NodeCredentials(path, seed, nkey)


async def enrol_nodes(issuer: Issuer, nkeys: Mapping[NodePath, str]) -> None:
    """Issue the records of nodes by their public keys, all as one."""
    await issuer.issue([_draft(issuer.tree, path, nkey) for path, nkey in nkeys.items()])


BUNDLE_CLOCKS_MS = 10 * 60_000
"""So much the clocks of a relay and the centre may differ about when a bundle's time is over."""


async def end_bundles(
    issuer: Issuer, accepted: Mapping[NodePath, str], now_ms: int
) -> list[NodePath]:
    """Void the keys of bundles of a former release that nobody came by; whose they were.

    `accepted` has for nodes the public key that their parents let them in with, "" for none. Who
    is let in well after the bundle's time came by it, and has its key for ever. Only who may change
    which keys nodes have calls it.
    """
    bundled = [record for record in bundled_nodes(issuer) if record.path in accepted]
    void = [record.path for record in bundled if not accepted[record.path]]
    came = {
        record.path: record.nkey
        for record in bundled
        if accepted[record.path] == record.nkey and record.until_ms + BUNDLE_CLOCKS_MS < now_ms
    }
    if void or came:
        await enrol_nodes(issuer, {**dict.fromkeys(void, ""), **came})
    return void


def void_bundle(path: NodePath) -> str:
    """That a bundle opens nothing any more, and what to do."""
    return (
        f"nobody came by the bundle of {path}, and none opens anything any more: make a token with "
        f"`leafcast node add {path}`, or `leafcast node remove {path} --force`"
    )


async def enrol_lost_nodes(issuer: Issuer, nkeys: Mapping[NodePath, str]) -> None:
    """Issue the records of nodes that the ledger lost, by the public keys that others kept.

    What it does not lack is left as it is: a node that is not there was removed.
    """
    any_may_be_lost = issuer.is_new or issuer.is_partial
    lacking = {
        path: nkey
        for path, nkey in sorted(nkeys.items())
        if node_record(issuer, path) is None
        and (any_may_be_lost or _source(issuer.tree, path).key in issuer.lost)
    }
    if lacking:
        await enrol_nodes(issuer, lacking)


def check_move(issuer: Issuer, old: NodePath, new: NodePath) -> None:
    """Raises NodeRefused unless a node without others below it can move to the path."""
    if fault := move_fault(issuer.records, issuer.tree, old, new):
        raise NodeRefused(*fault)


async def remove_node(issuer: Issuer, path: NodePath) -> MailKey:
    """Delete the record of a node, and return its key.

    Raises NodeRefused if it is none, or has nodes below it.
    """
    record = node_record(issuer, path)
    if record is None:
        raise NodeRefused(
            path, "there is no such node", "`leafcast node list` shows the nodes there are"
        )
    if below := nodes_below(issuer.records, path):
        reason = f"there are nodes below it: {', '.join(map(str, below))}"
        raise NodeRefused(path, reason, "remove them first")
    await issuer.delete([record.source.key])
    return record.source.key


def nodes(issuer: Issuer) -> list[NodeRecord]:
    """All nodes of the tree but the centre, by path."""
    records = [item for item in issuer.records.values() if isinstance(item, NodeRecord)]
    return sorted(records, key=lambda item: item.path)


def bundled_nodes(issuer: Issuer) -> list[NodeRecord]:
    """The nodes with a bundle of a former release by which nobody is known to have come."""
    return [record for record in nodes(issuer) if record.until_ms]


def nkeys_of(issuer: Issuer, path: NodePath) -> tuple[str, ...]:
    """The public keys that a node may have; none of one that is none, or is revoked."""
    record = node_record(issuer, path)
    return tuple(record.nkey.split()) if record is not None else ()


def node_record(issuer: Issuer, path: NodePath) -> NodeRecord | None:
    """The record of a node in force."""
    return node_in(issuer.records, issuer.tree, path)


def _draft(tree: TreeId, path: NodePath, nkey: str) -> Draft:
    return Draft("node", NodeRecord(_source(tree, path), 0, "", "", path, nkey))


def _source(tree: TreeId, path: NodePath) -> Source:
    return Source(API_NODE, tree, "", str(path))
