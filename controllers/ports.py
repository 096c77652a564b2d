"""What the controllers need of the centre's relay."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol, runtime_checkable

from relay.core.collectors.collected_results import Result
from relay.core.effects import SnapshotShown
from relay.space_port import Absence, Space
from schemas.content.blobs import Reference
from schemas.objects.objects import ObjectKey
from schemas.records.records import FormerRollout, SpaceMark
from schemas.records.signed_records import SignedRecord, StoredMessages
from schemas.records.signing import Envelope
from schemas.records.snapshots import SnapshotRecord
from schemas.reports.reports import Count, ObjectResult
from schemas.values.identity import ContentHash, MailKey, TreeId


class CentreRelay(Protocol):
    """The relay at the root of the tree, as its controllers see it."""

    @property
    def tree(self) -> TreeId: ...

    def ledger(self) -> StoredMessages:
        """All that is kept: what the stream held at the start, and what was published since."""

    async def publish(
        self, blobs: Mapping[ContentHash, bytes], records: Sequence[SignedRecord]
    ) -> None:
        """Keep the blobs, then the records in the ledger, then send them to whom they concern.

        Returns when blobs and ledger are kept; sending goes on by itself, also after a restart.
        """

    async def publish_snapshot(
        self,
        blobs: Mapping[ContentHash, bytes],
        record: SnapshotRecord,
        envelope: Envelope,
        dropped: Sequence[MailKey],
    ) -> None:
        """Keep the blobs, then the snapshot, erase what it lists no more, and send it.

        Returns when it is kept and what is dropped is erased.
        """

    def kept_history(self) -> Mapping[MailKey, tuple[Reference, ...]]:
        """The former contents that are kept, by placement."""

    async def keep_history(
        self,
        key: MailKey,
        references: Sequence[Reference],
        blobs: Mapping[ContentHash, bytes] = MappingProxyType({}),
        rejected: Sequence[Reference] = (),
    ) -> None:
        """Keep these blobs, and these contents of a placement, manifests whole, and no others.

        What a delta in force names is kept in any case. It holds over restarts, as what is
        rejected does: two of these contents, or none.
        """

    def rejections(self) -> Mapping[MailKey, tuple[Reference, Reference]]:
        """Of placements of which something is rejected: what was wanted, and what goes out."""

    def former_rollouts(self) -> Mapping[MailKey, FormerRollout]:
        """What is known of the Rollouts that placements had; of others there is nothing to know."""

    async def keep_former_rollout(self, key: MailKey, known: FormerRollout) -> None:
        """Keep what is known of the Rollout that a placement had, over restarts."""

    def space_mark(self, space: str) -> SpaceMark | None:
        """How far a workload description space was known; None if that was never noted."""

    async def keep_space_mark(self, space: str, mark: SpaceMark) -> None:
        """Keep how far a space is known, over restarts."""

    async def load(self, reference: Reference) -> bytes | None:
        """The plain bytes of a blob kept earlier, checked; None if it is not there."""

    def lacks(self, addresses: Iterable[ContentHash]) -> frozenset[ContentHash]:
        """Which of these blobs are not kept here, as far as is known without reading them."""

    def count(self, key: MailKey) -> Count | None:
        """What is counted over the tree for one placement; None while nothing is known of it."""

    async def published_handled(self) -> None:
        """Wait until `count` knows of all that was published before."""

    def unreachable(self, key: MailKey) -> Sequence[tuple[str, int]]:
        """The children behind which some cannot be reached, and how many; the most first."""

    def results(self, key: MailKey) -> Sequence[ObjectResult]:
        """The objects' returned states for one placement: exact ones and counted ones."""

    def collected(self, key: MailKey) -> Sequence[Result]:
        """What collectors collected over the tree of one placement's objects."""

    async def counts_changed(self) -> frozenset[MailKey]:
        """Wait until counts changed since the last call, and name them."""

    async def shown(self) -> SnapshotShown:
        """Wait for a child that shows a snapshot above the centre's last.

        Each is told once, or not at all if a newer one is.
        """


@runtime_checkable
class RecordingSpace(Space, Protocol):
    """A space that keeps a record of what was deleted, for a while."""

    async def absence(self, keys: Collection[ObjectKey]) -> Absence:
        """Why these objects are not there, as far as it can tell; raises SpaceError."""
