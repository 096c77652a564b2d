"""The keys of nodes: one is replaced by another that its node makes, or made void at once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from controllers.issuing.nodes import enrol_nodes
from leafcast.ask.api import ApiError, verb
from leafcast.ask.client import NOT_SIGNED, CentreAsks, api_error
from leafcast.centre.centre import Centre
from leafcast.daemon.nodes.enrolment import Enrolment
from relay.adapters.server.nkey_pairs import BadNkey, check_public_nkey
from relay.ports import Clock
from relay.shell.asker import AskFailed
from schemas.content.sealing import sealing_public
from schemas.records.asks import REKEY
from schemas.records.records import NodeRecord
from schemas.values.identity import NodePath
from schemas.values.refusals import RecordRefused

USED_SECONDS_MAX, POLL_SECONDS = 60.0, 0.25

Json = dict[str, Any]


@dataclass(slots=True)
class NodeKeys:
    """The verbs `node-rotate` and `node-revoke`; `changing` is held meanwhile."""

    _centre: Centre
    _enrolling: Enrolment
    _changing: asyncio.Lock
    _asks: CentreAsks
    _clock: Clock

    @verb("node-rotate")
    async def rotate(self, path: str) -> Json:
        """Have the node make a new key, and use it: `{nkey, unconfirmed}`. Raises ApiError.

        Both are in its record until it is linked with the new one. So whatever ends this, the node
        can be reached, and the next `node rotate` goes on. `unconfirmed` is as `revoke` has it.
        """
        where = NodePath.parse(path)
        async with self._changing:
            keys = self._record(where).nkey.split()
            if not keys:
                message = f"the key of {where} is revoked"
                raise ApiError("Revoked", message, f"let it in again: leafcast node add {where}")
            said = await self._asked(where, {})
            if said["nkey"] not in keys:
                message = f"{where} says a key that the tree does not know"
                raise ApiError("BadAnswer", message, f"see leafcast node revoke {where}")
            if said["nkey"] != keys[-1] or len(keys) == 1:
                await self._change_over(where, said["nkey"])
            nkey = (await self._asked(where, {}))["nkey"]
            await self._issue(where, nkey)
            await self._enrolling.admitted({where: nkey})
            unconfirmed = await self._enrolling.unconfirmed(where.parent)
        return {"nkey": nkey, "unconfirmed": unconfirmed}

    async def _change_over(self, path: NodePath, old: str) -> None:
        new = (await self._asked(path, {"make": "next"}))["next"]
        if not new or self._enrolling.holders().get(new, path) != path:
            message = f"{path} names no key of its own as its next one"
            raise ApiError("BadAnswer", message, f"see leafcast node revoke {path}")
        await self._issue(path, f"{old} {new}")
        if not await self._enrolling.admitted({path: f"{old} {new}"}):
            message = f"{path.parent} does not answer, so {path} goes on with its old key"
            raise ApiError("Timeout", message, f"run leafcast node rotate {path} again")
        await self._asked(path, {"use": new})
        until = self._clock.now().seconds + USED_SECONDS_MAX
        while not await self._uses(path, new):
            if self._clock.now().seconds > until:
                message = f"{path} was not linked with its new key in time; both keys are good"
                raise ApiError("Timeout", message, f"run leafcast node rotate {path} again")
            await self._clock.sleep(POLL_SECONDS)

    async def _uses(self, path: NodePath, nkey: str) -> bool:
        """Whether the node says so; it cannot be asked while it is linked anew."""
        try:
            return (await self._asked(path, {}))["nkey"] == nkey
        except ApiError:
            return False

    @verb("node-revoke")
    async def revoke(self, path: str) -> Json:
        """Make its keys void: `{cut, parent, unconfirmed, edge}`. Raises ApiError.

        Whether its parent knows, who that is, the members of it that did not confirm it (None if it
        does not answer), and whether it is an edge.
        """
        where = NodePath.parse(path)
        async with self._changing:
            self._record(where)
            await self._issue(where, "")
            cut = await self._enrolling.admitted({where: ""})
            unconfirmed = await self._enrolling.unconfirmed(where.parent)
        edge = path in self._enrolling.edges_at()
        return {
            "cut": cut,
            "parent": str(where.parent),
            "unconfirmed": unconfirmed,
            "edge": edge,
        }

    def _record(self, path: NodePath) -> NodeRecord:
        record = self._enrolling.record(path)
        if record is None:
            remedy = "`leafcast node list` shows the nodes there are"
            raise ApiError("NotFound", f"node {path}: there is no such node", remedy)
        return record

    async def _issue(self, path: NodePath, nkey: str) -> None:
        await enrol_nodes(self._centre.issuer(), {path: nkey})

    async def _asked(self, path: NodePath, arguments: Mapping[str, str]) -> dict[str, str]:
        """The keys that the node itself says it has: `{nkey, next}`; raises ApiError."""
        try:
            answer = await self._asks.ask_signed(path, REKEY, arguments)
        except AskFailed as failed:
            error = api_error(failed.fault)
            if error.code == NOT_SIGNED:
                raise error from failed
            remedy = "its keys are as they were, or both are good; try again when it is back"
            raise ApiError(error.code, error.message, remedy) from failed
        try:
            said = {name: str(answer[name]) for name in ("nkey", "next")}
            for nkey in filter(None, said.values()):
                check_public_nkey(nkey, str(path))
                sealing_public(nkey)
        except (TypeError, KeyError, BadNkey, RecordRefused) as error:
            message = f"{path} answers with no key"
            raise ApiError("BadAnswer", message, "see which version of leafcast it runs") from error
        return said
