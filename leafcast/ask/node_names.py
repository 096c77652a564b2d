"""Which node is meant by a word: its path, its SyncTarget's name, or either nearly."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from leafcast.ask.session import CallFailed, Session
from schemas.values.alike import most_alike

ASK_SECONDS = 15.0
ALIKE = 0.75
_UNKNOWN = frozenset({"NoSuchNode", "NotFound"})
_NO_NODE = "there is no such node"
_REMEDY = "leafcast node list shows the nodes there are"
_PATH = re.compile(r"(?:^|\s)(/[^\s:;,]*[^\s:;,.])")


class NamedNode(NamedTuple):
    """A node: where it hangs, and its SyncTarget if it has one."""

    path: str
    target: str


async def named_nodes(session: Session) -> list[NamedNode]:
    """All nodes of the tree but the centre; raises CallFailed."""
    found = (await session.call("node-list", seconds=ASK_SECONDS))["nodes"]
    return [NamedNode(item["path"], item["syncTarget"] or "") for item in found]


def path_meant(word: str, nodes: Iterable[NamedNode]) -> str:
    """The path of the node that a word names in full, by either name; "" if none."""
    listed = list(nodes)
    for node in listed:
        if word in (node.path, node.target):
            return node.path
    dashed = _dashed(word)
    return next((node.path for node in listed if _dashed(node.path) == dashed), "")


def did_you_mean(word: str, nodes: Iterable[NamedNode]) -> str:
    """Which node a word that names none nearly names, as a question; "" if none is like it."""
    listed = list(nodes)
    meant = path_meant(word, listed)
    if not meant:
        forms = dict(_forms(listed))
        close = most_alike(_dashed(word), forms, ALIKE)
        meant = forms[close] if close else ""
    target = next((node.target for node in listed if node.path == meant), "")
    return f'did you mean "{meant}"{f" ({target})" if target else ""}?' if meant else ""


async def with_meant(session: Session, failed: CallFailed) -> CallFailed:
    """The same failure, with what is meant if it is of a node that is not there."""
    unknown = failed.code in _UNKNOWN or _NO_NODE in failed.message
    found = _PATH.search(failed.message) if unknown else None
    if found is None:
        return failed
    try:
        nodes = await named_nodes(session)
    except CallFailed:
        return failed
    if any(node.path == found[1] for node in nodes):
        return failed
    hint = did_you_mean(found[1], nodes)
    return CallFailed(failed.verb, failed.code, failed.message, hint) if hint else failed


async def must_be_there(session: Session, path: str) -> None:
    """Raise CallFailed if no node has this path."""
    nodes = await named_nodes(session)
    if not any(node.path == path for node in nodes):
        hint = did_you_mean(path, nodes) or _REMEDY
        raise CallFailed("node-list", "NotFound", f"node {path}: {_NO_NODE}", hint)


def targets_meant(words: Iterable[str], nodes: Iterable[NamedNode]) -> Mapping[str, str]:
    """The SyncTargets of these paths, by path; of what has none nothing."""
    by_path = {node.path: node.target for node in nodes if node.target}
    return {word: by_path[word] for word in words if word in by_path}


def _forms(nodes: Iterable[NamedNode]) -> Iterator[tuple[str, str]]:
    for node in nodes:
        yield _dashed(node.path), node.path
        yield node.path.rpartition("/")[2], node.path
        if node.target:
            yield node.target, node.path


def _dashed(word: str) -> str:
    """`region-1-site-1` of `/region-1/site-1`."""
    return word.strip("/").replace("/", "-")
