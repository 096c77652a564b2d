"""What expires, and when: told some time before, with what to do about it."""

from __future__ import annotations

from collections.abc import Iterator

from leafcast.doctor.findings import Check, CheckState, DoctorFacts, Expiry
from leafcast.show.durations import span_text
from schemas.values.wording import many

GROUP = "Expiry"
WARNED_MS = 14 * 86_400_000
"""So long before its end something is told of, or half of its time if that is less."""


def expiry_checks(facts: DoctorFacts) -> Iterator[Check]:
    """A failure for what expired and is needed, a warning for what soon will."""
    told = [check for check in (_check(it, facts.now_ms) for it in facts.expiries) if check]
    yield from told
    rest = len(facts.expiries) - len(told)
    if rest:
        yield Check(GROUP, "ok", f"{many(rest, 'thing')} that may expire: none of them soon")


def _check(one: Expiry, now_ms: int) -> Check | None:
    left = one.until_ms - now_ms
    if left > min(WARNED_MS, (one.until_ms - one.since_ms) // 2):
        return None
    if left > 0:
        said = f"{one.what} expires in {span_text(left / 1000)}"
        return Check(GROUP, "warning", said, one.cause, one.remedy, one.about)
    said = f"{one.what} expired {span_text(-left / 1000)} ago"
    state: CheckState = "failure" if one.needed else "warning"
    return Check(GROUP, state, said, one.cause, one.remedy, one.about)
