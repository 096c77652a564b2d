"""What one placement means for a destination: which content, and what is in force meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from relay.core.content.owners import ContentOwner, OwnerKind
from relay.core.destination.customized_forms import Forms
from relay.core.destination.removals import DROPPED
from schemas.content.blobs import Reference
from schemas.content.manifest import ManifestEntry
from schemas.content.sealing import SealingKey
from schemas.records.records import HINTED, DeltaBody
from schemas.values.identity import MailKey


@dataclass(frozen=True, slots=True)
class Assignment:
    """What one placement means for this destination."""

    # None where the destination gets nothing of it, or nothing is known of it yet.
    arm: Reference | None
    # None until the arm's content is here; without an arm to fetch it is withheld.
    entries: tuple[ManifestEntry, ...] | None = None
    # What stays in force until then.
    former: tuple[ManifestEntry, ...] = ()
    # What those in force become here, where that is not what they are.
    forms: Forms = field(default_factory=dict)
    # What those in force are sealed under.
    key: SealingKey | None = None
    # The generation of the record by which it is so.
    cause: int = field(default=DROPPED, compare=False)
    # Under a rollout: among claims from one source its own go before those that are not.
    gated: bool = False

    @property
    def in_force(self) -> tuple[ManifestEntry, ...]:
        return self.former if self.entries is None else self.entries


class Resolution(NamedTuple):
    """What choosing again came to."""

    # Placements whose report may be another.
    touched: dict[MailKey, None]
    # Whether the syncer is to be told.
    wants_changed: bool


def owner_of(key: MailKey) -> ContentOwner:
    """For whom the content is fetched that a placement gives the destination."""
    return ContentOwner(OwnerKind.DESTINATION, key)


def hints(body: DeltaBody) -> Iterator[Reference]:
    """What to fetch beside the arm: program sets, and hints.

    Of several arms nobody says which hints are whose.
    """
    yield from body.collectors
    if len({gate.arm for gate in body.gates}) == 1:
        yield from (each for each in body.content if each.kind in HINTED)


def following(
    former: Assignment | None, arm: Reference | None, cause: int, *, gated: bool
) -> Assignment:
    """What follows for an arm; what was held stays in force until its entries are known."""
    if arm is None:
        return Assignment(None, (), cause=cause, gated=gated)
    if former is None:
        return Assignment(arm, cause=cause, gated=gated)
    forms, key, entries = former.forms, former.key, former.entries
    if entries is None:
        # Two records in a row took something, and nothing came of the first yet.
        cause = max(cause, former.cause)
    elif former.arm == arm:
        return Assignment(arm, entries, (), forms, key, cause, gated)
    return Assignment(arm, None, former.in_force, forms, key, cause, gated)
