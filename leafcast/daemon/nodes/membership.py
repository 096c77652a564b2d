"""Nodes go while the tree runs, get their destination back, and are listed.

One that goes loses its inventory first, so that it gives back what it was sent, and then its place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from controllers.issuing.nodes import nodes, remove_node
from leafcast.ask.api import ApiError, verb
from leafcast.ask.client import CentreAsks
from leafcast.ask.remote import IN_SESSION, checked_answer
from leafcast.ask.session import NODE_MANAGER
from leafcast.centre.centre import Centre
from leafcast.centre.inventory import edge_objects
from leafcast.daemon.nodes.enrolment import Enrolment, States, give_up, path_of, valid
from leafcast.daemon.nodes.relocation import name_for
from relay.claims.edge_claim import HELD, REFUSED
from relay.ports import Clock
from relay.shell.asker import AskFailed
from schemas.objects.annotations import ON_REMOVAL
from schemas.objects.objects import ObjectKey
from schemas.records.asks import NODE
from schemas.values.groups import GROUP
from schemas.values.identity import NodePath
from schemas.values.wording import many

DRAIN_SECONDS_MAX = 60.0
DRAIN_POLL_SECONDS = 0.2

Json = dict[str, Any]


@dataclass(slots=True)
class Membership:
    """The verbs `node-remove`, `node-register` and `node-list`; `changing` is held meanwhile."""

    _centre: Centre
    _enrolling: Enrolment
    _changing: asyncio.Lock
    _asks: CentreAsks
    _states: States
    _clock: Clock

    @verb("node-remove")
    async def remove(self, path: str, *, force: bool = False) -> Json:
        """Take a node out of the tree: `{removed: [path], left: [what stays behind], unconfirmed}`.

        `unconfirmed` names the members of its parent that may let it in still, None if that does
        not answer. Without `force` it must answer and have none below it, and gives back what it
        was sent first. Raises ApiError, NodeRefused.
        """
        where = NodePath.parse(path)
        async with self._changing:
            issuer = self._centre.issuer()
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
                self._centre.retire(gone)
            # Before that a centre that is started again would not know of it.
            await issuer.dropped(keys)
            unconfirmed = await self._enrolling.let_out(where)
        removed = [str(node) for node in going]
        return {"removed": removed, "left": left, "unconfirmed": unconfirmed}

    @verb("node-register")
    async def register(self, path: str, labels: Mapping[str, str] | None = None) -> Json:
        """Give an edge that has none a destination: `{name}`; raises ApiError."""
        async with self._changing:
            return await register(self._centre, path, labels or {})

    @verb("node-list")
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
                    "reached": form["state"] in IN_SESSION,
                    "sinceMs": form["silent_since_ms"] or 0,
                    "maintenanceUntilMs": form["maintenance_until_ms"],
                    "maintenanceReason": form["maintenance_reason"],
                }
                for form in (await self._states.tree())["nodes"]
                if form["path"] != "/"
            ]
        }

    async def _answers(self, path: NodePath, *, force: bool) -> bool:
        """Whether the node answers; raises ApiError if it does not and is not forced."""
        try:
            await self._enrolling.answer(path, "with --force it is removed as it is")
        except ApiError:
            if not force:
                raise
            return False
        return True

    async def _unregister(self, name: str) -> None:
        """Delete an edge's Location and SyncTarget, so that nothing is meant for it any more."""
        give_up(self._centre, name, self._clock)
        for resource in ("locations", "synctargets") if name else ():
            await self._centre.inventory_space().delete(ObjectKey(GROUP, resource, "", name))

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
            holds = answer.get("objectsApplied") or answer["claim"] == HELD
            if not holds or answer["claim"] == REFUSED or self._clock.now().seconds >= until:
                return answer
            await self._clock.sleep(DRAIN_POLL_SECONDS)


def _left(path: NodePath, answer: Json | None) -> list[str]:
    folder = f"the data directory of {path}, where it ran: delete it there"
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


async def register(centre: Centre, path: str, labels: Mapping[str, str]) -> Json:
    """Give the edge at a path its destination: `{name}` of it; raises ApiError.

    A Location that is there stays as it is.
    """
    where = NodePath.parse(path)
    known = [node.path for node in nodes(centre.issuer())]
    if where not in known and not centre.runs_here(where):
        remedy = f"`leafcast node add {where}` makes one"
        raise ApiError("NotFound", f"node {where}: there is no such node", remedy)
    if any(other.parent == where for other in known if other.names):
        remedy = "name an edge: `leafcast node list` shows them"
        raise ApiError("Invalid", f"node {where} is a relay, and has no cluster", remedy)
    space = centre.inventory_space()
    listing = await space.list(GROUP, "synctargets")
    paths = {obj["metadata"]["name"]: path_of(obj) for obj in listing.objects}
    if there := [name for name, at in paths.items() if at == str(where)]:
        remedy = f"change it with `leafcast label synctarget {there[0]} KEY=VALUE`"
        raise ApiError("Exists", f'node {where} is destination "{there[0]}" already', remedy)
    name = name_for(where, paths)
    target, location = valid(edge_objects(where, name, labels))
    await space.apply(location, NODE_MANAGER, create_only=True)
    await space.apply(target, NODE_MANAGER)
    return {"name": name}
