"""Children that speak an older wire than what is issued: they get what brings them up first."""

from __future__ import annotations

from relay.core.link.children import Children
from relay.core.link.writer import NO_CAUSE


def sort_out(children: Children, needed: int) -> list[str]:
    """Hold back from who speaks an older wire than the needed one; whose mail goes on now."""
    going_on = []
    for name, child in children.by_name.items():
        former, mailbox = child.mailbox.holds_back, child.mailbox
        mailbox.holds_back = child.wire < needed
        if former and not mailbox.holds_back:
            for key in mailbox.slots:
                mailbox.mark(key, NO_CAUSE)
            going_on.append(name)
    return going_on


def is_held_back(children: Children, name: str) -> bool:
    """Whether a child gets only what brings it up."""
    return children.by_name[name].mailbox.holds_back
