"""The revisions of a placement: numbered, remembered with their outcome, and kept to go back to."""

from __future__ import annotations

from controllers.core.rollout.state import ChangeCause, changed, contents_of, reference
from relay.objects.stored_object import timestamp
from schemas.api.rollout_status import Outcome, Revision, RolloutStatus
from schemas.content.blobs import Reference

GOOD = frozenset({"Complete", "Partial", "Promoted"})
"""How a revision ended that went through its waves."""


def revision(state: RolloutStatus, number: int) -> Revision | None:
    """The revision of this number, if it is remembered."""
    return next((item for item in state.history if item.number == number), None)


def next_number(state: RolloutStatus) -> int:
    """A number that no revision had."""
    return max((state.revision, *(item.number for item in state.history))) + 1


def entry(number: int, arm: Reference | None, now_ms: int, change: ChangeCause) -> Revision:
    """What is remembered of a revision that begins."""
    return Revision(
        number=number,
        manifest=arm.address if arm is not None else "",
        size=arm.size if arm is not None else 0,
        time=timestamp(now_ms),
        user=change.user,
        cause=change.cause,
    )


def ended(state: RolloutStatus, number: int, outcome: Outcome) -> RolloutStatus:
    """The state in which a revision has this outcome."""
    history = tuple(
        changed(item, outcome=outcome) if item.number == number else item for item in state.history
    )
    return changed(state, history=history)


def trimmed(state: RolloutStatus, limit: int) -> RolloutStatus:
    """The state without the oldest revisions, but with all that someone has, or is pinned to."""
    in_use = {layer.revision for layer in state.layers} | {pin.revision for pin in state.pins}
    in_use |= {layer.revision for freeze in state.freezes for layer in freeze.layers}
    newest = {item.number for item in state.history[-limit - 1 :]}
    kept = tuple(item for item in state.history if item.number in in_use | newest)
    return state if kept == state.history else changed(state, history=kept)


def former(state: RolloutStatus) -> Revision | None:
    """What `undo` without a number goes back to: the last good revision of other content."""
    now = revision(state, state.revision)
    for item in reversed(state.history):
        good = item.outcome in GOOD
        if item.number < state.revision and good and now and item.manifest != now.manifest:
            return item
    return None


def roots(state: RolloutStatus) -> frozenset[Reference]:
    """All contents that the state names: none of them may be swept."""
    return frozenset(reference(*each) for each in contents_of(state))
