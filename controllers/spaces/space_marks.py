"""Whether a space went on from where the ledger knew it: one that was rolled back lacks things.

So does one whose files are damaged. What such a space does not show was not deleted for that.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from relay.shell.publisher import CentrePublisher
from relay.space_port import ObjectChange, RecordingSpace, Space
from schemas.objects.objects import BUILT_IN_KINDS, GroupResource, ObjectKey
from schemas.objects.source_objects import number_of
from schemas.records.records import SpaceMark

if TYPE_CHECKING:
    from controllers.core.workloads.space import Workloads

_BUILT_IN = frozenset((group, entry.resource) for (group, _), entry in BUILT_IN_KINDS.items())


class SpaceContinuity:
    """Of one space; the ledger notes how far it was known."""

    def __init__(self, relay: CentrePublisher, identity: str) -> None:
        self._relay = relay
        self._identity = identity
        # None if the ledger never noted any, which says nothing.
        self._mark = relay.space_mark(identity) if identity else None
        self._seen = self._mark.revision if self._mark is not None else 0
        # How far the ledger knew it as this run began; None once it was compared with the space.
        self._known_to: int | None = self._seen
        self._asked: frozenset[ObjectKey] = frozenset()
        self._lost: frozenset[ObjectKey] = frozenset()
        self._fell = self._mark is not None and self._mark.fell_back

    def listed(
        self,
        revision: str,
        kind: GroupResource | None,
        shown: AbstractSet[GroupResource],
        workloads: Workloads,
    ) -> None:
        """Trust a list of this revision, of a kind or of all shown, if the space went on."""
        self.read_at(revision)
        listed = frozenset(shown if kind is None else shown & {kind})
        if self._mark is None or self._mark.rolled_back:
            workloads.trusted = frozenset()
        else:
            workloads.trusted = listed if kind is None else workloads.trusted | listed

    def fell(self) -> bool:
        """Whether it was found, since this was asked, that the space may show an older state."""
        fell, self._fell = self._fell, False
        return fell

    def read_at(self, revision: str) -> None:
        """Take note that something was listed at this revision."""
        number = number_of(revision)
        if number < self._seen:
            self._fell_back(number)
        self._seen = number

    async def lost(
        self, space: Space, unseen: Callable[[], frozenset[ObjectKey]]
    ) -> frozenset[ObjectKey]:
        """What no list shows now and nobody deleted; raises SpaceError while none can tell.

        A space that was rolled back, or lost some, lost all that it does not know to be deleted,
        until nothing is missing.
        """
        await self._compare(space)
        # What was seen meanwhile is asked about anew.
        self._asked &= unseen()
        while fresh := unseen() - self._asked:
            known = frozenset[ObjectKey]()
            if isinstance(space, RecordingSpace):
                absence = await space.absence(fresh)
                known = absence.deleted | absence.present
                if absence.lost:
                    self._lacks_some(self._seen)
            self._lost -= fresh
            if self._mark is not None and self._mark.rolled_back:
                self._lost |= fresh - known
            self._asked |= fresh
        self._lost &= unseen()
        return self._lost

    async def _compare(self, space: Space) -> None:
        """Find out, once in a run, whether a space that says so lost what the ledger knew."""
        if self._known_to is not None and isinstance(space, RecordingSpace):
            absence = await space.absence(())
            if absence.read_to < self._known_to or absence.mended_at > self._known_to > 0:
                self._fell_back(self._seen)
        # What is missed later was there as this run began, whatever was lost before.
        self._known_to = None

    def _fell_back(self, revision: int) -> None:
        self._lacks_some(revision)
        self._mark = SpaceMark(revision, rolled_back=True, fell_back=True)
        self._fell = True

    def _lacks_some(self, revision: int) -> None:
        if self._mark is None or not self._mark.rolled_back:
            # What was taken for deleted so far may be lost, too.
            self._asked = frozenset()
        fell_back = self._mark is not None and self._mark.fell_back
        self._mark = SpaceMark(revision, rolled_back=True, fell_back=fell_back)

    def saw(self, change: ObjectChange, *, is_defined: bool) -> None:
        """Take note of how far a change tells that the space is, if its kind lives there.

        A server of its own behind an API server counts by itself: that tells nothing.
        """
        if is_defined or change.key.group_resource in _BUILT_IN:
            version = str(change.object.get("metadata", {}).get("resourceVersion") or "")
            self._seen = max(self._seen, number_of(version))

    async def keep(self, *, issued: bool, whole: bool) -> None:
        """Have the ledger note how far the space is known, if something was issued of it.

        Once it is `whole` nothing of what it had is missing, or waits: it goes on from here. Raises
        BusBroken.
        """
        before = self._relay.space_mark(self._identity)
        mark = self._mark if self._mark is not None and not whole else SpaceMark(self._seen)
        self._mark = SpaceMark(self._seen, mark.rolled_back, mark.fell_back)
        flags = (self._mark.rolled_back, self._mark.fell_back)
        is_news = before is None or issued or flags != (before.rolled_back, before.fell_back)
        if is_news and self._mark != before:
            await self._relay.keep_space_mark(self._identity, self._mark)
