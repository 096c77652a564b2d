"""What a placement's status tells of copies that are kept, and of those that were put right."""

from __future__ import annotations

from schemas.api.shared import Count, ListOf, Value


class KeptCopy(Value):
    """An object that is kept at destinations, though the placement asks for it no more there."""

    object: str
    destinations: Count
    # One of them.
    path: str
    reason: str = ""


class KeptCopies(Value):
    """How many copies are kept that nothing wants, and some of them."""

    count: Count
    copies: ListOf[KeptCopy] = ()


class RepairedCopy(Value):
    """The last time that one copy was put right; without a field it had been deleted."""

    time: str
    object: str
    path: str
    count: Count
    field: str = ""
    # Who held the field then, as far as known.
    manager: str = ""


class RepairedCopies(Value):
    """How often copies were put right since each was made, and the last of them."""

    count: Count
    last: ListOf[RepairedCopy] = ()
