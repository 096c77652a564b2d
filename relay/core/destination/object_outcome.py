"""What becomes of one object, in the words of reports."""

from __future__ import annotations

from collections.abc import Sequence

from relay.core.destination.claims import DesiredObject
from relay.core.destination.tally import Judged
from relay.core.events import ObjectObserved
from schemas.objects.objects import ObjectKey
from schemas.reports.reports import ExceptionSample, Health
from schemas.reports.states import AT_WORK, NOT_WORKING

REASON_MAX_CHARACTERS = 200
WAITING = "Waiting"


def judge(
    key: ObjectKey,
    observed: ObjectObserved | None,
    wanted: DesiredObject | None,
    winner: str,
    path: str,
) -> Judged:
    """What becomes of an object for a placement; `winner` names who got it instead, if any.

    Only what is there in its present form can be healthy: whatever else lies there under its name,
    a former form or somebody else's object, is not what the placement delivers.
    """
    if winner:
        reason = f"Overridden: {winner} says otherwise; say the same, or rename it"
        return "failing", "unknown", sample(1, str(key), reason, path)
    if observed is not None and observed.error:
        return "failing", _of_former(observed, "unknown"), sample(0, str(key), observed.error, path)
    if observed is None or wanted is None:
        return "pending", "progressing", None
    health = observed.health
    if not is_delivered(observed, wanted):
        return "pending", _of_former(observed, "progressing"), waiting_sample(observed, path)
    if health == "degraded":
        return "synced", health, sample(NOT_WORKING, str(key), observed.reason or "Degraded", path)
    if health == "progressing" and observed.reason:
        return "synced", health, sample(AT_WORK, str(key), observed.reason, path)
    return "synced", health, None


def is_delivered(observed: ObjectObserved, wanted: DesiredObject) -> bool:
    """Whether an object is there as wanted, by a word that was said for this very wish.

    One for a former wish does not count: what was done for another since may have changed it.
    """
    if not (observed.present and observed.address and observed.wish == wanted.wish):
        return False
    return wanted.create_only or observed.address == wanted.address


def not_delivered(health: str, otherwise: Health) -> Health:
    """The health of what is not here in its present form: ill if the former one is, never well."""
    return "degraded" if health == "degraded" else otherwise


def _of_former(observed: ObjectObserved, otherwise: Health) -> Health:
    """The same of an object; one without an address is not ours."""
    ours = observed.present and bool(observed.address)
    return not_delivered(observed.health, otherwise) if ours else otherwise


def waiting_sample(observed: ObjectObserved, path: str) -> ExceptionSample | None:
    """For what an object waits, if it does for long."""
    if not observed.waits:
        return None
    return sample(AT_WORK, str(observed.key), f"{WAITING}: for {observed.waits}", path)


def left_samples(seen: Sequence[ObjectObserved], path: str) -> list[ExceptionSample]:
    """What keeps objects that are wanted no more from going."""
    failed = [sample(0, str(each.key), each.error, path) for each in seen if each.error]
    waiting = (waiting_sample(each, path) for each in seen)
    return [*failed, *filter(None, waiting)]


def sample(severity: int, obj: str, reason: str, path: str) -> ExceptionSample:
    return ExceptionSample(severity, obj, reason[:REASON_MAX_CHARACTERS], 1, path)
