"""Another certificate authority takes the place of the tree's, and no link is dropped for it.

All nodes are told to believe both; then servers get certificates of the new one; then nodes are
told to believe that alone. Each step waits for all that it needs, and goes on by itself as nodes
come back: nothing is remembered but the files of the authorities.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from controllers.issuing.nodes import nodes
from leafcast.ask.api import ApiError, verb
from leafcast.ask.client import CentreAsks
from leafcast.ask.remote import ask_all_signed
from leafcast.centre.centre import Centre
from leafcast.daemon.nodes.authority_steps import (
    DONE,
    DistributeAuthorities,
    FinishChange,
    Lacking,
    RenewCertificates,
    SwitchAuthority,
    change_steps,
)
from leafcast.daemon.nodes.certificate_renewal import CertificateRenewal
from leafcast.data_dir import DataDir
from leafcast.node.credentials.authorities import (
    begin_change,
    end_change,
    load_authorities,
    switch,
)
from leafcast.node.credentials.certificates import IssuedCertificates
from relay.adapters.server.logged_process import ServerFailed
from relay.ports import BusBroken, Clock
from schemas.records.asks import CERTIFY
from schemas.values.identity import NodePath

LOOK_SECONDS = 60.0

Json = dict[str, Any]

log = logging.getLogger("leafcast")


@dataclass(slots=True)
class AuthorityChange:
    """The verb `keys-authority`; `leave` makes tokens void that pin the former one."""

    _centre: Centre
    _asks: CentreAsks
    _place: DataDir
    _clock: Clock
    _renewal: CertificateRenewal
    _leave: Callable[[str, str], Awaitable[list[str]]]
    _renew_here: Callable[[], Awaitable[None]]
    _changing: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _told: dict[NodePath, str] = field(default_factory=dict, init=False)

    async def run(self) -> None:
        """Go on with a change that waited for nodes, without end."""
        while True:
            await self._clock.sleep(LOOK_SECONDS)
            try:
                async with self._changing:
                    await self._go_on(force=False)
            except (ApiError, BusBroken, ServerFailed, OSError, ValueError) as error:
                log.warning("the change of the certificate authority waits: %s", error)

    @verb("keys-authority")
    async def rotate(self, *, force: bool = False) -> Json:
        """Begin a change, or go on with the one under way: `{doing, lacking: {path: why}, void}`.

        `void` are the places that tokens were for which are void now. With `force` nobody is
        waited for. Raises ApiError.
        """
        async with self._changing:
            found = load_authorities(self._place.folder)
            if found is None:
                message = "this tree has no certificate authority of its own"
                remedy = "it is made at the first --listen; your own certificates you replace"
                raise ApiError("NotFound", message, remedy)
            if not found.changing:
                begin_change(self._place.folder, self._centre.tree_id(), self._clock.now().wall_ms)
            try:
                doing, lacking, void = await self._go_on(force=force)
            except (ServerFailed, ValueError) as error:
                raise ApiError("Failed", str(error), "run the same command again") from error
        return {"doing": doing, "lacking": lacking, "void": void}

    @verb("keys-authority-state")
    async def state(self) -> Json:
        """Whether a change is under way: `{changing}`."""
        found = load_authorities(self._place.folder)
        return {"changing": found is not None and found.changing}

    async def _go_on(self, *, force: bool) -> tuple[str, Lacking, list[str]]:
        """As far as it goes now: what it waits with, for whom, and whose tokens became void."""
        found, void, lacking = load_authorities(self._place.folder), list[str](), Lacking()
        if found is None:
            return DONE, {}, void
        steps = change_steps(found, force=force)
        try:
            step = next(steps)
            while True:
                match step:
                    case DistributeAuthorities(authorities):
                        lacking = await self._tell(authorities)
                    case SwitchAuthority():
                        switch(self._place.folder)
                        log.info("another certificate authority signs from now on")
                    case RenewCertificates(former, signing):
                        void = await self._leave(former, signing)
                        lacking = await self._renew(signing)
                    case FinishChange():
                        end_change(self._place.folder)
                        log.info("no node believes the former certificate authority any more")
                step = steps.send(lacking)
        except StopIteration as end:
            doing, lacking = end.value
            return doing, lacking, void

    async def _renew(self, signing: str) -> Lacking:
        await self._renew_here()
        await self._renewal.renew_due(now_ms := self._clock.now().wall_ms)
        issued = IssuedCertificates(self._place.folder)
        shows = "its server shows a certificate of the former one"
        comes = f"{shows} once a machine took the place of a member, which is under way"
        coming = {str(path): comes for path in issued.awaited(signing)}
        return coming | {str(path): shows for path in issued.due(now_ms, signing)}

    async def _tell(self, authorities: str) -> Lacking:
        """Have all nodes believe these; why those do not that could not be told."""
        untold = [path for path in self._concerned() if self._told.get(path) != authorities]
        said = {"certificate": "", "authority": authorities}
        failed = await ask_all_signed(self._asks, untold, CERTIFY, said)
        self._told |= {path: authorities for path in untold if path not in failed}
        return dict(sorted((str(path), fault.message) for path, fault in failed.items()))

    def _concerned(self) -> list[NodePath]:
        """The centre, and all nodes that may come: whose key is void joins with a new token."""
        return [NodePath(), *(node.path for node in nodes(self._centre.issuer()) if node.nkey)]
