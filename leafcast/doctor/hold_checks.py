"""What `leafcast doctor` says of placements that stand still: one block for each cause."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from leafcast.doctor.findings import Check, PlacementFinding
from leafcast.show.holds import hold_text
from schemas.records.hold_reasons import (
    CUSTOMIZATION_FROZEN,
    INVALID,
    KIND_UNREADABLE,
    MAINTENANCE,
    OBJECTS_REFUSED,
    OVERRIDDEN,
)
from schemas.records.placements import short_title, title
from schemas.values.wording import many, some_of

GROUP = "Objects"
FROZEN = "Frozen"
"""How an edge says that it could not customize an object."""
NAMED_MAX = 4
_CAUSE = "destinations keep what they have; so Synced is False"
Form = Mapping[str, Any]


def hold_checks(placements: Sequence[PlacementFinding]) -> Iterator[Check]:
    """What keeps newest content from destinations; what several have in common is told once."""
    by_cause: dict[tuple[str, str], list[tuple[str, Form]]] = defaultdict(list)
    for item in placements:
        told = frozenset(_told(item))
        for hold in item.held:
            if hold["reason"] not in told:
                by_cause[hold["reason"], hold.get("message", "")].append((item.name, hold))
    for found in by_cause.values():
        names = [short_title(name) for name, _ in found]
        who = names[0] if len(found) == 1 else f"{many(len(found), 'placement')} ({_some(names)})"
        first, hold = found[0]
        said = f"{who} held: {hold_text(hold if len(found) == 1 else _uncounted(hold))}"
        about = title(first) if len(found) == 1 else ""
        yield Check(GROUP, "warning", said, _CAUSE, hold.get("remedy", ""), about)


def _told(item: PlacementFinding) -> Iterator[str]:
    """The reasons of which another finding tells, at more length."""
    if item.problem:
        yield from (INVALID, OBJECTS_REFUSED)
    if item.lack:
        yield from (KIND_UNREADABLE, CUSTOMIZATION_FROZEN)
    # Each place is told of by itself.
    yield MAINTENANCE
    reasons = {stuck.reason.partition(":")[0] for stuck in item.stuck}
    if FROZEN in reasons:
        yield CUSTOMIZATION_FROZEN
    if OVERRIDDEN in reasons:
        yield OVERRIDDEN


def _some(names: Sequence[str]) -> str:
    return some_of(sorted(names), NAMED_MAX)


def _uncounted(hold: Form) -> Form:
    """Without how many destinations of one placement it is."""
    return {name: said for name, said in hold.items() if name != "destinations"}
