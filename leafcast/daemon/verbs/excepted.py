"""Destinations of a placement that are not waited for, and how many of these lack its content."""

from __future__ import annotations

from collections.abc import Sequence

from controllers.centre import Controllers
from controllers.core.ledger.destination_counts import SelectedDestinations
from controllers.core.rollout.kept_back import count_lacking
from leafcast.ask.api import ApiError
from schemas.content.blobs import Reference
from schemas.objects.selectors import LabelSelector
from schemas.records.placements import long_title
from schemas.records.records import OVER_SYNC_TARGET, Alternative, DeltaHead, Gate, Profile
from schemas.values.identity import MailKey

EXCEPTED_MAX = 10_000
"""For so many destinations one may say that they are not waited for."""


class Excepted:
    """Those of one placement; without selectors there are none."""

    def __init__(self, keys: Sequence[MailKey] = (), paths: Sequence[str] = ()) -> None:
        self.paths = tuple(paths)
        self._keys = tuple(keys)
        # How many the gates kept from the newest content when it was looked at last.
        self._lacking: tuple[tuple[Gate, ...], Reference | None, int] | None = None

    def __len__(self) -> int:
        return len(self.paths)

    def lacking(self, controllers: Controllers, placement: str, never_joined: int) -> int:
        """How many of those that joined certainly lack the newest content by the gates.

        Who never joined is in no count, and may be any of them.
        """
        steered = controllers.translator.steered(placement) if self._keys else None
        if steered is None or steered.is_everywhere:
            return 0
        gates, newest = steered.gates, steered.newest
        if self._lacking is None or self._lacking[:2] != (gates, newest):
            found = count_lacking(controllers.issuer.records, self._keys, gates, newest)
            self._lacking = gates, newest, found
        return max(self._lacking[2] - never_joined, 0)


def find_excepted(
    controllers: Controllers, placement: str, selectors: Sequence[LabelSelector]
) -> Excepted:
    """The destinations of a placement whose SyncTargets one of these selects; raises ApiError."""
    records = controllers.issuer.records
    head = records.get(controllers.translator.source(placement).key)
    if not selectors or not isinstance(head, DeltaHead):
        return Excepted()
    reach = SelectedDestinations(records.values())
    by_labels = tuple(Alternative(OVER_SYNC_TARGET, each) for each in selectors)
    everyone = reach.destinations(head.alternatives)
    chosen = everyone & reach.destinations(by_labels)
    if chosen and chosen == everyone:
        said = f"{long_title(placement)}: all of its destinations are excepted"
        raise ApiError("Invalid", said, "name fewer with --except")
    if len(chosen) > EXCEPTED_MAX:
        said = f"{long_title(placement)}: {len(chosen)} destinations are excepted"
        remedy = f"narrow it to at most {EXCEPTED_MAX}, or say --at-least"
        raise ApiError("TooMany", said, remedy)
    found = (records[key] for key in chosen)
    return Excepted(sorted(chosen), sorted(str(it.path) for it in found if isinstance(it, Profile)))
