"""What is taken off an object before it goes out: what is the centre's, or one cluster's only.

What a person wrote goes out as it is written. In a space that keeps objects as they are written,
that is all; an API server tells by managedFields what it handed out itself. A placement may ask for
KubeStellar's rule instead, which takes fields off whoever said them.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from controllers.core.workloads.allocated_fields import (
    may_be_allocated,
    take_off_allocated,
    take_off_as_kubestellar,
    taken,
)
from controllers.core.workloads.executing_count import EXECUTING_COUNT
from relay.objects.customization import path_text
from relay.objects.field_owners import CONTROL_PLANE, owned_fields
from schemas.api.placement import AS_WRITTEN, KUBESTELLAR, Cleaning
from schemas.objects.objects import LAST_APPLIED, ObjectKey
from schemas.values.fields import Steps

# The time stamps are no content: with them, equal objects of two spaces would have two addresses,
# and every copy would differ for ever from what its cluster says.
_SERVERS = (
    "managedFields",
    "generation",
    "selfLink",
    "resourceVersion",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
_OF_SERVER = "a server says it of its own object"
_OF_OWNER = "it names an owner by its uid here, so that a cluster would delete the copy"
_OF_NAME = "its name is given"
_OF_STATUS = "it tells what became of the object here"
_OF_KUBECTL = "kubectl noted it for itself"
_OF_COUNT = "it counts the copies"
_ALLOCATED = "no manager owns it, so this server handed it out"
_AS_KUBESTELLAR = "cleaning: KubeStellar takes it off"

_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"

_WHOLE: tuple[tuple[Steps, tuple[str, ...], str], ...] = (
    (("metadata",), _SERVERS, _OF_SERVER),
    (("metadata",), ("ownerReferences",), _OF_OWNER),
    (("metadata",), ("generateName",), _OF_NAME),
    ((), ("status",), _OF_STATUS),
)
_WITHIN: tuple[tuple[Steps, tuple[str, ...], str], ...] = (
    (("metadata", "annotations"), (LAST_APPLIED,), _OF_KUBECTL),
    (("metadata", "annotations"), (EXECUTING_COUNT,), _OF_COUNT),
    # Whoever writes a DaemonSet is credited with it, so no manager tells.
    (("metadata", "annotations"), (_TEMPLATE_GENERATION,), _OF_SERVER),
    (("metadata", "labels"), (EXECUTING_COUNT,), _OF_COUNT),
)


def clean(
    key: ObjectKey, obj: Mapping[str, Any], cleaning: Cleaning = AS_WRITTEN
) -> dict[str, Any]:
    """The object as it goes to destinations; the one that came in is never changed."""
    kept: dict[str, Any] = {}
    for _ in _take_off(key, obj, kept, cleaning):
        pass
    return kept


def taken_off(
    key: ObjectKey, obj: Mapping[str, Any], cleaning: Cleaning = AS_WRITTEN
) -> list[tuple[str, str]]:
    """Each field of the object that does not go out, as a path, and why."""
    found = _take_off(key, obj, {}, cleaning)
    return [(path_text(steps), reason) for steps, reason in found]


def _take_off(
    key: ObjectKey, obj: Mapping[str, Any], kept: dict[str, Any], cleaning: Cleaning
) -> Iterator[tuple[Steps, str]]:
    """Put into `kept` what goes out of the object; yields what does not."""
    kept |= obj
    if isinstance(obj.get("metadata"), Mapping):
        kept["metadata"] = {**obj["metadata"]}
    for above, names, reason in _WHOLE:
        yield from ((steps, reason) for steps in taken(kept, above, *names))
    # What is large, and goes in any case, is not copied.
    kept |= copy.deepcopy(kept)
    for above, names, reason in _WITHIN:
        yield from ((steps, reason) for steps in taken(kept, above, *names))
    if cleaning == KUBESTELLAR:
        found = take_off_as_kubestellar(key, kept)
        yield from ((steps, _AS_KUBESTELLAR) for steps in found)
        return
    if not may_be_allocated(key, kept):
        return
    persons = owned_fields(obj, but=CONTROL_PLANE)
    if persons is not None:
        yield from ((steps, _ALLOCATED) for steps in take_off_allocated(key, kept, persons))
