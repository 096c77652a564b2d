"""Nodes come and go while the tree runs: what the daemon does for `leafcast node`.

A new node gets a signed record, a bundle and, unless it is a relay, its inventory. One that goes
loses its inventory first, so that it gives back what it was sent, and then its place. One that
moves gets its new place first, and then leaves the old one together with its inventory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

from controllers.core.moving import nodes_below
from controllers.issuing import Issuer
from controllers.nodes import (
    NodeCredentials,
    NodeRefused,
    add_node,
    check_move,
    node_record,
    nodes,
    remove_node,
)
from leafcast.api import Api, ApiError
from leafcast.asking import CentreAsks, api_error
from leafcast.bundle import Bundle
from leafcast.elsewhere import checked_answer
from leafcast.inventory import edge_objects
from leafcast.moving import moved_objects, name_for
from leafcast.plurals import many
from leafcast.session import NODE_MANAGER
from relay.adapters.nkey_pairs import new_user_nkey
from relay.asker import AskFailed
from relay.ports import Clock, Dice, Space
from schemas.api import GROUP, PATH_ANNOTATION
from schemas.asks import NODE, AskFault
from schemas.faults import InvalidObject
from schemas.identity import KeyId, NodePath, TreeId
from schemas.moves import MOVED_ANNOTATION, former_paths
from schemas.objects import ObjectKey, validate_object
from schemas.records import Profile

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

    def runs_here(self, path: NodePath) -> bool:
        """Whether the node is one of those that this very program starts."""
        ...

    def retire(self, path: NodePath) -> None:
        """End the run of a node that was removed, if this program started it."""
        ...


class States(Protocol):
    """Who says in which state each node is, to every command that shows it."""

    async def tree(self) -> Json:
        """See leafcast.tree_facts."""
        ...


class Membership:
    """The verbs `node-add`, `node-move`, `node-remove` and `node-list` of a daemon."""

    def __init__(
        self, tree: Tree, asks: CentreAsks, states: States, clock: Clock, dice: Dice
    ) -> None:
        self._tree = tree
        self._asks = asks
        self._states = states
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
        async with self._changing:
            self._check_kind(where, relay=relay)
            objects = [] if relay else await self._objects_at(where, labels or {})
            parent = await self._parent(where)
            issuer, tree = self._tree.issuer(), self._tree.tree_id()
            again = node_record(issuer, tree, where) is not None
            entropy = self._dice.entropy(32)
            credentials = await add_node(issuer, tree, where, entropy, new_user_nkey)
            # Without new labels an edge that exists keeps those it has come to have.
            keep, space = again and not labels, self._tree.inventory_space()
            objects = [await space.apply(obj, NODE_MANAGER, create_only=keep) for obj in objects]
            await self._admitted(where, credentials.nkey)
        bundle = self._bundle(parent, credentials, objects, valid_seconds)
        return {"bundle": bundle.to_text(), "again": again, "labels": dict(bundle.labels)}

    async def move(
        self,
        path: str,
        new_path: str,
        *,
        labels: Mapping[str, str] | None = None,
        valid_seconds: int = 86_400,
    ) -> Json:
        """Hang an edge elsewhere: the text of the bundle with which it goes on there.

        From then on its destination counts at the new place alone, and the old bundle is void.
        Raises ApiError, NodeRefused.
        """
        old, new = NodePath.parse(path), NodePath.parse(new_path)
        async with self._changing:
            issuer, tree = self._tree.issuer(), self._tree.tree_id()
            check_move(issuer, tree, old, new)
            objects = await self._moved(old, new, labels or {})
            parent = await self._parent(new)
            credentials = await add_node(issuer, tree, new, self._dice.entropy(32), new_user_nkey)
            await self._admitted(new, credentials.nkey)
            space = self._tree.inventory_space()
            objects = [await space.apply(obj, NODE_MANAGER) for obj in objects]
            await self._left(old)
        bundle = self._bundle(parent, credentials, objects, valid_seconds)
        name = objects[0]["metadata"]["name"]
        return {"bundle": bundle.to_text(), "name": name, "labels": dict(bundle.labels)}

    def _bundle(
        self, parent: Json, credentials: NodeCredentials, objects: list[Json], valid_seconds: int
    ) -> Bundle:
        """What a node joins with; without inventory it is a relay."""
        now_ms = self._clock.now().wall_ms
        metadata = objects[0]["metadata"] if objects else {}
        return Bundle(
            tree=self._tree.tree_id(),
            path=credentials.path,
            relay=not objects,
            parents=(parent["leafUrl"],),
            seed=credentials.seed,
            roots=self._tree.roots(),
            issued_ms=now_ms,
            expires_ms=now_ms + valid_seconds * 1000,
            labels=metadata.get("labels") or {},
            former=former_paths(metadata.get("annotations") or {}),
        )

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
                self._tree.retire(gone)
        return {"removed": [str(node) for node in going], "left": left}

    async def all(self) -> Json:
        """All nodes of the tree but the centre, each with its state, as `tree` has it."""
        hanging = await self._hanging()
        return {
            "nodes": [
                {
                    "path": form["path"],
                    "syncTarget": hanging.get(form["path"], ""),
                    "state": form["state"],
                    "reached": form["state"] in ("up", "stale"),
                    "sinceMs": form["silent_since_ms"] or 0,
                }
                for form in (await self._states.tree())["nodes"]
                if form["path"] != "/"
            ]
        }

    async def _moved(self, old: NodePath, new: NodePath, labels: Mapping[str, str]) -> list[Json]:
        """The inventory of an edge as it will be at its new place; raises NodeRefused, ApiError."""
        if self._tree.runs_here(old):
            remedy = "add one with `leafcast node add` where you want it"
            raise NodeRefused(old, "`leafcast up` starts it here, at its place", remedy)
        space = self._tree.inventory_space()
        name = self._edge_at(old)
        if not name:
            remedy = f"add one with `leafcast node add {new} --relay`, and remove this one"
            raise NodeRefused(old, "it is a relay, and keeps nothing that could move", remedy)
        if taken := self._edge_at(new):
            remedy = "name another path, or give that SyncTarget another one"
            raise NodeRefused(new, f'it is the place of SyncTarget "{taken}"', remedy)
        target, location = [
            await space.get(ObjectKey(GROUP, resource, "", name))
            for resource in ("synctargets", "locations")
        ]
        if target is None or _path_of(target) != str(old):
            remedy = "apply it with that path, or see `leafcast adopt`"
            raise NodeRefused(old, f'SyncTarget "{name}" does not say that it hangs here', remedy)
        return _valid(moved_objects(target, location, new, labels))

    def _edge_at(self, path: NodePath) -> str:
        """The SyncTarget in force that hangs at a path, by name; "" for a relay."""
        records = self._tree.issuer().records.values()
        profiles = [r for r in records if isinstance(r, Profile) and not r.deleted]
        return next((r.source.name for r in profiles if r.path == path), "")

    def _check_kind(self, path: NodePath, *, relay: bool) -> None:
        """Raises NodeRefused if a new bundle would make a relay of an edge, or an edge of a relay.

        A relay without nodes below it may become one: it was added so by mistake.
        """
        name = self._edge_at(path)
        if relay and name:
            remedy = "leave out --relay, or remove it first with `leafcast node remove`"
            raise NodeRefused(path, f'it is an edge, of SyncTarget "{name}"', remedy)
        below = nodes_below(self._tree.issuer().records, path)
        if below and not relay and not name:
            reason = f"it is a relay, with nodes below it ({len(below)})"
            raise NodeRefused(path, reason, "say --relay for a new bundle, which voids the old one")

    async def _left(self, old: NodePath) -> None:
        """Wait until the ledger says that a moved node is at its old place no more."""
        until = self._clock.now().seconds + ADMIT_SECONDS_MAX
        while self._record(old) is not None:
            if self._clock.now().seconds > until:
                reason = f"node {old} was told to move, and the centre has not seen it yet"
                raise ApiError("Timeout", reason, "look at its SyncTarget, and `leafcast events`")
            await self._clock.sleep(DRAIN_POLL_SECONDS)

    async def _objects_at(self, path: NodePath, labels: Mapping[str, str]) -> list[Json]:
        """An edge's SyncTarget and Location; labels given win over `region`, never over `id`."""
        listing = await self._tree.inventory_space().list(GROUP, "synctargets")
        found = {obj["metadata"]["name"]: obj for obj in listing.objects}
        name = name_for(path, {name: _path_of(obj) for name, obj in found.items()})
        made = edge_objects(path, name)
        for obj in made:
            own = obj["metadata"]["labels"]
            obj["metadata"]["labels"] = {**own, **labels, "id": own["id"]}
        told = (found[name]["metadata"].get("annotations") or {}) if name in found else {}
        if MOVED_ANNOTATION in told:
            made[0]["metadata"]["annotations"][MOVED_ANNOTATION] = told[MOVED_ANNOTATION]
        return _valid(made)

    async def _parent(self, path: NodePath) -> Json:
        """What the parent says of itself; it must be there, to let the node in."""
        if not path.parent.is_root and self._record(path.parent) is None:
            raise NodeRefused(
                path, f"its parent {path.parent} is no node", f"add {path.parent} first"
            )
        remedy = "add nodes below it when it is back"
        parent = await self._answer(path.parent, remedy)
        if not parent["leafUrl"]:
            message = f"{path.parent} does not say where servers of children dial in"
            raise ApiError("BadAnswer", message, remedy)
        return parent

    def _record(self, path: NodePath) -> object:
        return node_record(self._tree.issuer(), self._tree.tree_id(), path)

    async def _answer(self, path: NodePath, remedy: str) -> Json:
        try:
            answer = checked_answer(path, await self._asks.ask(path, NODE, {}))
        except AskFailed as failed:
            answer = failed.fault
        if isinstance(answer, AskFault):
            error = api_error(answer)
            raise ApiError(error.code, error.message, remedy)
        return answer

    async def _admitted(self, path: NodePath, nkey: str) -> None:
        """Wait a while until the parent knows the child's key, so that a join finds its place."""
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
                answer = checked_answer(path, await self._asks.ask(path, NODE, {}))
            except AskFailed:
                return None
            holds = None if isinstance(answer, AskFault) else answer.get("objectsApplied")
            if not holds or self._clock.now().seconds >= until:
                return holds
            await self._clock.sleep(DRAIN_POLL_SECONDS)

    async def _hanging(self) -> dict[str, str]:
        """The SyncTargets' names by the path they hang at."""
        listing = await self._tree.inventory_space().list(GROUP, "synctargets")
        hanging = {_path_of(obj): obj["metadata"]["name"] for obj in listing.objects}
        return {path: name for path, name in hanging.items() if path}


def register_membership(api: Api, membership: Membership) -> None:
    """Answer the verbs about nodes."""
    api.register("node-add", membership.add)
    api.register("node-move", membership.move)
    api.register("node-remove", membership.remove)
    api.register("node-list", membership.all)


def _valid(objects: list[Json]) -> list[Json]:
    """The same, once they were judged; raises ApiError."""
    for obj in objects:
        try:
            validate_object(obj)
        except InvalidObject as error:
            raise ApiError("Invalid", str(error), "correct the labels") from error
    return objects


def _path_of(target: Json) -> str:
    """Where a SyncTarget says that it hangs; "" if it does not."""
    return str((target["metadata"].get("annotations") or {}).get(PATH_ANNOTATION, ""))


def _left(path: NodePath, holds: int | None) -> list[str]:
    folder = f"its data directory and bundle: remove them where {path} ran"
    if holds is None:
        return [f"{path}: it does not answer; whatever it was sent stays as it is", folder]
    if holds:
        return [
            f"{path}: {many(holds, 'object')} in its cluster, which nobody looks after now",
            folder,
        ]
    return [folder]
