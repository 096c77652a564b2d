"""Bundles that a former release handed out: who came by one goes on, and no other can come.

A relay of this release lets in by a bundle only who came by it before. So what its parent lets a
node in with says whether the node came.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from controllers.issuing.nodes import bundled_nodes, end_bundles, void_bundle
from leafcast.ask.api import ApiError
from leafcast.centre.centre import Centre
from leafcast.daemon.nodes.enrolment import Enrolment
from relay.ports import BusBroken, Clock
from schemas.values.identity import NodePath

LOOK_SECONDS = 30.0

log = logging.getLogger("leafcast")


@dataclass(slots=True)
class FormerBundles:
    """Asks the parents of those who have a bundle, until all are decided about."""

    _centre: Centre
    _enrolling: Enrolment
    # Held by whoever changes which keys nodes have.
    _changing: asyncio.Lock
    _clock: Clock
    _note: Callable[[str, str, str], None] = lambda *_: None

    async def run(self) -> None:
        """Look now and then, until nobody has a bundle any more."""
        are_left = True
        while are_left:
            await self._clock.sleep(LOOK_SECONDS)
            try:
                are_left = await self.settle()
            except BusBroken as error:
                log.warning("bundles of the former release are looked at later: %s", error)

    async def settle(self) -> bool:
        """Decide about those whose parents answer; whether others are left. Raises BusBroken."""
        accepted: dict[NodePath, str] = {}
        for parent in sorted({it.path.parent for it in bundled_nodes(self._centre.issuer())}):
            try:
                answer = await self._enrolling.answer(parent, "it is asked again")
            except ApiError as error:
                log.debug("who came by a bundle is asked later: %s", error)
                continue
            for name, child in answer["children"].items():
                # A relay of a version before may not say it.
                if (joined := child.get("joined")) is not None:
                    accepted[parent.child(name)] = child["nkey"] if joined else ""
        now_ms = self._clock.now().wall_ms
        async with self._changing:
            void = await end_bundles(self._centre.issuer(), accepted, now_ms)
        for path in void:
            self._note("BundleVoid", str(path), void_bundle(path))
        return bool(bundled_nodes(self._centre.issuer()))
