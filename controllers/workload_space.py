"""One workload description space of a centre: the reconcilers that work on it, wired together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from controllers.core.inventory.make_before_break import GuardIndex
from controllers.core.workloads.own_statuses import own_status
from controllers.core.workloads.space import Workloads
from controllers.finalizers import Finalizers
from controllers.issuer import Issuer
from controllers.mailbox_controller import MailboxController
from controllers.placement_translator import Note, PlacementTranslator
from controllers.ports import CentreRelay, FinalizingSpace
from controllers.rollouts import RolloutController
from controllers.status_summarizer import StatusSummarizer
from controllers.status_writing import write_status
from controllers.where_resolver import WhereResolver
from controllers.work_queue import PlacementQueues, WorkQueue
from relay.ports import Clock, Space
from schemas.api import Destination, Location, SyncTarget
from schemas.objects.objects import ObjectKey
from schemas.objects.selectors import LabelSelector
from schemas.records.placements import title
from schemas.values.identity import MailKey


class Inventories:
    """All inventory spaces of a centre, as one who resolves placements sees them."""

    def __init__(self, listed: Sequence[MailboxController], holds: GuardIndex) -> None:
        self._listed = tuple(listed)
        self.holds = holds

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

    def targets(self, selectors: Sequence[LabelSelector]) -> Iterator[SyncTarget]:
        """The SyncTargets that one of the selectors matches, some of them several times."""
        for one in self._listed:
            yield from one.targets(selectors)


class WorkloadSpace:
    """The reconcilers of one space; `note` hears what no status can say."""

    def __init__(
        self,
        relay: CentreRelay,
        issuer: Issuer,
        clock: Clock,
        space: Space,
        queues: PlacementQueues,
        inventories: Inventories,
        note: Note,
    ) -> None:
        self._queues = queues
        self.translator = PlacementTranslator(issuer, relay, space, clock, queues, note)
        self.summarizer = StatusSummarizer(
            relay,
            space,
            clock,
            queues.statuses,
            self.translator,
            lambda: inventories.locations,
            inventories.holds,
        )
        self._own_statuses = OwnStatuses(
            space, clock, queues.own_statuses, lambda: self.translator.workloads
        )
        self._where = WhereResolver(space, clock, queues.slices, self.translator, inventories)
        self._rollouts = RolloutController(
            issuer, relay, space, clock, queues.rollouts, self.translator
        )
        self._finalizers: Finalizers | None = None
        if isinstance(space, FinalizingSpace) and queues.finalizers is not None:
            self._finalizers = Finalizers(space, queues.finalizers, self.translator)

    @property
    def errors(self) -> Mapping[str, str]:
        """What is wrong now, by object: `edgeplacement/shop`, `statuscollector/ready`."""
        workloads = self.translator.workloads
        found = {title(name): text for name, text in workloads.invalid.items()}
        for name, text in workloads.renatured.invalid.items():
            found[f"denatured/{name}"] = text
        for name, texts in workloads.collectors.invalid.items():
            found[f"statuscollector/{name}"] = "; ".join(texts)
        for name, texts in workloads.health_rules.invalid.items():
            found[f"healthrule/{name}"] = "; ".join(texts)
        for name, text in workloads.transforms.invalid.items():
            found[f"customtransform/{name}"] = text
        for name, text in self.translator.placements.held.items():
            found[title(name)] = text
        for name, faults in self.translator.placements.faults.items():
            if faults:
                found[title(name)] = "; ".join(str(fault) for fault in faults)
        return found

    async def run(self) -> None:
        """Reconcile until cancelled; raises BusBroken, and SpaceError if the space is another."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.translator.run(), name="placement translator")
            group.create_task(self.summarizer.run(), name="status summarizer")
            group.create_task(self._where.run(), name="where resolver")
            group.create_task(self._own_statuses.run(), name="own statuses")
            group.create_task(self._rollouts.run(), name="rollouts")
            if self._finalizers is not None:
                group.create_task(self._finalizers.run(), name="finalizers")

    def counts_changed(self, keys: Iterable[MailKey]) -> None:
        """Look again at those placements of this space whose counts changed."""
        found = (self.translator.name_of(key) for key in keys)
        names = frozenset(name for name in found if name is not None)
        self._queues.statuses.add(names)
        self._queues.rollouts.add(self.translator.workloads.rollouts.steering(names))


class OwnStatuses:
    """Has objects of a space that only the centre reads say in their own status what is wrong."""

    def __init__(
        self,
        space: Space,
        clock: Clock,
        queue: WorkQueue[ObjectKey],
        workloads: Callable[[], Workloads],
    ) -> None:
        """`workloads` are those that are known now: after a start they are others."""
        self._space = space
        self._clock = clock
        self._queue = queue
        self._workloads = workloads

    async def run(self) -> None:
        """Reconcile until cancelled."""
        await self._queue.work(self.reconcile)

    async def reconcile(self, keys: frozenset[ObjectKey]) -> list[ObjectKey]:
        """Bring the statuses of these up to date; those to be tried again."""
        return [key for key in sorted(keys) if not await self._write(key)]

    async def _write(self, key: ObjectKey) -> bool:
        found = own_status(self._workloads(), key, self._clock.now().wall_ms)
        return found is None or await write_status(self._space, key, *found)
