"""What a node knows of one child."""

from __future__ import annotations

from dataclasses import dataclass, field

from relay.core.link.progress import Answers
from relay.core.link.session import ChildSession
from relay.core.link.writer import MailboxWriter
from relay.core.records.accepted import Accepted
from schemas.values.identity import MailKey


@dataclass(slots=True)
class InFlight:
    """Inventory on its way to a child: it may change who is meant there."""

    records: tuple[Accepted, ...]
    # What leaves no message there is told by a snapshot above this generation.
    generation: int
    # Where the newest of it was written in the child's mailbox; None until that is confirmed.
    sequence: int | None = None


@dataclass(slots=True)
class Child:
    """All that a node knows of one child."""

    nkey: str
    session: ChildSession
    mailbox: MailboxWriter
    answers: Answers = field(default_factory=Answers)
    # Up to where its reports reflect its mailbox, in this run of the node.
    through: int = 0
    # Where its mailbox ended when it came back: it is in step once it has answered that.
    catch_up_to: int = 0
    # The first place that it has not reached, and since when.
    overdue: tuple[int, float] | None = None
    levels: int = 0
    # Whether it was told to read its mailbox again since its mail digest was last as it is here.
    read_requested: bool = False
    rewritten: float = float("-inf")
    # When it is to be told to report everything again, as its report digest differs.
    repeat_at: float | None = None
    wants: tuple[MailKey, ...] = ()
    snapshot_time_ms: int = 0
    in_flight: dict[MailKey, InFlight] = field(default_factory=dict)
    refused: int = 0
    # How often another home's run asked for its place.
    contests: int = 0
    # Whether there is room for what it brings up.
    has_copies: bool = False
    # Where the last of its reports lay that was taken.
    said_at: int = 0

    def landed(self) -> None:
        """Nothing is in flight any more that its reports reflect."""
        for key, flying in list(self.in_flight.items()):
            if flying.sequence is not None and flying.sequence <= self.through:
                del self.in_flight[key]
        if not self.in_flight:
            # An empty table that was large takes long to look through.
            self.in_flight.clear()
