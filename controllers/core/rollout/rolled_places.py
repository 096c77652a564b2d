"""What the inventory says of a placement's destinations: who waits where, for what, who has no key.

It is asked for at each look at a placement and costs what the inventory is large, so that answers
are kept until that is another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from controllers.core.ledger.destination_counts import SelectedDestinations
from controllers.core.rollout.estimates import label_values, matched, takes_any
from controllers.core.rollout.kept_back import destinations_at
from controllers.core.rollout.waves import EVERYONE, labels_of
from relay.objects.stored_object import timestamp
from schemas.api.rollout_spec import Wave
from schemas.records.records import (
    Alternative,
    DeltaHead,
    Gate,
    LocationRecord,
    NodeRecord,
    Profile,
    Record,
)
from schemas.records.windows import ZONE_LABEL, Window, next_opening
from schemas.values.identity import MailKey, NodePath

ANSWERS_MAX = 4096
"""So many answers are remembered."""
ZONES_MAX = 64
"""So many zones of destinations are looked at for the next window."""

V = TypeVar("V")


class RolledPlaces:
    """The destinations of a ledger, as placements ask for them."""

    def __init__(self, records: Mapping[MailKey, Record]) -> None:
        self._records = records
        self._answers: dict[object, Any] = {}

    def changed(self, records: Iterable[Record]) -> None:
        """Take records that came into force, or left it."""
        if any(isinstance(record, Profile | LocationRecord | NodeRecord) for record in records):
            self._answers.clear()

    def _once(self, asked: object, answer: Callable[[], V]) -> V:
        """An answer, found once for as long as the inventory is as it is."""
        if asked not in self._answers:
            if len(self._answers) >= ANSWERS_MAX:
                self._answers.clear()
            self._answers[asked] = answer()
        found: V = self._answers[asked]
        return found

    def of(self, placement: MailKey, gates: Sequence[Gate]) -> Mapping[NodePath, int]:
        """How many destinations of a placement each place with gates of its own has."""
        head = self._records.get(placement)
        places = tuple(dict.fromkeys(gate.path for gate in gates if not gate.path.is_root))
        if not places or not isinstance(head, DeltaHead):
            return {}
        asked = (placement, head.alternatives, places)
        return self._once(asked, lambda: destinations_at(self._records, placement, gates))

    def members(self, placement: MailKey, wave: Wave) -> int:
        """About how many destinations of a placement a wave admits, whatever is before it."""
        head = self._records.get(placement)
        if not isinstance(head, DeltaHead):
            return 0
        share = 100 if wave.percent is None else wave.percent
        return matched(self._records, head.alternatives, wave) * share // 100

    def matches(self, placement: MailKey, wave: Wave) -> bool:
        """Whether a wave's labels match any destination of a placement; nobody has none at all."""
        head = self._records.get(placement)
        return isinstance(head, DeltaHead) and self.takes_any(head.alternatives, wave)

    def takes_any(self, meant: tuple[Alternative, ...], wave: Wave = EVERYONE) -> bool:
        """Whether any destination that is meant is of a wave's labels."""
        asked = (meant, labels_of(wave))
        return self._once(asked, lambda: takes_any(self._records.values(), meant, wave))

    def keyless(self, meant: tuple[Alternative, ...]) -> tuple[str, ...]:
        """The names of those that are meant and have no key: nothing sealed opens there."""
        index = self._once("keyless", self._keyless)
        if index is None:
            return ()

        def names() -> tuple[str, ...]:
            chosen = index.destinations(meant)
            return tuple(sorted(self._records[key].source.name for key in chosen))

        return self._once(("keyless", meant), names)

    def _keyless(self) -> SelectedDestinations | None:
        """Those without a key, and the Locations; None if all have one."""
        listed = [it for it in self._records.values() if isinstance(it, Profile | LocationRecord)]
        found = [it for it in listed if isinstance(it, LocationRecord) or not it.fleet_key]
        return SelectedDestinations(found) if any(isinstance(it, Profile) for it in found) else None

    def is_place(self, path: str) -> bool:
        """Whether a node or a destination is at or below a path."""
        place, records = NodePath.parse(path), self._records.values()
        listed = (each.path for each in records if isinstance(each, NodeRecord | Profile))
        return self._once(place, lambda: place.is_root or any(map(place.holds, listed)))

    def opens(self, gates: Iterable[Gate], now_ms: int) -> str:
        """When the first of the gates' windows opens for someone, in RFC 3339; "" if none will."""
        windows = [window for gate in gates for window in gate.windows]
        if not windows:
            return ""
        labels = [{ZONE_LABEL: zone} for zone in self._known_zones(windows)] or [{}]
        openings = (next_opening(windows, each, now_ms) for each in labels)
        first = min((at for at in openings if at is not None), default=None)
        return timestamp(first) if first is not None else ""

    def _known_zones(self, windows: Iterable[Window]) -> tuple[str, ...]:
        """The zones that destinations name, if a window goes by them."""
        if all(window.zone for window in windows):
            return ()
        return self._once(
            ZONE_LABEL, lambda: label_values(self._records.values(), ZONE_LABEL)[:ZONES_MAX]
        )
