"""A change of a node's members, as the node is asked for it: see leafcast.members.replacing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

NOT_LOST = "NotLost"
"""Why no machine takes a member's place, as a word: that member is there."""


class ReplacementRefused(Exception):
    """Why no machine takes a member's place now, also as a word; says what to do."""

    def __init__(self, reason: str, remedy: str, word: str = "Conflict") -> None:
        super().__init__(f"{reason}; {remedy}")
        self.reason, self.remedy, self.word = reason, remedy, word


class UnderWay(Protocol):
    """A change by which one member comes in the place of another."""

    @property
    def lost(self) -> str: ...

    @property
    def came(self) -> str: ...

    @property
    def said(self) -> str:
        """What is under way, for people; "" once it is done."""
        ...


class MemberChange(Protocol):
    """What the active member goes on with."""

    @property
    def change(self) -> UnderWay | None:
        """The last change, done or not."""
        ...

    async def answer(self, arguments: Mapping[str, str]) -> dict[str, Any]:
        """What becomes of a wish; raises ReplacementRefused or BusBroken."""
        ...
