"""What holds placements, as lines: what it is, since when, at how many, and the next command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from leafcast.show.durations import span_text
from schemas.records.placements import short_title
from schemas.values.wording import many

NEXT = "  next: "
LINES_MAX = 10
"""So many holds are told under a tree."""

Form = Mapping[str, Any]


def hold_text(hold: Form, now_ms: int | None = None) -> str:
    """`RolloutPaused for 5m10s, 3 destinations: rollout "shop": paused by a person`."""
    said = str(hold["reason"])
    if now_ms is not None and (since_ms := milliseconds(str(hold.get("since") or ""))):
        said += f" for {span_text(max(now_ms - since_ms, 0) / 1000)}"
    number = hold.get("destinations")
    said += f", {many(number, 'destination')}" if number is not None else ""
    return f"{said}: {hold['message']}" if hold.get("message") else said


def hold_lines(held: Sequence[Form], now_ms: int) -> Iterator[str]:
    """Two lines for each hold of one placement: what it is, and the next command."""
    for hold in held:
        yield f"held: {hold_text(hold, now_ms)}"
        if hold.get("remedy"):
            yield f"{NEXT}{hold['remedy']}"


def held_lines(held: Sequence[Form], now_ms: int) -> Iterator[str]:
    """The same of several placements, some of them."""
    for hold in held[:LINES_MAX]:
        first, *rest = hold_lines([hold], now_ms)
        yield f"{short_title(hold['placement'])} {first}"
        yield from rest
    if len(held) > LINES_MAX:
        yield f"and {len(held) - LINES_MAX} more: leafcast status"


def going_out(form: Form) -> str:
    """How many are still to get the newest content by the waves of a Rollout; "" if none are."""
    left = form.get("keptBack", 0)
    if left == 0:
        return ""
    return f"{'some' if left is None else left} still to get the newest content"


def milliseconds(text: str) -> int | None:
    """A time as statuses have it, in milliseconds since 1970; None of what is none."""
    try:
        moment = datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        return None
    return int(moment.timestamp() * 1000)
