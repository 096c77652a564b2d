"""What the controllers need of the centre's relay."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from relay.ports import Space
from schemas.blobs import Reference
from schemas.identity import ContentHash, MailKey, TreeId
from schemas.objects import ObjectKey
from schemas.reports import ObjectResult, Summary
from schemas.signing import Envelope


class CentreRelay(Protocol):
    """The relay at the root of the tree, as its controllers see it."""

    @property
    def tree(self) -> TreeId: ...

    def ledger(self) -> Mapping[str, Envelope]:
        """All records issued and kept, by OWN key (a mail key, `_index` or `_keys`).

        Tombstones are included; it is read from the stream at start, so a second start finds what
        the first one wrote.
        """
        ...

    async def publish(
        self, blobs: Mapping[ContentHash, bytes], envelopes: Sequence[Envelope]
    ) -> None:
        """Keep the blobs, then the records in the ledger, then send them to whom they concern.

        Returns when blobs and ledger are kept; sending goes on by itself, also after a restart.
        """
        ...

    async def load(self, reference: Reference) -> bytes | None:
        """The plain bytes of a blob kept earlier, checked; None if it is not there."""
        ...

    def lacks(self, addresses: Iterable[ContentHash]) -> frozenset[ContentHash]:
        """Which of these blobs are not kept here, as far as is known without reading them."""
        ...

    def summary(self, key: MailKey) -> Summary | None:
        """The fold over the tree for one placement; None while nothing is known of it."""
        ...

    def results(self, key: MailKey) -> Sequence[ObjectResult]:
        """The objects' returned states for one placement: exact ones and counted ones."""
        ...

    async def summaries_changed(self) -> frozenset[MailKey]:
        """Wait until summaries changed since the last call, and name them."""
        ...


@runtime_checkable
class FinalizingSpace(Space, Protocol):
    """A space in which an object with finalizers stays, terminating, until they are taken off."""

    async def release(self, key: ObjectKey, finalizer: str, uid: str) -> None:
        """Take a finalizer off the object of this uid, whoever set it; raises SpaceError."""
        ...
