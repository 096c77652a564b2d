"""What came to a good end in a cluster, and is not made again once the cluster takes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relay.core.destination.claims import DesiredObject
from relay.space_errors import SpaceError
from relay.space_port import Object, Space
from relay.syncer.observed import ObservedState
from schemas.objects.objects import ObjectKey
from schemas.reports.reports import Done, Ended
from schemas.values.wire import replace

STATUS_MAX_BYTES = 4096
"""No larger status is kept of what ended."""
JOBS = ("batch", "jobs")
EVENTS = ("", "events")
_COMPLETED = "Completed"


def is_over(wanted: DesiredObject | None, done: Done | None) -> bool:
    """Whether just what is wanted came to a good end: then nothing is missing if it is gone."""
    if wanted is None or done is None or done.ended is None or done.left:
        return False
    return done.address == wanted.address


def as_it_ended(done: Done) -> ObservedState:
    """What is known of an object that ended and is gone."""
    status = done.ended.status if done.ended is not None else None
    return ObservedState(
        uid=done.uid,
        revision="",
        held=done.held,
        managed=False,
        health="healthy",
        reason="",
        status=status,
        ending=False,
        ended=True,
    )


def with_end(done: Done, sight: ObservedState) -> Done:
    """The record once its object was seen: whether it ended."""
    if done.uid != sight.uid or done.left:
        return done
    status = sight.status if len(sight.status or b"") <= STATUS_MAX_BYTES else None
    return replace(done, ended=Ended(status) if sight.ended else None)


def completed(done: Done) -> Done:
    """The record of an object of which only its cluster's events tell that it ended."""
    return replace(done, ended=Ended())


async def ended_unseen(space: Space, done: Done | None) -> bool:
    """Whether a cluster's events tell that a Job which is gone was complete.

    They do for an hour or so: it may have ended while nobody looked.
    """
    if done is None or done.ended is not None or done.key.group_resource != JOBS:
        return False
    if not done.uid or done.left:
        return False
    try:
        listing = await space.list(*EVENTS, namespace=done.key.namespace)
    except SpaceError:
        return False
    return any(_tells_of(event, done) for event in listing.objects)


def in_namespace(name: str, records: Mapping[ObjectKey, Done]) -> list[Done]:
    """What ended in a Namespace: all of it went with that."""
    return [done for key, done in records.items() if key.namespace == name and done.ended]


def _tells_of(event: Object, done: Done) -> bool:
    about: Any = event.get("involvedObject")
    if not isinstance(about, Mapping) or event.get("reason") != _COMPLETED:
        return False
    return bool(about.get("uid") == done.uid)
