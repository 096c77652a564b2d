"""Why a copy is there that the centre does not mean to be there."""

from __future__ import annotations

from collections.abc import Iterator

from leafcast.explain.facts import CopyFacts, Explanation
from leafcast.show.stages import CopyStage
from relay.core.destination.copies_here import PruneWait
from schemas.values.wording import some_of

CLAIMERS_NAMED_MAX = 3
_WAITS: dict[str, tuple[str, str]] = {
    PruneWait.UNKNOWN: (
        "a placement that had it is not all there yet, and may want it",
        "ask why of that placement",
    ),
    PruneWait.NEEDED: (
        "others that waited for it are not as they should be, and may need it",
        "ask why of these",
    ),
    PruneWait.UNSETTLED: (
        "no snapshot that it was shown says yet that the removal is settled",
        "a snapshot comes within seconds; if it stays: leafcast doctor",
    ),
}


def why_there(facts: CopyFacts) -> Iterator[Explanation]:
    """For what the removal of a copy waits, or who keeps it; nothing of one that is not there."""
    copy = facts.copy
    if copy is None or not facts.object:
        return
    if copy.wanted:
        whose = some_of(list(copy.claimers), CLAIMERS_NAMED_MAX) or "what lies in it"
        yield Explanation(
            CopyStage.LEAVING,
            f"{facts.path} still wants it, for {whose}",
            "look again in a moment; then ask why of that placement",
            at=facts.path,
        )
    elif copy.kept:
        kind = facts.object.split("/")[0]
        yield Explanation(
            CopyStage.SURPLUS,
            copy.reason or "it is kept, as it holds data or says so itself",
            f"leafcast get {kind} -A --kept --at {facts.path}; delete it there if nobody needs it",
            at=facts.path,
        )
    elif copy.known:
        yield _going(facts)
    elif facts.lies_there:
        yield Explanation(
            CopyStage.SURPLUS,
            "somebody else put it there: Leafcast did not, and leaves it alone",
            "delete it there, or have a placement select it",
            at=facts.path,
        )


def _going(facts: CopyFacts) -> Explanation:
    assert facts.copy is not None
    if facts.copy.error:
        return Explanation(
            CopyStage.LEAVING,
            f"the cluster refuses its removal: {facts.copy.error}",
            "do as it says there; it is tried again by itself",
            at=facts.path,
        )
    if facts.copy.waits:
        return Explanation(
            CopyStage.LEAVING, f"it waits for {facts.copy.waits}", "mend that first", at=facts.path
        )
    said, remedy = _WAITS.get(
        facts.copy.stays_as, ("it is being removed", "look again in a moment")
    )
    return Explanation(CopyStage.LEAVING, said, remedy, at=facts.path)
