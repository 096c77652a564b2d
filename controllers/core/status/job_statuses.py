"""The status of a Job as an API server takes it: of several copies as one, and over an older one.

A server refuses a Job that is complete without its times, one whose start moves, and one that is
finished no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schemas.objects.objects import ObjectKey
from schemas.values.fields import holds

JOBS = ("batch", "jobs")
_SUCCESS, _FAILURE = ("SuccessCriteriaMet", "Complete"), ("FailureTarget", "Failed")
_OF_RUNNING = ("active", "ready", "terminating", "uncountedTerminatedPods")

Status = Mapping[str, Any]


def merged_job(said: dict[str, Any], conditions: Mapping[str, Any]) -> dict[str, Any]:
    """Several Jobs as one: complete when all are, failed when any is.

    `conditions` tell of each type how many say False, True and anything else, and its texts.
    """
    listed = said.pop("conditions", ())
    if not conditions:  # Nobody says any, or what they say is none.
        return said
    failed = {type_ for type_ in _FAILURE if type_ in conditions and conditions[type_][1]}
    stated = {item["type"]: item for item in listed}
    for type_ in failed:
        stated[type_] = {**stated[type_], "status": "True"}
    for type_ in (*_SUCCESS, *_FAILURE):
        if type_ in stated and (
            stated[type_]["status"] != "True" or (failed and type_ in _SUCCESS)
        ):
            del stated[type_]
    said.pop("completionTime", None)
    complete = stated.get("Complete")
    if complete is not None:
        said["completionTime"] = complete.get("lastTransitionTime")
    if not stated.keys().isdisjoint((_SUCCESS[1], _FAILURE[1])):
        said = {name: value for name, value in said.items() if name not in _OF_RUNNING}
    return {**said, "conditions": [stated[type_] for type_ in sorted(stated)]}


def storable(key: ObjectKey, stored: Any, wanted: Status) -> Status:
    """What can be written over a status: a Job that started keeps its start, one that ended all."""
    if key.group_resource != JOBS or not isinstance(stored, Mapping) or not stored.get("startTime"):
        return wanted
    if not wanted or (_ended(stored) and not _ended(wanted)):
        return stored
    start, end = str(stored["startTime"]), wanted.get("completionTime")
    kept = {**wanted, "startTime": start}
    return {**kept, "completionTime": max(start, str(end))} if end else kept


def _ended(status: Status) -> bool:
    return any(holds(status, it) for it in (_SUCCESS[1], _FAILURE[1]))
