"""One workload description space of a centre: the reconcilers that work on it, wired together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from controllers.core.notes import Notes
from controllers.finalizers import Finalizers
from controllers.issuing import Issuer
from controllers.mailbox_controller import MailboxController
from controllers.placement_translator import PlacementTranslator
from controllers.ports import CentreRelay, FinalizingSpace
from controllers.status_summarizer import StatusSummarizer
from controllers.where_resolver import WhereResolver
from relay.ports import Clock, Space
from schemas.api import Destination, Location
from schemas.identity import MailKey
from schemas.selectors import LabelSelector


class Inventories:
    """All inventory spaces of a centre, as one who resolves placements sees them."""

    def __init__(self, listed: Sequence[MailboxController]) -> None:
        self._listed = tuple(listed)

    @property
    def known(self) -> bool:
        """Whether each was listed."""
        return all(one.known for one in self._listed)

    @property
    def locations(self) -> Sequence[Location]:
        """All Locations; two of one name lie in two spaces."""
        return [location for one in self._listed for location in one.locations.values()]

    def pairs(self, selectors: Sequence[LabelSelector]) -> Iterator[Destination]:
        """The pairs of a Location that one of the selectors matches and a SyncTarget there."""
        for one in self._listed:
            yield from one.pairs(selectors)


class WorkloadSpace:
    """The reconcilers of one space; `noted` hears what no status can say."""

    def __init__(
        self,
        space: Space,
        relay: CentreRelay,
        issuer: Issuer,
        clock: Clock,
        inventories: Inventories,
        notes: Notes,
    ) -> None:
        self.translator = PlacementTranslator(issuer, relay, space, clock)
        self.translator.notes = notes
        self.summarizer = StatusSummarizer(
            relay, space, clock, self.translator, lambda: inventories.locations
        )
        self.where = WhereResolver(space, clock, self.translator, inventories)
        self._finalizers: Finalizers | None = None
        if isinstance(space, FinalizingSpace):
            self._finalizers = Finalizers(space, clock, self.translator)
        self.translator.told = self._looked_at
        self.translator.sliced = self.where.look
        self.noted: Callable[[str, str, str], None] = lambda _reason, _about, _why: None

    @property
    def errors(self) -> Mapping[str, str]:
        """What is wrong now, by object: `edgeplacement/shop`, `denatured/reader`."""
        workloads = self.translator.workloads
        found = {f"edgeplacement/{name}": text for name, text in workloads.invalid.items()}
        for name, text in workloads.renatured.invalid.items():
            found[f"denatured/{name}"] = text
        for name, text in self.translator.held.items():
            found[f"edgeplacement/{name}"] = text
        for name, faults in self.translator.faults.items():
            if faults:
                found[f"edgeplacement/{name}"] = "; ".join(str(fault) for fault in faults)
        return found

    async def run(self) -> None:
        """Reconcile until cancelled; raises BusBroken, and SpaceError if the space is another."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.translator.run(), name="placement translator")
            group.create_task(self.summarizer.run(), name="status summarizer")
            group.create_task(self.where.run(), name="where resolver")
            if self._finalizers is not None:
                group.create_task(self._finalizers.run(), name="finalizers")

    def changed(self, keys: Iterable[MailKey]) -> None:
        """Look again at those placements of this space whose summaries changed."""
        names = [self.translator.name_of(key) for key in keys]
        self.summarizer.look(name for name in names if name is not None)

    def _looked_at(self, names: Iterable[str]) -> None:
        held, there = self.translator.held, self.translator.workloads.objects
        for name in names:
            if name in held and name not in there:
                self.noted("RemovalHeld", f"edgeplacement/{name}", held[name])
        self.summarizer.look(names)
        self.where.look(names)
        if self._finalizers is not None:
            self._finalizers.look(names)
