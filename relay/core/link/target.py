"""What each child's mailbox should hold: a record in full, its head, or nothing."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from relay.core.audience import Audience
from relay.core.content.content import Content
from relay.core.content.owners import ContentOwner, OwnerKind
from relay.core.link.writer import SlotForm, Supply
from relay.core.records.accepted import AcceptedRecord
from relay.core.records.book import RecordBook
from schemas.records.records import ReleaseRecord
from schemas.values.identity import KEYS_KEY, ContentHash, MailKey

CONTENT_REFUSED_SECONDS = 60.0
CARRIED_MAX_BYTES = 2048
CARRIED_RECORDS_MAX = 64

Carried = tuple[tuple[ContentHash, bytes], ...]


class Targets:
    """The targets of all children of one node, from what it holds and who is meant."""

    def __init__(
        self,
        book: RecordBook,
        audience: Audience,
        content: Content,
        clock: Callable[[], float],
        *,
        has_all_content: bool,
    ) -> None:
        self._book = book
        self._audience = audience
        self._content = content
        self._clock = clock
        # The centre keeps blobs before records.
        self._has_all_content = has_all_content
        self._carried: OrderedDict[MailKey, Carried] = OrderedDict()

    def record(self, key: MailKey) -> AcceptedRecord | None:
        return self._book.get(key)

    def wish(self, child: str, record: AcceptedRecord, *, has: SlotForm) -> SlotForm:
        key = record.key
        if key == KEYS_KEY or isinstance(record.record, ReleaseRecord):
            return SlotForm.FULL
        if record.kind in ("delta", "location"):
            # Who ever got a Location holds it as long as it is in force, and is to hold the newest.
            kept = record.kind == "location" and has is SlotForm.FULL
            concerned = kept or record.opaque or self._audience.expected(key, child) > 0
            if concerned and record.full:
                return SlotForm.FULL
            return SlotForm.NOTHING if has is SlotForm.NOTHING else SlotForm.HEAD
        return SlotForm.FULL if self._book.step_of(record) == child else SlotForm.NOTHING

    def supply(self, key: MailKey) -> Supply:
        record = self._book.get(key)
        if self._has_all_content or record is None or record.body is None:
            return Supply.HERE
        owner = mail_owner(key)
        if not self._content.knows(owner) and self._content.begin(owner, record.body.content):
            return Supply.HERE
        since = self._content.refused_since(owner)
        late = since is not None and since < self._clock() - CONTENT_REFUSED_SECONDS
        return Supply.REFUSED if late else Supply.COMING

    def refused(self) -> list[MailKey]:
        """The deltas whose content cannot be had: `supply` says so of them."""
        owners = self._content.refused_before(self._clock() - CONTENT_REFUSED_SECONDS)
        return [owner.key for owner in owners if owner.kind is OwnerKind.MAILBOXES]

    def carry(self, key: MailKey, blobs: Carried) -> None:
        """Keep what came along with a record, to go along with it further."""
        self._carried.pop(key, None)
        if blobs and sum(len(value) for _, value in blobs) <= CARRIED_MAX_BYTES:
            self._carried[key] = blobs
            while len(self._carried) > CARRIED_RECORDS_MAX:
                self._carried.popitem(last=False)

    def carried(self, key: MailKey) -> Carried:
        return self._carried.get(key, ())


def mail_owner(key: MailKey) -> ContentOwner:
    """For whom the content of a delta is fetched that goes to children."""
    return ContentOwner(OwnerKind.MAILBOXES, key)
