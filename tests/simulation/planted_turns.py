"""Faults planted on purpose in what goes together, each what a hurried change might do.

Each gives what it changes: an owner, an attribute, and what stands there instead.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from relay.core import inbox, mailboxes, state
from tests.simulation.planted import Patch


def take_one_by_one() -> Patch:
    """Let what takes from one batch go as soon as it can, each by itself."""
    honest = mailboxes.in_turns

    def in_turns(due: Any) -> Any:
        return [[item] for turn in honest(due) for item in turn]

    return mailboxes, "in_turns", in_turns


def take_between_halves() -> Patch:
    """Take away what one half of an exchange takes, though the other is not read yet."""
    return inbox.Inbox, "unread", property(lambda self: self.pending)


def begin_anew_on_a_half() -> Patch:
    """Let a child go on with what it holds, though it may have read half of an exchange."""
    return mailboxes.Mailboxes, "is_open", lambda *_: False


def issue_one_by_one() -> Patch:
    """Send what is published at once each by itself."""

    def begin_batch(self: Any, *, more: bool) -> None:
        self.mailboxes.calm = self.mailboxes.calm and (self.is_root or not more)

    return state.State, "begin_batch", begin_batch


def give_between_halves() -> Patch:
    """Forget, over a restart, that a mailbox ends with half of an exchange."""
    honest = mailboxes.Mailboxes.restore

    def restore(self: Any, child: str, kept: Any) -> None:
        honest(self, child, replace(kept, more=False))

    return mailboxes.Mailboxes, "restore", restore
