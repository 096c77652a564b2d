"""What a destination knows of each copy: what became of it, and for what its removal waits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from relay.core.destination.assignment import Assignment
from relay.core.destination.claims import ObjectOwnership
from relay.core.destination.object_outcome import judge, left_samples
from relay.core.destination.removals import ClaimHistory
from relay.core.destination.tally import Judged
from relay.core.destination.traces import Traces
from relay.core.events import ObjectObserved
from schemas.content.blobs import Reference
from schemas.objects.objects import ObjectKey
from schemas.reports.reports import ExceptionSample
from schemas.values.identity import ContentHash, MailKey


class PruneWait(StrEnum):
    """Why a copy that is there is not to be removed now."""

    WANTED = "wanted"
    # A placement that claimed it, or may have, is not all here: it may want it.
    UNKNOWN = "unknown"
    # What others wait for is not to go before they are as they should be.
    NEEDED = "needed"
    # No snapshot that was reached says that what caused the removal is settled.
    UNSETTLED = "unsettled"


class CopyHere(NamedTuple):
    """One copy at its destination, for one placement."""

    # Whether anything wants the object here, and whether this placement is among who asks for it.
    wanted: bool
    claimed: bool
    # What is known of the copy; "" are said of what the syncer has not spoken of.
    observed: ObjectObserved | None
    # What the placement reports of it, if it claims it.
    judged: Judged | None
    kept: bool
    # Why it is kept, if it is.
    why_kept: str
    # The placements that claim it, or did.
    claimers: tuple[str, ...]


class ListedObject(NamedTuple):
    """An object as a placement in force here lists it."""

    placement: MailKey
    # The manifest that lists it.
    arm: Reference
    # Of the blob that it is, sealed or not.
    address: ContentHash


@dataclass(frozen=True, slots=True)
class CopiesHere:
    """Reads what the parts of one destination hold; it changes nothing."""

    _ownership: ObjectOwnership
    _observed: Mapping[ObjectKey, ObjectObserved]
    _history: ClaimHistory
    _traces: Traces
    # What people call these placements.
    _titles: Mapping[MailKey, str]
    # What these mean here.
    _assigned: Mapping[MailKey, Assignment]
    _path: str

    def judged(self, placement: MailKey, key: ObjectKey) -> Judged:
        """What becomes of an object for a placement that claims it."""
        winner = self._ownership.winner_over(placement, key)
        title = self._titles[winner] if winner is not None else ""
        wanted = self._ownership.wanted.get(key)
        return judge(key, self._observed.get(key), wanted, title, self._path)

    def left_samples(self, placement: MailKey) -> list[ExceptionSample]:
        """What keeps the placement's leftovers from being pruned."""
        left = self._history.left(placement)
        return left_samples([self._observed[key] for key in left], self._path)

    def of(self, placement: MailKey, key: ObjectKey) -> CopyHere:
        """All that is known of one copy."""
        claimed = key in self._ownership.of(placement)
        return CopyHere(
            wanted=key in self._ownership.wanted,
            claimed=claimed,
            observed=self._observed.get(key),
            judged=self.judged(placement, key) if claimed else None,
            kept=self._traces.is_kept(key),
            why_kept=self._traces.why_kept(key),
            claimers=tuple(self._titles.get(it, it) for it in self._history.placements(key)),
        )

    def listed(self, key: ObjectKey) -> Iterator[ListedObject]:
        """Who delivers an object as it is wanted; nobody whose own content is still to come."""
        wanted = self._ownership.wanted.get(key)
        if wanted is None:
            return
        for placement in map(MailKey, wanted.placements):
            claim = self._ownership.of(placement).get(key)
            assignment = self._assigned.get(placement)
            if claim is None or assignment is None or assignment.entries is None:
                continue
            if assignment.arm is not None and claim.entry.identity == wanted.identity:
                address = ContentHash(claim.entry.address)
                yield ListedObject(placement, assignment.arm, address)
