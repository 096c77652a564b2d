"""One child's mailbox, as its parent knows it: what lies in it, and what is to be written to it."""

from __future__ import annotations

from dataclasses import dataclass, field

from schemas.identity import MailKey


@dataclass(slots=True)
class Slot:
    """The last message in one slot.

    Sequence 0 says that the child holds something of the key that was not sent from here: it was
    listed. `bearing` is the sequence at which something that bears on the placement was last
    written to the child; `flying` counts such writes that are not confirmed yet.
    """

    sequence: int
    generation: int
    content: bool
    term: int
    bearing: int = 0
    flying: int = 0


@dataclass(slots=True)
class Mailbox:
    """One child's mailbox, as its parent knows it.

    Of the `slots` those are `listed` of which the child was sent nothing from here yet. Of the
    `queue` nobody looked yet at what is `fresh`, `others` are no deltas, and something that takes
    is `held_back` until there is a look at all of it. It is `half` after a run that was broken off
    between what goes together, until what takes has gone.
    """

    slots: dict[MailKey, Slot] = field(default_factory=dict)
    listed: dict[MailKey, None] = field(default_factory=dict)
    queue: dict[MailKey, int] = field(default_factory=dict)
    fresh: dict[MailKey, None] = field(default_factory=dict)
    others: dict[MailKey, None] = field(default_factory=dict)
    held_back: bool = False
    bears: dict[MailKey, dict[MailKey, None]] = field(default_factory=dict)
    flying: dict[MailKey, tuple[MailKey, ...]] = field(default_factory=dict)
    half: bool = False
    digest: int = 0
    last_sequence: int = 0
