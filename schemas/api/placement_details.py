"""What a placement's status lists: holds, copies that are kept, and those that were put right.

A hold is what keeps the newest content of the centre from destinations, one for each reason. What
merely takes its time is none.
"""

from __future__ import annotations

from schemas.api.shared import ApiValue, CountField, ListOf


class KeptCopy(ApiValue):
    """An object that is kept at destinations, though the placement asks for it no more there."""

    object: str
    """The object that is kept."""
    destinations: CountField
    """At how many destinations it is kept."""
    path: str
    """One of these."""
    reason: str = ""
    """What keeps it."""


class KeptCopies(ApiValue):
    """How many copies are kept that nothing wants, and some of them."""

    count: CountField
    """How many copies are kept."""
    copies: ListOf[KeptCopy] = ()
    """Some of them, one for each object."""


class RepairedCopy(ApiValue):
    """The last time that one copy was put right; without a field it had been deleted."""

    time: str
    """When, by the clock of its edge."""
    object: str
    """The object that was put right."""
    path: str
    """At which destination."""
    count: CountField
    """How often so far."""
    field: str = ""
    """The field that differed; absent if the copy had been deleted."""
    manager: str = ""
    """Who held that field then, as far as known."""


class RepairedCopies(ApiValue):
    """How often copies were put right since each was made, and the last of them."""

    count: CountField
    """How often copies were put right since each was made."""
    last: ListOf[RepairedCopy] = ()
    """The last of these, the newest first, one for each copy."""


HOLDS_MAX = 16
"""So many a status lists."""
HOLD_TEXT_MAX = 400
"""So many characters has a message, and a remedy."""


class Hold(ApiValue):
    """What keeps the newest content of the centre from destinations, and the command that helps."""

    reason: str
    """What keeps it, in one word, for programs."""
    since: str | None = None
    """Since when it is kept."""
    destinations: CountField | None = None
    """How many destinations lack the newest content by it; absent if nobody can tell exactly."""
    message: str = ""
    """What keeps it, for people."""
    until: str | None = None
    """When it ends by itself, if that is known."""
    remedy: str = ""
    """The command to run next."""
