"""For whom content is fetched: a closed set, so that each has its way once it is here."""

from __future__ import annotations

from enum import IntEnum, auto

from schemas.values.identity import MailKey
from schemas.values.value import Value


class OwnerKind(IntEnum):
    """What content is fetched for; hashed as fast as a number."""

    SNAPSHOTS = auto()
    """The tree of the snapshots that are read; of no placement."""
    MAILBOXES = auto()
    """A delta that goes to children."""
    DESTINATION = auto()
    """What a placement gives the destination here."""
    HEALTH_RULES = auto()
    """How objects count that the destination here has already."""
    PROGRAMS = auto()
    """What is collected of a placement, and over which objects."""
    COLLECTED = auto()
    """Those objects."""
    RELEASE = auto()
    """A release of Leafcast that children may install; of no placement."""


class ContentOwner(Value, frozen=True, gc=False):
    """One use of content, of the placement of this key."""

    kind: OwnerKind
    key: MailKey = MailKey("")
