"""Waiting for placements, as it is asked of the daemon: a slice of the time at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from leafcast.ask.session import Session
from leafcast.ask.wait_goals import Goal
from schemas.objects.selectors import LabelSelector

SLICE_SECONDS, GRACE_SECONDS = 10.0, 5.0
"""So long the tree is asked at once, and so much longer its answer may take."""


@dataclass(frozen=True, slots=True)
class Wait:
    """What is waited for; all placements if none are named."""

    placements: Sequence[str]
    conditions: tuple[str, ...]
    goal: Goal
    excepted: Sequence[LabelSelector]
    seconds: float


async def asked_to_wait(session: Session, asked: Wait, seconds: float) -> Any:
    """The answer of the verb `wait`, which comes within so many seconds; raises CallFailed."""
    return await session.call(
        "wait",
        seconds=seconds + GRACE_SECONDS,
        placements=list(asked.placements),
        conditions=list(asked.conditions),
        timeout=seconds,
        at_least=asked.goal.at_least,
        except_unreachable=asked.goal.except_unreachable,
        excepted=[selector.to_kubernetes() for selector in asked.excepted],
    )
