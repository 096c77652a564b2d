"""What of a placement was aborted or undone, as its Rollout counts it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leafcast.ask.session import Session
from schemas.objects.objects import ObjectKey

COUNTED_SECONDS, LOOK_SECONDS = 5.0, 0.1

Form = Mapping[str, Any]


async def rejected_of(session: Session, rollout: ObjectKey) -> Form | None:
    """What a Rollout says is rejected, once it was counted; None if nothing is."""
    until = session.clock.now().seconds + COUNTED_SECONDS
    while True:
        obj = await session.workloads.get(rollout)
        said = ((obj or {}).get("status") or {}).get("rejected")
        if said is None or "objects" in said or session.clock.now().seconds > until:
            return said
        await session.clock.sleep(LOOK_SECONDS)
