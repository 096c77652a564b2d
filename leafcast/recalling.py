"""The centre's children, as far as they show what they hold: by their sessions, and by asks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controllers.recovery import ChildAway
from leafcast.asking import CentreAsks
from relay.asker import AskFailed
from relay.driver import Driver
from relay.ports import BusBroken
from schemas.asks import CONTENT, RECORDS
from schemas.blobs import Reference
from schemas.identity import NodePath


class AskedChildren:
    """Implements controllers.recovery.Children on the centre's relay."""

    def __init__(self, driver: Driver, asks: CentreAsks) -> None:
        self._driver = driver
        self._asks = asks

    def shown(self) -> Mapping[str, int]:
        return self._driver.node.shown_indexes()

    async def greet(self, child: str) -> None:
        await self._driver.greet(child)

    async def records(self, child: str) -> list[bytes]:
        found: list[bytes] = []
        after = ""
        while True:
            answer = await self._ask(child, RECORDS, {"after": after})
            if not answer["ready"]:
                raise ChildAway(f"/{child} has not read its own mailbox to its end yet")
            found += answer["records"]
            after = answer["next"]
            if not after:
                return found

    async def content(self, child: str, reference: Reference) -> bytes | None:
        arguments = {"address": reference.address, "size": str(reference.size)}
        answer = await self._ask(child, CONTENT, {"kind": reference.kind, **arguments})
        plain: bytes | None = answer["data"]
        return plain

    async def _ask(self, child: str, verb: str, arguments: Mapping[str, str]) -> Any:
        try:
            return await self._asks.ask(NodePath().child(child), verb, arguments)
        except (AskFailed, BusBroken) as error:
            raise ChildAway(str(error)) from error
