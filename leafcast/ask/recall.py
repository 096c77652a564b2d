"""The centre's children, as far as they show what they hold: by their sessions, and by asks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from controllers.recovery import ChildAway
from leafcast.ask.client import CentreAsks
from leafcast.ask.decode import (
    PAGES_MAX,
    RECORDS_BYTES_MAX,
    BadAnswer,
    read_content,
    read_records,
)
from relay.asker import AskFailed
from relay.core.events import LedgerLost
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

    async def doubt(self) -> None:
        await self._driver.observe(LedgerLost())

    async def greet(self, child: str) -> None:
        await self._driver.greet(child)

    async def records(self, child: str, *, partly: bool = False) -> list[bytes]:
        found: list[bytes] = []
        after, size = "", 0
        for _ in range(PAGES_MAX):
            answer = await self._ask(child, RECORDS, {"after": after})
            with _believed(child):
                page, after, ready = read_records(answer, after)
            if not ready and not partly:
                raise ChildAway(f"/{child} has not read its own mailbox to its end yet")
            size += sum(map(len, page))
            if size > RECORDS_BYTES_MAX:
                raise ChildAway(f"/{child} shows more than {RECORDS_BYTES_MAX} bytes of records")
            found += page
            if not after:
                return found
        raise ChildAway(f"/{child} shows its records in more than {PAGES_MAX} pages")

    async def content(self, child: str, reference: Reference) -> bytes | None:
        arguments = {"address": reference.address, "size": str(reference.size)}
        answer = await self._ask(child, CONTENT, {"kind": reference.kind, **arguments})
        with _believed(child):
            return read_content(answer)

    async def _ask(self, child: str, verb: str, arguments: Mapping[str, str]) -> Any:
        try:
            return await self._asks.ask(NodePath().child(child), verb, arguments)
        except (AskFailed, BusBroken) as error:
            raise ChildAway(str(error)) from error


@contextmanager
def _believed(child: str) -> Iterator[None]:
    """A child whose answer is none is as one that is away: it is waited for, or waived."""
    try:
        yield
    except BadAnswer as error:
        raise ChildAway(f"/{child} gives no answer that could be: {error}") from error
