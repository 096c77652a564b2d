"""When a gate is open: at each time of a cron line for so long, by the clock of a zone.

A cron line has five fields and is read as Debian's cron reads it: what falls into the hour that a
change of clocks leaves out comes at once after it, what falls into the hour that comes twice comes
once. The zones are those of the IANA, from the package tzdata where the system has none.

What reads zones and cron lines is loaded for the first window: without one it would take half a
megabyte of each edge.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

from schemas.values.wire import Natural, WireRecord

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from cronsim import CronSim

CRON_MAX_CHARACTERS = 200
FIRSTS_KNOWN = 32_768
"""As many openings are remembered: those of all windows of a Rollout in all zones, for who asks."""
WINDOW_MAX_SECONDS = 31 * 24 * 3600
ZONE_LABEL = "zone"
"""The destination's label that names its zone. A `.` there is a `/`, which no label may hold."""
_FIELDS = 5


class _CronRefused(ValueError):
    """A text that is no cron line."""


class Window(WireRecord, frozen=True):
    """Open from each time of the cron line on, so many seconds; no zone is the destination's."""

    cron: str
    duration: Natural
    zone: str = ""


def is_open(windows: Iterable[Window], labels: Mapping[str, str], now_ms: int) -> bool:
    """Whether any window is open with these labels; one unreadable or without a zone is closed."""
    return _any_open(tuple(windows), labels.get(ZONE_LABEL, ""), now_ms)


def next_opening(windows: Iterable[Window], labels: Mapping[str, str], now_ms: int) -> int | None:
    """When the first of the windows opens next, in ms since 1970; None if none ever does."""
    return _next_of(tuple(windows), labels.get(ZONE_LABEL, ""), now_ms)


@lru_cache(maxsize=1024)
def window_fault(window: Window) -> str | None:
    """Why a window opens nowhere, whatever the destination: None if it does."""
    if not 0 < window.duration <= WINDOW_MAX_SECONDS:
        return f"a window lasts from 1 s to {WINDOW_MAX_SECONDS // 86_400} days"
    if window.zone and _zone(window.zone) is None:
        return f'"{window.zone}" is no time zone; write one such as Europe/Berlin'
    try:
        first = next(_times(window.cron, datetime(2000, 1, 1, tzinfo=UTC)), None)
    except _CronRefused as error:
        return f'"{window.cron}" is no cron line: {error}; write one such as "0 2 * * 2-5"'
    return None if first is not None else f'"{window.cron}" never comes'


def zone_fault(windows: Iterable[Window], labels: Mapping[str, str]) -> str | None:
    """Why a destination finds no zone for a window that goes by its own; None if it does."""
    if all(window.zone for window in windows) or zone_of(labels) is not None:
        return None
    named = labels.get(ZONE_LABEL)
    said = f'its label {ZONE_LABEL} says "{named}"' if named else f"it has no label {ZONE_LABEL}"
    return f"{said}; label it with a time zone, such as Europe.Berlin"


def zone_of(labels: Mapping[str, str]) -> ZoneInfo | None:
    """The zone that a destination's labels name."""
    return _zone_named(labels.get(ZONE_LABEL, ""))


# Whoever plans asks for thousands of destinations at one moment, and these are in few zones.


@lru_cache(maxsize=1024)
def _any_open(windows: tuple[Window, ...], label: str, now_ms: int) -> bool:
    now = _moment(now_ms)
    return any(_is_open(window, label, now) for window in windows)


@lru_cache(maxsize=1024)
def _next_of(windows: tuple[Window, ...], label: str, now_ms: int) -> int | None:
    now = _moment(now_ms)
    found = (_next(window, label, now) for window in windows)
    return min((_milliseconds(at) for at in found if at is not None), default=None)


def _is_open(window: Window, label: str, now: datetime) -> bool:
    lasts = timedelta(seconds=window.duration)
    zone = _zone_for(window, label)
    if not _may_begin(window, zone, now - lasts, now):
        return False
    for began in _starts(window, zone, now - lasts):
        if began > now:
            return False
        # What comes once in an hour that comes twice may lie before what was asked for.
        if began + lasts > now:
            return True
    return False


def _next(window: Window, label: str, now: datetime) -> datetime | None:
    zone = _zone_for(window, label)
    for base in _bases(now):
        first = _first(window, zone, base)
        if first is None or first > now:
            return first
    return next((began for began in _starts(window, zone, now) if began > now), None)


def _may_begin(window: Window, zone: ZoneInfo | None, after: datetime, until: datetime) -> bool:
    """False if it surely does not begin between two moments."""
    firsts = (_first(window, zone, base) for base in _bases(after))
    return all(first is not None and first <= until for first in firsts)


def _bases(moment: datetime) -> tuple[datetime, datetime]:
    """The day and the minute of a moment: what is first after them is known to who asks again."""
    minute = moment.replace(second=0, microsecond=0)
    return minute.replace(hour=0, minute=0), minute


@lru_cache(maxsize=FIRSTS_KNOWN)
def _first(window: Window, zone: ZoneInfo | None, after: datetime) -> datetime | None:
    """When it begins first after a moment: to find that may take a thousand looks at a calendar."""
    return next((began for began in _starts(window, zone, after) if began > after), None)


def _starts(window: Window, zone: ZoneInfo | None, after: datetime) -> Iterable[datetime]:
    if zone is None or window_fault(window) is not None:
        return
    for local in _times(window.cron, after.astimezone(zone)):
        yield local.astimezone(UTC)


def _zone_for(window: Window, label: str) -> ZoneInfo | None:
    return _zone(window.zone) if window.zone else _zone_named(label)


def _zone_named(label: str) -> ZoneInfo | None:
    return _zone(label.replace(".", "/"))


def _times(cron: str, after: datetime) -> CronSim:
    """The times of a cron line after a moment; raises _CronRefused."""
    from cronsim import CronSim, CronSimError  # noqa: PLC0415

    if len(cron) > CRON_MAX_CHARACTERS or len(cron.split()) != _FIELDS:
        raise _CronRefused(f"it has {_FIELDS} fields, and at most {CRON_MAX_CHARACTERS} characters")
    try:
        return CronSim(cron, after)
    except CronSimError as error:
        raise _CronRefused(str(error)) from error


@lru_cache(maxsize=1024)
def _zone(name: str) -> ZoneInfo | None:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # noqa: PLC0415

    try:
        return ZoneInfo(name)
    # The last is what a folder of zones is, such as Europe.
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _moment(milliseconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)


def _milliseconds(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
