"""Nodes come and go while the tree runs: what the daemon does for `leafcast node`.

A new node gets a signed record, a bundle and, unless it is a relay, its inventory. One that goes
loses its inventory first, so that it gives back what it was sent, and then its place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

from controllers.issuing import Issuer
from controllers.nodes import NodeRefused, add_node, node_record, nodes, remove_node
from leafcast.api import Api, ApiError
from leafcast.asking import CentreAsks, api_error
from leafcast.bundle import Bundle
from leafcast.elsewhere import checked_answer
from leafcast.inventory import edge_objects
from relay.adapters.nkey_pairs import new_user_nkey
from relay.asker import AskFailed
from relay.ports import Clock, Dice, Space
from schemas.api import GROUP, PATH_ANNOTATION
from schemas.asks import NODE, AskFault
from schemas.faults import InvalidObject
from schemas.identity import KeyId, NodePath, TreeId
from schemas.objects import ObjectKey, validate_object

MANAGER = "leafcast-node"
LISTED_AT_ONCE = 16
DRAIN_SECONDS_MAX = 60.0
DRAIN_POLL_SECONDS = 0.2
ADMIT_SECONDS_MAX = 10.0

Json = dict[str, Any]


class Tree(Protocol):
    """What membership needs of the centre's run now; it raises BusBroken between runs."""

    def issuer(self) -> Issuer: ...

    def inventory_space(self) -> Space: ...

    def tree_id(self) -> TreeId: ...

    def roots(self) -> Mapping[KeyId, bytes]: ...


class Membership:
    """The verbs `node-add`, `node-remove` and `node-list` of a daemon."""

    def __init__(self, tree: Tree, asks: CentreAsks, clock: Clock, dice: Dice) -> None:
        self._tree = tree
        self._asks = asks
        self._clock = clock
        self._dice = dice
        self._changing = asyncio.Lock()

    async def add(
        self,
        path: str,
        *,
        relay: bool = False,
        labels: Mapping[str, str] | None = None,
        valid_seconds: int = 86_400,
    ) -> Json:
        """The text of a new bundle for the path; a bundle made earlier for it is void from then.

        Raises ApiError, NodeRefused.
        """
        where = NodePath.parse(path)
        if where.is_root:
            raise NodeRefused(where, "the centre is no child", "name a path such as /emea")
        objects = [] if relay else _objects(where, labels or {})
        async with self._changing:
            parent = await self._parent(where)
            issuer, tree = self._tree.issuer(), self._tree.tree_id()
            again = node_record(issuer, tree, where) is not None
            entropy = self._dice.entropy(32)
            credentials = await add_node(issuer, tree, where, entropy, new_user_nkey)
            # Without new labels an edge that exists keeps those it has come to have.
            keep, space = again and not labels, self._tree.inventory_space()
            objects = [await space.apply(obj, MANAGER, create_only=keep) for obj in objects]
            await self._admitted(where, credentials.nkey)
        now_ms = self._clock.now().wall_ms
        bundle = Bundle(
            tree=tree,
            path=where,
            relay=relay,
            parents=(parent["leafUrl"],),
            seed=credentials.seed,
            roots=self._tree.roots(),
            issued_ms=now_ms,
            expires_ms=now_ms + valid_seconds * 1000,
            labels=objects[0]["metadata"]["labels"] if objects else {},
        )
        return {"bundle": bundle.to_text(), "again": again, "labels": dict(bundle.labels)}

    async def remove(self, path: str, *, force: bool = False) -> Json:
        """Take a node out of the tree: `{removed: [path], left: [what stays behind]}`.

        Without `force` it must answer and have none below it, and gives back what it was sent
        first. Raises ApiError, NodeRefused.
        """
        where = NodePath.parse(path)
        async with self._changing:
            issuer, tree = self._tree.issuer(), self._tree.tree_id()
            going = [node.path for node in nodes(issuer) if where.holds(node.path)]
            if where not in going or (len(going) > 1 and not force):
                await remove_node(issuer, tree, where)  # refuses, with its reason
            answers = await self._answers(where, force=force)
            hanging = await self._hanging()
            left: list[str] = []
            for gone in sorted(going, key=lambda node: len(node.names), reverse=True):
                await self._unregister(hanging.get(str(gone), ""))
                seconds = 0.0 if force else DRAIN_SECONDS_MAX
                left += _left(gone, await self._drained(gone, seconds) if answers else None)
                await remove_node(issuer, tree, gone)
        return {"removed": [str(node) for node in going], "left": left}

    async def all(self) -> Json:
        """All nodes of the tree but the centre, with since when each is not reached."""
        records = nodes(self._tree.issuer())
        parents = sorted({record.path.parent for record in records})
        limit = asyncio.Semaphore(LISTED_AT_ONCE)
        seen: dict[NodePath, Json | AskFault] = {}

        async def look(parent: NodePath) -> None:
            async with limit:
                try:
                    seen[parent] = checked_answer(parent, await self._asks.ask(parent, NODE, {}))
                except AskFailed as failed:
                    seen[parent] = failed.fault

        async with asyncio.TaskGroup() as group:
            for parent in parents:
                group.create_task(look(parent))
        hanging = await self._hanging()
        return {
            "nodes": [
                {
                    "path": str(record.path),
                    "syncTarget": hanging.get(str(record.path), ""),
                    **_reached(record.path, seen[record.path.parent]),
                }
                for record in records
            ]
        }

    async def _parent(self, path: NodePath) -> Json:
        """What the parent says of itself; it must be there, to let the node in."""
        if not path.parent.is_root and self._record(path.parent) is None:
            raise NodeRefused(
                path, f"its parent {path.parent} is no node", f"add {path.parent} first"
            )
        return await self._answer(path.parent, "add nodes below it when it is back")

    def _record(self, path: NodePath) -> object:
        return node_record(self._tree.issuer(), self._tree.tree_id(), path)

    async def _answer(self, path: NodePath, remedy: str) -> Json:
        try:
            answer: Json = await self._asks.ask(path, NODE, {})
        except AskFailed as failed:
            error = api_error(failed.fault)
            raise ApiError(error.code, error.message, remedy) from failed
        return answer

    async def _admitted(self, path: NodePath, nkey: str) -> None:
        """Wait until the parent knows the child's key, so that a join finds its place."""
        until = self._clock.now().seconds + ADMIT_SECONDS_MAX
        while self._clock.now().seconds < until:
            parent = await self._answer(path.parent, "ask again")
            if parent["children"].get(path.name, {}).get("nkey") == nkey:
                return
            await self._clock.sleep(DRAIN_POLL_SECONDS)

    async def _answers(self, path: NodePath, *, force: bool) -> bool:
        """Whether the node answers; raises ApiError if it does not and is not forced."""
        try:
            await self._answer(path, "with --force it is removed as it is")
        except ApiError:
            if not force:
                raise
            return False
        return True

    async def _unregister(self, name: str) -> None:
        """Delete an edge's Location and SyncTarget, so that nothing is meant for it any more."""
        for resource in ("locations", "synctargets") if name else ():
            await self._tree.inventory_space().delete(ObjectKey(GROUP, resource, "", name))

    async def _drained(self, path: NodePath, seconds: float) -> int | None:
        """How many objects the node still holds, after so long at most; None without answer."""
        until = self._clock.now().seconds + seconds
        while True:
            try:
                holds: int = (await self._asks.ask(path, NODE, {}))["objectsApplied"]
            except AskFailed:
                return None
            if not holds or self._clock.now().seconds >= until:
                return holds
            await self._clock.sleep(DRAIN_POLL_SECONDS)

    async def _hanging(self) -> dict[str, str]:
        """The SyncTargets' names by the path they hang at."""
        listing = await self._tree.inventory_space().list(GROUP, "synctargets")
        return {
            obj["metadata"]["annotations"][PATH_ANNOTATION]: obj["metadata"]["name"]
            for obj in listing.objects
            if PATH_ANNOTATION in (obj["metadata"].get("annotations") or {})
        }


def register_membership(api: Api, membership: Membership) -> None:
    """Answer the verbs about nodes."""
    api.register("node-add", membership.add)
    api.register("node-remove", membership.remove)
    api.register("node-list", membership.all)


def _objects(path: NodePath, labels: Mapping[str, str]) -> list[Json]:
    """The new edge's SyncTarget and Location; labels given win over `region`, never over `id`."""
    made = edge_objects(path)
    for obj in made:
        own = obj["metadata"]["labels"]
        obj["metadata"]["labels"] = {**own, **labels, "id": own["id"]}
        try:
            validate_object(obj)
        except InvalidObject as error:
            raise ApiError("Invalid", str(error), "correct the labels") from error
    return made


def _reached(path: NodePath, parent: Json | AskFault) -> Json:
    if isinstance(parent, AskFault):
        return {"reached": False, "sinceMs": parent.since_ms, "because": parent.message}
    child = parent["children"].get(path.name)
    if child is None:
        return {"reached": False, "sinceMs": 0, "because": f"{path.parent} does not know it yet"}
    since = child["silentSinceMs"]
    reached = since is None and child["inSession"]
    quiet = "it stopped in good order" if child.get("left") else "nothing is heard of it"
    because = "" if reached else quiet
    return {"reached": reached, "sinceMs": since or 0, "because": because}


def _left(path: NodePath, holds: int | None) -> list[str]:
    folder = f"its data directory and bundle: remove them where {path} ran"
    if holds is None:
        return [f"{path}: it does not answer; whatever it was sent stays as it is", folder]
    if holds:
        return [f"{path}: {holds} objects in its cluster, which nobody looks after now", folder]
    return [folder]
