"""Which object of a source a copy was made from: a new one of the same name is another object."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from schemas.values.wire import Natural, WireRecord


class SourceObject(WireRecord, frozen=True):
    """One object of a space, from its creation to its deletion."""

    space: str
    uid: str
    # When it was created, in seconds since 1970.
    created_s: Natural
    # The revision at which its content became what it is.
    revision: Natural

    def succeeds(self, former: SourceObject) -> bool:
        """Whether it was created in the place of the former one.

        In a space that was restored or copied an older object may stand there again: that is none.
        """
        if self.space != former.space or self.uid == former.uid:
            return False
        mine, others = (self.created_s, self.revision), (former.created_s, former.revision)
        return mine > others


def uid_of(obj: Mapping[str, Any]) -> str:
    """The UID that a space gave the object; "" if it gave none."""
    return str((obj.get("metadata") or {}).get("uid") or "")


def generation_of(obj: Mapping[str, Any]) -> int:
    """Which metadata.generation the object is at; 0 if it says none."""
    return int((obj.get("metadata") or {}).get("generation") or 0)


def created_seconds(obj: Mapping[str, Any]) -> int:
    """When the object was created, in seconds since 1970; 0 if it does not say."""
    text = (obj.get("metadata") or {}).get("creationTimestamp")
    try:
        found = datetime.fromisoformat(text) if text else None
        return max(int(found.timestamp()), 0) if found is not None and found.tzinfo else 0
    except (TypeError, ValueError, OverflowError):
        return 0


def number_of(revision: str) -> int:
    """What revisions of one space compare by: the number before the first dot; 0 of no number."""
    number = revision.partition(".")[0]
    return int(number) if number.isascii() and number.isdigit() else 0
