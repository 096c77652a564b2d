"""Nodes come and go while the tree runs: what the daemon does for `leafcast node`.

A new node gets a signed record, a bundle and, unless it is a relay, its inventory. One that goes
loses its inventory first, so that it gives back what it was sent, and then its place. One that
moves gets its new place first, and then leaves the old one together with its inventory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from controllers.nodes import NodeRefused, add_node, check_move, nodes, remove_node
from leafcast.ask.api import Api, ApiError
from leafcast.ask.client import CentreAsks
from leafcast.ask.remote import IN_SESSION, checked_answer
from leafcast.ask.session import NODE_MANAGER
from leafcast.daemon.nodes.enrolment import (
    ADMIT_SECONDS_MAX,
    Certify,
    Enrolment,
    NodeSpec,
    States,
    Tree,
    path_of,
    sign_nothing,
    valid,
)
from leafcast.daemon.nodes.registration import register
from leafcast.daemon.nodes.relocation import moved_objects
from relay.adapters.server.nkey_pairs import new_user_nkey
from relay.claims.edge_claim import HELD, REFUSED
from relay.ports import Clock, Dice
from relay.shell.asker import AskFailed
from schemas.objects.annotations import ON_REMOVAL
from schemas.objects.objects import ObjectKey
from schemas.records.asks import NODE, AskFault
from schemas.values.groups import GROUP
from schemas.values.identity import NodePath
from schemas.values.wording import many

DRAIN_SECONDS_MAX = 60.0
NAMED_SECONDS = 60
"""So long what a person did to a node by name is not taken for what follows from an edit."""
DRAIN_POLL_SECONDS = 0.2

Json = dict[str, Any]


class Membership:
    """The verbs of a daemon that begin with `node-`."""

    def __init__(
        self,
        tree: Tree,
        asks: CentreAsks,
        states: States,
        clock: Clock,
        dice: Dice,
        *,
        certify: Certify = sign_nothing,
    ) -> None:
        self._tree = tree
        self._asks = asks
        self._states = states
        self._clock = clock
        self._dice = dice
        self.enrolling = self._enrolling = Enrolment(
            tree, asks, states, clock, dice, certify=certify
        )
        self.changing = self._changing = asyncio.Lock()

    async def add(
        self,
        path: str,
        *,
        relay: bool = False,
        replace: bool = False,
        labels: Mapping[str, str] | None = None,
        valid_seconds: int = 86_400,
    ) -> Json:
        """The text of a new bundle for the path; one that exists gets another only to `replace` it.

        Then a bundle made for it earlier is void, and who runs with it is cut off. Raises ApiError,
        NodeRefused.
        """
        wanted = [NodeSpec(NodePath.parse(path), labels or {}, relay=relay, replaces=replace)]
        async with self._changing:
            plan = await self._enrolling.plan(wanted)
            for fault in plan.faults:
                raise fault.error
            (added,) = await self._enrolling.add(plan, valid_seconds)
        return added

    async def add_all(
        self,
        nodes: list[Json],
        *,
        replace: bool = False,
        dry_run: bool = False,
        valid_seconds: int = 86_400,
    ) -> Json:
        """Add edges, each a `path` with `labels`, all or none: `{faults, added}`.

        Of each that cannot be added a fault says why, by its place in `nodes`; else there is of
        each what `add` answers. Raises ApiError.
        """
        wanted = [
            NodeSpec(NodePath.parse(it["path"]), it["labels"], replaces=replace) for it in nodes
        ]
        async with self._changing:
            plan = await self._enrolling.plan(wanted)
            if plan.faults or dry_run:
                return {"faults": [fault.form for fault in plan.faults], "added": []}
            return {"faults": [], "added": await self._enrolling.add(plan, valid_seconds)}

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
            issuer = self._tree.issuer()
            check_move(issuer, old, new)
            objects = await self._moved(old, new, labels or {})
            parent = await self._enrolling.parent(new)
            until_ms = self._enrolling.until(valid_seconds)
            entropy = self._dice.entropy(32)
            credentials = await add_node(issuer, new, entropy, new_user_nkey, until_ms)
            await self._enrolling.admitted({new: credentials.nkey})
            self._give_up(str(objects[0]["metadata"]["name"]))
            space = self._tree.inventory_space()
            objects = [await space.apply(obj, NODE_MANAGER) for obj in objects]
            await self._left(old)
        bundle = self._enrolling.bundle(parent, credentials, objects, until_ms)
        name = objects[0]["metadata"]["name"]
        return {"bundle": bundle.to_text(), "name": name, "labels": dict(bundle.labels)}

    async def remove(self, path: str, *, force: bool = False) -> Json:
        """Take a node out of the tree: `{removed: [path], left: [what stays behind]}`.

        Without `force` it must answer and have none below it, and gives back what it was sent
        first. Raises ApiError, NodeRefused.
        """
        where = NodePath.parse(path)
        async with self._changing:
            issuer = self._tree.issuer()
            going = [node.path for node in nodes(issuer) if where.holds(node.path)]
            if where not in going and not where.is_root:
                remedy = "`leafcast node list` shows the nodes there are"
                raise ApiError("NotFound", f"node {where}: there is no such node", remedy)
            if where not in going or (len(going) > 1 and not force):
                await remove_node(issuer, where)  # refuses, with its reason
            answers = await self._answers(where, force=force)
            hanging = await self._enrolling.hanging()
            left: list[str] = []
            keys = []
            for gone in sorted(going, key=lambda node: len(node.names), reverse=True):
                await self._unregister(hanging.get(str(gone), ""))
                seconds = 0.0 if force else DRAIN_SECONDS_MAX
                left += _left(gone, await self._drained(gone, seconds) if answers else None)
                keys.append(await remove_node(issuer, gone))
                self._tree.retire(gone)
            # Before that a centre that is started again would not know of it.
            await issuer.dropped(keys)
        return {"removed": [str(node) for node in going], "left": left}

    async def register(self, path: str, labels: Mapping[str, str] | None = None) -> Json:
        """Give an edge that has none a destination: `{name}`; raises ApiError."""
        async with self._changing:
            return await register(self._tree, path, labels or {})

    async def all(self) -> Json:
        """All nodes of the tree but the centre, each with its state, as `tree` has it."""
        hanging = await self._enrolling.hanging()
        return {
            "nodes": [
                {
                    "path": form["path"],
                    "syncTarget": hanging.get(form["path"], ""),
                    # An edge for which nothing is meant.
                    "unplaced": form["is_edge"] and form["path"] not in hanging,
                    "state": form["state"],
                    "expired": form["expired"],
                    "reached": form["state"] in IN_SESSION,
                    "sinceMs": form["silent_since_ms"] or 0,
                    "maintenanceUntilMs": form["maintenance_until_ms"],
                    "maintenanceReason": form["maintenance_reason"],
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
        name = self._enrolling.edges_at().get(str(old), "")
        if not name:
            remedy = f"add one with `leafcast node add {new} --relay`, and remove this one"
            raise NodeRefused(old, "it is a relay, and keeps nothing that could move", remedy)
        if taken := self._enrolling.edges_at().get(str(new), ""):
            remedy = "name another path, or give that SyncTarget another one"
            raise NodeRefused(new, f'it is the place of SyncTarget "{taken}"', remedy)
        target, location = [
            await space.get(ObjectKey(GROUP, resource, "", name))
            for resource in ("synctargets", "locations")
        ]
        if target is None or path_of(target) != str(old):
            remedy = "apply it with that path"
            raise NodeRefused(old, f'SyncTarget "{name}" does not say that it hangs here', remedy)
        return valid(moved_objects(target, location, new, labels))

    async def _left(self, old: NodePath) -> None:
        """Wait until the ledger says that a moved node is at its old place no more."""
        until = self._clock.now().seconds + ADMIT_SECONDS_MAX
        while self._enrolling.record(old) is not None:
            if self._clock.now().seconds > until:
                reason = f"node {old} was told to move, and the centre has not seen it yet"
                raise ApiError("Timeout", reason, "look at its SyncTarget, and `leafcast events`")
            await self._clock.sleep(DRAIN_POLL_SECONDS)

    async def _answers(self, path: NodePath, *, force: bool) -> bool:
        """Whether the node answers; raises ApiError if it does not and is not forced."""
        try:
            await self._enrolling.answer(path, "with --force it is removed as it is")
        except ApiError:
            if not force:
                raise
            return False
        return True

    def _give_up(self, name: str) -> None:
        """Let placements lose the destination of this name, however much that is: it is named."""
        until_ms = self._clock.now().wall_ms + NAMED_SECONDS * 1000
        self._tree.issuer().brakes.give_up(name, until_ms)

    async def _unregister(self, name: str) -> None:
        """Delete an edge's Location and SyncTarget, so that nothing is meant for it any more."""
        self._give_up(name)
        for resource in ("locations", "synctargets") if name else ():
            await self._tree.inventory_space().delete(ObjectKey(GROUP, resource, "", name))

    async def _drained(self, path: NodePath, seconds: float) -> Json | None:
        """What the node answers once it holds nothing, or after so long; None without answer.

        Of a cluster that it does not claim it holds nothing that is its own to take back.
        """
        until = self._clock.now().seconds + seconds
        while True:
            try:
                answer = checked_answer(path, await self._asks.ask(path, NODE, {}))
            except AskFailed:
                return None
            if isinstance(answer, AskFault):
                return None
            holds = answer.get("objectsApplied") or answer["claim"] == HELD
            if not holds or answer["claim"] == REFUSED or self._clock.now().seconds >= until:
                return answer
            await self._clock.sleep(DRAIN_POLL_SECONDS)


def register_membership(api: Api, membership: Membership) -> None:
    """Answer the verbs about nodes."""
    api.register("node-add", membership.add)
    api.register("node-add-all", membership.add_all)
    api.register("node-move", membership.move)
    api.register("node-remove", membership.remove)
    api.register("node-register", membership.register)
    api.register("node-list", membership.all)


def _left(path: NodePath, answer: Json | None) -> list[str]:
    folder = f"the data directory and the bundle of {path}, where it ran: delete them there"
    if answer is None:
        kept = f"what {path} was sent before: it does not answer, so its cluster keeps it"
        return [f"{kept}, and its claim, if it is a real one", folder]
    if answer["claim"] == REFUSED:
        said = f"all that is in the cluster that {path} was given, as that is not its own"
        return [f"{said}: {answer['unclaimed']}", folder]
    if holds := answer.get("objectsApplied"):
        return [f"{many(holds, 'object')} in the cluster of {path}: delete them there", folder]
    if stays := answer.get("objectsKept"):
        said = f"{many(stays, 'object')} in the cluster of {path}, kept as {ON_REMOVAL} has it"
        return [f"{said}: delete there what nobody needs", folder]
    return [folder]
