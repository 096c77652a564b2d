"""The annotations that Leafcast reads: where each may stand, and what its value may be.

A key of ours that nobody reads is a fault: whoever misspelt `leafcast.io/on-removal: keep` would
learn of it when the object is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from schemas.objects.objects import group_kind
from schemas.objects.order import WAVE
from schemas.records.maintenance import MAINTENANCE, MAINTENANCE_REASON, time_fault
from schemas.records.moves import MOVED_ANNOTATION
from schemas.values.alike import most_alike
from schemas.values.faults import Fault
from schemas.values.groups import CONTROL_GROUPS, DENATURED_GROUP, PATH_ANNOTATION, SYSTEM_NAMESPACE

PREFIX = "leafcast.io"
OBJECTS, PLACEMENTS = "objects", "placements"
SYNC_TARGETS, ROLLOUTS, OTHERS = "SyncTargets", "Rollouts", "other control objects"
_PLACES: Mapping[str, str] = {
    "EdgePlacement": PLACEMENTS,
    "BindingPolicy": PLACEMENTS,
    "SyncTarget": SYNC_TARGETS,
    "Rollout": ROLLOUTS,
}
EVERYWHERE = frozenset({OBJECTS, PLACEMENTS, SYNC_TARGETS, ROLLOUTS, OTHERS})

EXISTING = "leafcast.io/existing"
CONFLICTS = "leafcast.io/conflicts"
ON_IMMUTABLE = "leafcast.io/on-immutable"
ON_REMOVAL = "leafcast.io/on-removal"
HEALTH, IGNORE = "leafcast.io/health", "ignore"
KEEP_AT_HOME = "leafcast.io/keep-at-home"
OVERWRITE = "edge.kubestellar.io/downsync-overwrite"
DEPENDS_ON = "leafcast.io/depends-on"
MOVE, MOVE_DEADLINE = "leafcast.io/move", "leafcast.io/move-deadline"
REMOVAL_GRACE = "leafcast.io/removal-grace"
TRACKING_MARKS = "leafcast.io/tracking-marks"
MAY_COME_UP = "leafcast.io/may-come-up"
RELEASE_ROLLOUT = "leafcast.io/release-rollout"
ROLLOUT_REQUEST = "leafcast.io/rollout-request"
ADOPT, REFUSE, LEAVE = "adopt", "refuse", "leave"
FORCE, RECREATE, FAIL = "force", "recreate", "fail"
DELETE, KEEP, ORPHAN = "delete", "keep", "orphan"
ALIKE = 0.7
_ALIKE_PREFIX = 0.8

ValueFault = Callable[[str], tuple[str, str] | None]
"""What is wrong with a value and the remedy; None if it is good."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """One annotation: where it may stand, and what people may write."""

    key: str
    places: frozenset[str]
    # What it asks for, in one line.
    asks: str
    # The values that there are, the first is meant without any; empty: judged by `fault`, or free.
    choices: tuple[str, ...] = ()
    fault: ValueFault | None = None
    # Whether people write it; else we do, and say it of what we make.
    by_people: bool = True


def _on(*places: str) -> frozenset[str]:
    return frozenset(places)


REGISTRY: tuple[Annotation, ...] = (
    Annotation(
        ON_REMOVAL,
        _on(OBJECTS, PLACEMENTS),
        "what becomes of a copy that is wanted no more",
        (DELETE, KEEP, ORPHAN),
    ),
    Annotation(
        EXISTING,
        _on(OBJECTS),
        "what becomes of an object that is there and not ours",
        (ADOPT, REFUSE, LEAVE),
    ),
    Annotation(CONFLICTS, _on(OBJECTS), "whether fields are taken that others own", (FAIL, FORCE)),
    Annotation(
        ON_IMMUTABLE,
        _on(OBJECTS),
        "whether an object is replaced whose fields cannot be changed",
        (FAIL, RECREATE),
    ),
    Annotation(OVERWRITE, _on(OBJECTS), "whether a copy is kept in step", ("true", "false")),
    Annotation(
        KEEP_AT_HOME,
        _on(OBJECTS),
        "whether it stays in its space, whatever selects it",
        ("false", "true"),
    ),
    Annotation(
        TRACKING_MARKS,
        _on(OBJECTS),
        "which labels and annotations of tools stay in this space",
    ),
    Annotation(
        MAY_COME_UP,
        _on(OBJECTS),
        "which kinds that hold secrets may come up, and be read by collectors",
        ("none", "secrets"),
    ),
    # Its expressions are judged by `relay.objects.health_rules`.
    Annotation(HEALTH, _on(OBJECTS), "how well it counts: ignored, or by an expression"),
    # Judged with their values by `schemas.objects.order` and `schemas.records.placing`.
    Annotation(WAVE, _on(OBJECTS), "in which wave the object is applied"),
    Annotation(DEPENDS_ON, _on(PLACEMENTS), "which placements it waits for"),
    Annotation(MOVE, _on(PLACEMENTS), "how it moves from place to place"),
    Annotation(MOVE_DEADLINE, _on(PLACEMENTS), "how long a move may take"),
    Annotation(REMOVAL_GRACE, _on(PLACEMENTS), "how long what an edit takes is held"),
    Annotation(
        RELEASE_ROLLOUT,
        _on(PLACEMENTS),
        "lets it go on without the Rollout that it had",
        ("false", "true"),
    ),
    Annotation(ROLLOUT_REQUEST, _on(ROLLOUTS), "what is asked of it once"),
    Annotation(PATH_ANNOTATION, _on(SYNC_TARGETS), "where in the tree it hangs"),
    Annotation(
        MAINTENANCE,
        _on(SYNC_TARGETS),
        "until when a person works there: nothing new goes there",
        fault=time_fault,
    ),
    Annotation(MAINTENANCE_REASON, _on(SYNC_TARGETS), "why a person works there"),
    *(
        Annotation(f"{PREFIX}/{name}", EVERYWHERE, "written by Leafcast", by_people=False)
        for name in (
            MOVED_ANNOTATION.partition("/")[2],
            "adopted",
            "as-of",
            "complete",
            "edge",
            "note",
            "object",
            "placement",
            "tree",
        )
    ),
)
"""All of them. Who reads a new one adds it here; the page docs/annotations.md lists them."""


def place_of_kind(group: str, kind: str) -> str:
    """Where in the registry's sense an object's annotations stand."""
    if group not in CONTROL_GROUPS and group != DENATURED_GROUP:
        return OBJECTS
    return _PLACES.get(kind, OTHERS)


def annotation_faults(obj: Mapping[str, Any]) -> Iterator[Fault]:
    """What is wrong with the annotations of ours that an object bears, by the path of each."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, Mapping):
        return
    place = place_of_kind(*group_kind(obj))
    annotations, labels = metadata.get("annotations"), metadata.get("labels")
    if isinstance(annotations, Mapping):
        for fault in faults_at(place, annotations):
            yield fault.below("metadata")
        where = (str(obj.get("kind", "")), str(metadata.get("name", "")))
        for key in (TRACKING_MARKS, MAY_COME_UP):
            if key in annotations and where != ("Namespace", SYSTEM_NAMESPACE):
                remedy = f"write it on the Namespace {SYSTEM_NAMESPACE}"
                yield Fault(f"metadata.annotations[{key}]", "it has no effect here", remedy)
    for key in labels if isinstance(labels, Mapping) else ():
        known = _known().get(key)
        if known is not None and known.by_people:
            remedy = "write it under metadata.annotations"
            yield Fault(f"metadata.labels[{key}]", "it is an annotation, and no label", remedy)


def faults_at(place: str, annotations: Mapping[str, Any]) -> Iterator[Fault]:
    """The same of annotations that stand at a place; paths begin with `annotations`."""
    for key, value in annotations.items():
        known = _known().get(key)
        if known is None:
            fault = _unknown(str(key), place)
        elif place not in known.places:
            there = " and ".join(sorted(known.places))
            fault = Fault("", f"it has no effect on {place}", f"write it on {there}")
        else:
            fault = _value_fault(known, str(value))
        if fault is not None:
            yield Fault(f"annotations[{key}]", fault.message, fault.remedy)


def meant_by(key: str) -> str:
    """The annotation of ours that a key without any prefix may have meant; "" if none."""
    if "/" in key or "-" not in key:
        return ""
    by_name = {each.partition("/")[2]: each for each in _written() if "-" in each}
    return by_name.get(most_alike(key, by_name, _ALIKE_PREFIX), "")


def choices_of(key: str) -> tuple[str, ...]:
    """The values that an annotation may have, the first is meant without any."""
    return _known()[key].choices


def _value_fault(known: Annotation, value: str) -> Fault | None:
    if known.choices and value not in ("", *known.choices):
        remedy = f"use {', '.join(known.choices[:-1])} or {known.choices[-1]}"
        return Fault("", f'"{value}" is no value of it', remedy)
    said = known.fault(value) if known.fault is not None and value else None
    return None if said is None else Fault("", *said)


@lru_cache(maxsize=1024)
def _unknown(key: str, place: str) -> Fault | None:
    """The fault of a key that is none of ours, and looks as if it were meant to be one."""
    prefix, slash, name = key.partition("/")
    if not slash or not most_alike(prefix, [PREFIX], _ALIKE_PREFIX):
        return None
    here = [each.key for each in REGISTRY if each.by_people and place in each.places]
    names = [each.partition("/")[2] for each in here if each.startswith(f"{PREFIX}/")]
    close = most_alike(name, names, ALIKE) or most_alike(
        name, [each.partition("/")[2] for each in _written()], ALIKE
    )
    if prefix != PREFIX and not close:
        return None
    message = "there is no such annotation"
    if close:
        return Fault("", message, f"did you mean {PREFIX}/{close}?")
    listed = ", ".join(sorted(f"{PREFIX}/{each}" for each in names))
    return Fault("", message, f"on {place} there are {listed}" if listed else "leave it out")


def _written() -> list[str]:
    """The keys of our prefix that people write."""
    return [it.key for it in REGISTRY if it.by_people and it.key.startswith(f"{PREFIX}/")]


@cache
def _known() -> Mapping[str, Annotation]:
    return {each.key: each for each in REGISTRY}
