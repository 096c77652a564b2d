"""What the annotations of a placement ask for: what it waits for, and how it moves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from schemas.objects.annotations import (
    DEPENDS_ON,
    MOVE,
    MOVE_DEADLINE,
    PLACEMENTS,
    REMOVAL_GRACE,
    faults_at,
)
from schemas.records.records import DEPENDENCIES_MAX
from schemas.values import names
from schemas.values.durations import BadDuration, read_duration
from schemas.values.faults import Fault, Faulty

MAKE_BEFORE_BREAK = "make-before-break"
MOVE_SECONDS = 3600.0
SECONDS_MAX = 30 * 24 * 3600.0


def check_annotations(name: str, annotations: Mapping[str, str]) -> None:
    """Refuse what a placement's annotations cannot mean; raises Faulty."""
    if faults := list(faults_at(PLACEMENTS, annotations)):
        raise Faulty(*faults)
    _check_times(annotations)
    waits_for = dependencies_of(annotations)
    path = f"annotations[{DEPENDS_ON}]"
    if len(waits_for) > DEPENDENCIES_MAX:
        said = f"{len(waits_for)} placements, at most {DEPENDENCIES_MAX}"
        raise Faulty(Fault(path, said, "name fewer"))
    for each in waits_for:
        if fault := names.subdomain_fault(each):
            raise Faulty(Fault(path, fault, "name placements of the same kind: platform, crds"))
        if each == name:
            raise Faulty(Fault(path, "it names the placement itself", f"leave {name} out"))


def reached(steps: Mapping[str, Iterable[str]], start: str) -> set[str]:
    """All names that one step or more lead to."""
    found: set[str] = set()
    ahead = [start]
    while ahead:
        for other in steps.get(ahead.pop(), ()):
            if other not in found:
                found.add(other)
                ahead.append(other)
    return found


def move_seconds(annotations: Mapping[str, str]) -> float | None:
    """How long who loses the placement may keep it for who gains it; None: it lets go at once."""
    if annotations.get(MOVE, "") != MAKE_BEFORE_BREAK:
        return None
    said = annotations.get(MOVE_DEADLINE, "")
    return read_duration(said) if said else MOVE_SECONDS


def grace_seconds(annotations: Mapping[str, str]) -> float | None:
    """How long what an edit takes of the placement waits; None: until it is accepted."""
    said = annotations.get(REMOVAL_GRACE, "")
    return read_duration(said) if said else None


def _check_times(annotations: Mapping[str, str]) -> None:
    said = annotations.get(MOVE, "")
    if said not in ("", MAKE_BEFORE_BREAK):
        remedy = f"write {MAKE_BEFORE_BREAK}, or leave it out"
        raise Faulty(Fault(f"annotations[{MOVE}]", f'"{said}" is no way to move', remedy))
    if deadline := annotations.get(MOVE_DEADLINE):
        _check_duration(MOVE_DEADLINE, deadline, "write it as in 90s, 30m or 2h, at most 30 d")
    if REMOVAL_GRACE in annotations:
        remedy = "write it as in 90s, 5m or 2h, at most 720h; 0s for no wait; or leave it out"
        _check_duration(REMOVAL_GRACE, annotations[REMOVAL_GRACE], remedy)


def _check_duration(annotation: str, said: str, remedy: str) -> None:
    path = f"annotations[{annotation}]"
    try:
        seconds = read_duration(said)
    except BadDuration as error:
        raise Faulty(Fault(path, f'"{said}" is not a duration', remedy)) from error
    if seconds > SECONDS_MAX:
        raise Faulty(Fault(path, f"{said} is too long", remedy))


def dependencies_of(annotations: Mapping[str, str]) -> tuple[str, ...]:
    """The names of the placements that one waits for, each once."""
    listed = (part.strip() for part in annotations.get(DEPENDS_ON, "").split(","))
    return tuple(dict.fromkeys(filter(None, listed)))
