"""An edge moves to another parent: it gets its new place first, and then leaves the old one.

Its new place has no key until the edge asks for it with a token. Until then the destination counts
there as never joined, and the edge keeps what it has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from controllers.issuing.nodes import NodeRefused, check_move, enrol_nodes
from leafcast.ask.api import ApiError, verb
from leafcast.ask.session import NODE_MANAGER
from leafcast.centre.centre import Centre
from leafcast.daemon.nodes.admission import JoinApproval
from leafcast.daemon.nodes.enrolment import (
    ADMIT_SECONDS_MAX,
    Enrolment,
    NodeSpec,
    give_up,
    path_of,
    valid,
)
from leafcast.daemon.nodes.relocation import moved_objects
from leafcast.daemon.nodes.token_wishes import TokenWish
from relay.ports import BusBroken, Clock
from relay.space_errors import SpaceError
from schemas.objects.objects import ObjectKey
from schemas.values.groups import GROUP
from schemas.values.identity import NodePath

LEFT_POLL_SECONDS = 0.2

Json = dict[str, Any]


@dataclass(slots=True)
class NodeMoves:
    """The verb `node-move`; `changing` is held meanwhile."""

    _centre: Centre
    _enrolling: Enrolment
    _admission: JoinApproval
    _changing: asyncio.Lock
    _clock: Clock

    @verb("node-move")
    async def move(
        self,
        path: str,
        new_path: str,
        *,
        labels: Mapping[str, str] | None = None,
        valid_seconds: int = 86_400,
    ) -> Json:
        """Hang an edge elsewhere: `{name, labels}` of it, and the token with which it goes on.

        The token is as `node-token-add` has it, approved in advance. From then on the destination
        counts at the new place alone, and the key that the edge has is void. Raises ApiError,
        NodeRefused.
        """
        old, new = NodePath.parse(path), NodePath.parse(new_path)
        async with self._changing:
            issuer = self._centre.issuer()
            check_move(issuer, old, new)
            objects = await self._moved(old, new, labels or {})
            await self._enrolling.parent(new)
            self._admission.demand_room(1)
            await enrol_nodes(issuer, {new: ""})
            await self._enrolling.admitted({new: ""})
            name = str(objects[0]["metadata"]["name"])
            give_up(self._centre, name, self._clock)
            space = self._centre.inventory_space()
            target, *_ = [await space.apply(obj, NODE_MANAGER) for obj in objects]
            await self._left(old, new)
            token = await self._token(old, new, valid_seconds)
        return {"name": name, "labels": target["metadata"].get("labels") or {}, **token}

    async def _token(self, old: NodePath, new: NodePath, valid_seconds: int) -> Json:
        try:
            wish = TokenWish(str(new), NodeSpec(new, {}), uses=1, approved=True)
            return await self._admission.invite(wish, valid_seconds)
        except (ApiError, NodeRefused, BusBroken, SpaceError, OSError) as error:
            message = f"{old} was moved to {new}, and there is no token for it: {error}"
            remedy = _another_token(new)
            raise ApiError("Failed", message, remedy) from error

    async def _moved(self, old: NodePath, new: NodePath, labels: Mapping[str, str]) -> list[Json]:
        """The inventory of an edge as it will be at its new place; raises NodeRefused, ApiError."""
        if self._centre.runs_here(old):
            remedy = "add one with `leafcast node add` where you want it"
            raise NodeRefused(old, "`leafcast up` starts it here, at its place", remedy)
        space = self._centre.inventory_space()
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

    async def _left(self, old: NodePath, new: NodePath) -> None:
        """Wait until the ledger says that a moved node is at its old place no more."""
        until = self._clock.now().seconds + ADMIT_SECONDS_MAX
        while self._enrolling.record(old) is not None:
            if self._clock.now().seconds > until:
                reason = f"node {old} was told to move, and the centre has not seen it yet"
                remedy = f"once `leafcast node list` shows it no more, {_another_token(new)}"
                raise ApiError("Timeout", reason, remedy)
            await self._clock.sleep(LEFT_POLL_SECONDS)


def _another_token(new: NodePath) -> str:
    return f"make a token with `leafcast node add {new} --approved`"
