"""Maintenance of edges: read from their SyncTargets, and said there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from leafcast.ask.asked_space import refusal_of
from leafcast.ask.session import Session
from schemas.records.maintenance import Maintenance, maintenance_of
from schemas.values.groups import GROUP, PATH_ANNOTATION
from schemas.values.identity import NodePath
from schemas.values.refusals import BadIdentity

MAINTAIN = "maintenance-set"
"""The verb that says maintenance of SyncTargets."""
MAINTAIN_SECONDS = 600.0


class MaintainedSite(NamedTuple):
    """An edge by its path and its SyncTarget, and what is said of its maintenance."""

    path: str
    name: str
    maintenance: Maintenance


async def sites_below(session: Session, path: str) -> list[MaintainedSite]:
    """The edges at or below a path; raises SpaceError."""
    place = NodePath.parse(path)
    listing = await session.inventory.list(GROUP, "synctargets")
    found = []
    for obj in listing.objects:
        annotations = obj["metadata"].get("annotations") or {}
        try:
            here = NodePath.parse(str(annotations.get(PATH_ANNOTATION, "")))
        except BadIdentity:
            continue
        if place.holds(here):
            said = maintenance_of(annotations)
            found.append(MaintainedSite(str(here), obj["metadata"]["name"], said))
    return sorted(found)


async def set_maintenance(
    session: Session, sites: Iterable[MaintainedSite], said: Maintenance
) -> None:
    """Say this of all of them; without an end it is over. Raises SpaceError, CallFailed."""
    asked = {"targets": [site.name for site in sites], **said._asdict()}
    answer = await session.call(MAINTAIN, seconds=MAINTAIN_SECONDS, **asked)
    if "refused" in answer:
        raise refusal_of(answer["refused"])
