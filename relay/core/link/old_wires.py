"""Children that speak an older wire than what is issued: they get what brings them up first."""

from __future__ import annotations

from collections.abc import Iterable

from relay.core.link.child import ChildLink
from relay.core.link.writer import NO_CAUSE


def sort_out(children: Iterable[ChildLink], needed: int) -> list[str]:
    """Hold back from who speaks an older wire than the needed one; whose mail goes on now."""
    going_on = []
    for child in children:
        former, mailbox = child.mailbox.holds_back, child.mailbox
        mailbox.holds_back = child.wire < needed
        if former and not mailbox.holds_back:
            for key in mailbox.slots:
                mailbox.mark(key, NO_CAUSE)
            going_on.append(mailbox.child)
    return going_on
