"""What the events of a cluster say of one object, as `kubectl describe` ends with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from leafcast.show.durations import age_text, moment_seconds
from leafcast.show.layout import Table
from leafcast.show.object_cells import (
    NONE,
    at,
    event_count,
    event_message,
    event_seen,
    event_source,
    text,
)
from schemas.objects.objects import group_of

EVENTS_MAX = 10

Object = Mapping[str, Any]


def events_about(obj: Object, events: Iterable[Object]) -> list[Object]:
    """The events of an object, the newest last; at most so many of them."""
    metadata = obj["metadata"]
    about = (group_of(obj), obj["kind"], metadata["name"], metadata.get("namespace", ""))
    found = [event for event in events if _about(event) == about]
    return sorted(found, key=lambda event: moment_seconds(event_seen(event)) or 0.0)[-EVENTS_MAX:]


def events_text(events: Iterable[Object], now_ms: int) -> str:
    """A table under a title, as the last part of a description."""
    return "\n".join(_lines(list(events), now_ms)) + "\n"


def _lines(events: list[Object], now_ms: int) -> Iterator[str]:
    if not events:
        yield f"Events:  {NONE}"
        return
    table = Table()
    for title in ("TYPE", "REASON", "AGE", "FROM", "MESSAGE"):
        table.add_column(title)
    for event in events:
        seen, times = age_text(event_seen(event), now_ms), int(event_count(event))
        table.add_row(
            text(at(event, "type")),
            text(at(event, "reason")),
            f"{seen} (x{times})" if times > 1 else seen,
            event_source(event),
            event_message(event),
        )
    yield "Events:"
    yield from (f"  {line}" for line in table.lines())


def _about(event: Object) -> tuple[str, str, str, str]:
    about = at(event, "involvedObject") or at(event, "regarding") or {}
    group = str(at(about, "apiVersion") or "").rpartition("/")[0]
    names = (str(at(about, "kind")), str(at(about, "name")), str(at(about, "namespace") or ""))
    return group, *names
