"""Which relays have not answered yet for destinations that came or went below them.

While such a relay cannot be reached, what it said last counts others than hang there now.
"""

from __future__ import annotations

from relay.core.book import is_delta
from relay.core.events import MailWritten
from relay.core.state import State
from schemas.records import Profile


def written(state: State, event: MailWritten) -> None:
    """Take in where a child's mail was put; a profile changes for whom it has to answer."""
    child = event.child
    borne = state.mailboxes.written(child, event.key, event.sequence)
    held = state.held.get(event.key)
    if borne and held is not None and held.kind == "profile":
        relay = not state.where.branch(child).is_edge
        for placement in borne if relay else ():
            if is_delta(state.held.get(placement)):
                state.reporting.regrouped(child, placement, event.sequence)
    state.mailboxes.look(child)


def restored(state: State) -> None:
    """After a start it is not known who has answered for the destinations that went away."""
    path = state.config.path
    for child, box in state.mailboxes.boxes.items():
        if state.where.branch(child).is_edge:
            continue
        for key in box.slots:
            held = state.held.get(key)
            record = held.record if held is not None else None
            if isinstance(record, Profile) and path.step_towards(record.path) != child:
                for placement in state.where.deltas_of_profile(record):
                    state.reporting.regrouped(child, placement, box.last_sequence)
