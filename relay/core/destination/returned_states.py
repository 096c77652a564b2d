"""What an edge returns of one copy: its status, and whether it is of what was sent."""

from __future__ import annotations

from relay.core.destination.claims import DesiredObject
from relay.core.destination.object_outcome import is_delivered
from relay.core.events import ObjectObserved
from schemas.content.manifest import content_id
from schemas.objects.objects import ObjectKey
from schemas.reports.reports import ObjectResult


def returned_state(
    key: ObjectKey, who: str, observed: ObjectObserved | None, wanted: DesiredObject | None
) -> ObjectResult:
    """What a destination returns of its copy of an object.

    It names the content only while the copy holds just what is wanted here, and nothing else.
    """
    if observed is None:
        return ObjectResult(key, 1, who)
    generation = observed.generation or 0
    content = b""
    if wanted is not None and is_in_force(observed, wanted):
        content = content_id(key, wanted.identity)
    return ObjectResult(key, 1, who, observed.status, content, generation)


def is_in_force(observed: ObjectObserved, wanted: DesiredObject) -> bool:
    """Whether a copy is as it is wanted, and follows it: not one that is left to its cluster."""
    same = observed.address == wanted.address and is_delivered(observed, wanted)
    return same and not observed.error and observed.generation is not None
