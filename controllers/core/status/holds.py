"""What keeps the newest content of the centre from destinations, as a placement's status lists it.

One hold for each reason, who needs a person first. `since` stays while the reason does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from controllers.core.conditions import held
from controllers.core.status.facts import PlacementFacts
from controllers.core.status.rollout_holds import rollout_holds
from controllers.core.workloads.space import FROZEN
from relay.objects.stored_object import timestamp
from schemas.api.placement_details import HOLD_TEXT_MAX, HOLDS_MAX, Hold
from schemas.records.hold_reasons import (
    CUSTOMIZATION_FROZEN,
    INVALID,
    KIND_UNREADABLE,
    MAINTENANCE,
    MOVING,
    OBJECTS_REFUSED,
    OVERRIDDEN,
    PLACEMENTS_DIFFER,
    REMOVAL_HELD,
    SECRETS_UNOPENED,
    WAITING,
    ends_by_itself,
)
from schemas.records.placements import short_title, title
from schemas.reports.reports import Count, ExceptionSample
from schemas.values.faults import told_once
from schemas.values.wording import many, namespace_first, some_of

OTHERS_NAMED_MAX = 4
_WAITS_FOR = "Waiting: for the placement "


def holds(facts: PlacementFacts, count: Count) -> tuple[Hold, ...]:
    """All that keeps the newest content from destinations; who needs a person comes first."""
    by_reason: dict[str, Hold] = {}
    steered = rollout_holds(facts.steered, count) if facts.steered is not None else ()
    for hold in (*facts.holds, *_own(facts, count), *steered):
        by_reason.setdefault(hold.reason, hold)
    ranked = sorted(by_reason.values(), key=lambda hold: ends_by_itself(hold.reason, hold.until))
    return tuple(ranked[:HOLDS_MAX])


def as_status(found: Iterable[Hold], before: object, now_ms: int) -> list[dict[str, Any]]:
    """The holds as a status lists them; what `before` lists already is held since then."""
    listed = before if isinstance(before, (list, tuple)) else ()
    listed = [item for item in listed if isinstance(item, Mapping)]
    since = {str(it.get("reason")): str(it["since"]) for it in listed if it.get("since")}
    return [
        hold.model_copy(
            update={
                "since": since.get(hold.reason) or timestamp(now_ms),
                "message": hold.message[:HOLD_TEXT_MAX],
                "remedy": hold.remedy[:HOLD_TEXT_MAX],
            }
        ).to_mapping()
        for hold in found
    ]


def _own(facts: PlacementFacts, count: Count) -> Iterator[Hold]:
    name = short_title(facts.name)
    if facts.invalid:
        said = facts.invalid_text
        remedy = f"correct it, then: leafcast apply -f FILE; leafcast describe {name}"
        yield held(INVALID, said, remedy)
    if facts.removal_held:
        said = facts.removal_held.partition("; ")[0]
        due = facts.removal_goes_at
        until = timestamp(due) if due is not None else None
        yield held(REMOVAL_HELD, said, f"leafcast accept {name}", until=until)
    if facts.lack is not None and facts.lack.reason == KIND_UNREADABLE:
        yield held(KIND_UNREADABLE, facts.lack.message, f"leafcast describe {name}")
    yield from _refused(facts, count, name)
    yield from _among_placements(facts, count, name)
    # Who never joined has no key, and nothing is waited for there.
    keyless = len(facts.keyless) - count.summary.never_joined
    if count.exact and keyless > 0:
        said = f"no Secret opens at {many(keyless, 'destination')}: no key of it is known"
        yield held(SECRETS_UNOPENED, said, "leafcast node list", keyless)
    if worked_at := count.summary.maintained:
        yield held(
            MAINTENANCE,
            "nothing new goes there, and nobody waits for it",
            "leafcast maintenance list",
            worked_at if count.exact else None,
        )
    if facts.keeping:
        yield held(MOVING, facts.keeping_text, f"leafcast status {name}")


def _refused(facts: PlacementFacts, count: Count, name: str) -> Iterator[Hold]:
    """What of it cannot go out as it is written."""
    frozen = count.summary.states.get("frozen", 0)
    if facts.lack is not None and facts.lack.reason == FROZEN:
        remedy = f"leafcast describe {name}"
        yield held(CUSTOMIZATION_FROZEN, facts.lack.message, remedy)
    elif frozen:
        why = (each for each in count.summary.exceptions if each.reason.startswith(f"{FROZEN}: "))
        said = f"some of it cannot be customized at {frozen}: all of it stays there as it was"
        said = "; ".join([said, *(_about(each) for each in islice(why, 1))])
        yield held(
            CUSTOMIZATION_FROZEN, said, f"leafcast status {name}", frozen if count.exact else None
        )
    if facts.faults:
        said = "; ".join(told_once(facts.faults))
        yield held(OBJECTS_REFUSED, said, f"leafcast describe {name}")


def _among_placements(facts: PlacementFacts, count: Count, name: str) -> Iterator[Hold]:
    """What other placements say otherwise, or are waited for."""
    if facts.differing:
        named = some_of([title(other) for other in sorted(facts.differing)], OTHERS_NAMED_MAX)
        listed = sorted({key for keys in facts.differing.values() for key in keys})
        objects = some_of([namespace_first(str(key)) for key in listed], OTHERS_NAMED_MAX)
        said = f"{named} and this one say createOnly differently of {objects}"
        yield held(PLACEMENTS_DIFFER, said, f"leafcast describe {name}")
    for reason, word in ((OVERRIDDEN, f"{OVERRIDDEN}: "), (WAITING, _WAITS_FOR)):
        found = [each for each in count.summary.exceptions if each.reason.startswith(word)]
        if not found:
            continue
        first = max(found, key=lambda sample: sample.count)
        yield held(
            reason,
            _about(first),
            f"leafcast status {name} --destinations",
            first.count if count.exact and len(found) == 1 else None,
        )


def _about(sample: ExceptionSample) -> str:
    """An object, if it is about one, and what an edge says of it."""
    return ": ".join(filter(None, (namespace_first(sample.object), sample.reason)))
