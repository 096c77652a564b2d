"""The centre's publisher in a world: the real one, whose steps a crash may cut at any place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from relay.shell.publisher import CentrePublisher
from schemas.content.blobs import Reference
from schemas.records.signed_records import SignedRecord
from schemas.records.signing import Envelope
from schemas.records.snapshots import SnapshotRecord
from schemas.reports.reports import Count
from schemas.values.identity import KEYS_KEY, ContentHash, MailKey

if TYPE_CHECKING:
    from tests.simulation.books import Books
    from tests.simulation.host import Host


NONE: Mapping[ContentHash, bytes] = MappingProxyType({})


class BookedPublisher(CentrePublisher):
    """What is published is in the books first."""

    books: Books
    host: Host

    async def publish(
        self, blobs: Mapping[ContentHash, bytes], records: Sequence[SignedRecord]
    ) -> None:
        run, said = self.host.run, [self.books.publishing(signed, blobs) for signed in records]
        self.host.cut_amid(len(blobs) + len(said))
        await super().publish(blobs, said)
        self.host.performed(run)
        if any(signed.slot == KEYS_KEY for signed in said):
            self.books.kept_keys("told")

    async def keep_history(
        self,
        key: MailKey,
        references: Sequence[Reference],
        blobs: Mapping[ContentHash, bytes] = NONE,
        rejected: Sequence[Reference] = (),
    ) -> None:
        kept = self.host.world.ports.history(references)
        await super().keep_history(key, kept, blobs, rejected)

    def count(self, key: MailKey) -> Count | None:
        honest = super().count(key)
        return None if honest is None else self.host.world.ports.count(self.host, key, honest)

    def count_changed(self, key: MailKey) -> None:
        self.books.counted(key)
        super().count_changed(key)

    async def publish_snapshot(
        self,
        blobs: Mapping[ContentHash, bytes],
        record: SnapshotRecord,
        envelope: Envelope,
        dropped: Sequence[MailKey],
    ) -> None:
        run, said = self.host.run, self.books.publishing_snapshot(blobs, record, envelope)
        self.host.cut_amid(len(blobs) + 1 + len(dropped))
        await super().publish_snapshot(*said, dropped)
        self.host.performed(run)
