"""All inventory spaces of a centre, as one who resolves placements sees them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from controllers.core.inventory.make_before_break import GuardIndex
from controllers.core.inventory.where import InventoryIndex
from controllers.inventory.mailbox_controller import MailboxController
from schemas.api.inventory import Location, SyncTarget
from schemas.api.placement import Destination
from schemas.objects.selectors import LabelSelector


class Inventories:
    """What they hold, and what of it `holds` placements that move."""

    def __init__(self, listed: Sequence[MailboxController], holds: GuardIndex) -> None:
        self._listed = tuple(listed)
        self.holds = holds

    @property
    def known(self) -> bool:
        """Whether each was listed."""
        return all(one.registry.known for one in self._listed)

    @property
    def locations(self) -> Sequence[Location]:
        """All Locations; two of one name lie in two spaces."""
        return [location for index in self._indexes for location in index.locations.values()]

    def pairs(self, selectors: Sequence[LabelSelector]) -> Iterator[Destination]:
        """The pairs of a Location that one of the selectors matches and a SyncTarget there."""
        return (pair for index in self._indexes for pair in index.pairs(selectors))

    def targets(self, selectors: Sequence[LabelSelector]) -> Iterator[SyncTarget]:
        """The SyncTargets that one of the selectors matches, some of them several times."""
        return (target for index in self._indexes for target in index.targets(selectors))

    @property
    def _indexes(self) -> Iterator[InventoryIndex]:
        return (one.registry.inventory for one in self._listed)
