"""What becomes of one object, in the words of reports."""

from __future__ import annotations

from relay.core.destination.claims import DesiredObject
from relay.core.destination.tally import Judged
from relay.core.events import ObjectObserved
from schemas.objects import ObjectKey
from schemas.reports import AT_WORK, NOT_WORKING, ExceptionSample, Health

REASON_MAX_CHARACTERS = 200
WAITING = "Waiting"


def judge(
    key: ObjectKey,
    observed: ObjectObserved | None,
    wanted: DesiredObject | None,
    winner: str,
    path: str,
) -> Judged:
    """What becomes of an object for a placement; `winner` names who got it instead, if any."""
    present = observed is not None and observed.present
    health: Health = observed.health if observed and present else "progressing"
    if winner:
        reason = f"Overridden: {winner} says otherwise; say the same, or rename it"
        return "failing", health, sample(1, str(key), reason, path)
    if observed is not None and observed.error:
        return "failing", health, sample(0, str(key), observed.error, path)
    if observed is None or wanted is None:
        return "pending", health, None
    same = present and observed.address == wanted.address
    if not same and not (wanted.create_only and present and observed.address):
        return "pending", health, waiting_sample(observed, path)
    if observed.health == "degraded":
        return "synced", health, sample(NOT_WORKING, str(key), observed.reason or "Degraded", path)
    if observed.health == "progressing" and observed.reason:
        return "synced", health, sample(AT_WORK, str(key), observed.reason, path)
    return "synced", health, None


def waiting_sample(observed: ObjectObserved, path: str) -> ExceptionSample | None:
    """For what an object waits, if it does for long."""
    if not observed.waits:
        return None
    return sample(AT_WORK, str(observed.key), f"{WAITING}: for {observed.waits}", path)


def sample(severity: int, obj: str, reason: str, path: str) -> ExceptionSample:
    return ExceptionSample(severity, obj, reason[:REASON_MAX_CHARACTERS], 1, path)
