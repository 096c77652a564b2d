"""One workload description space of a centre: the reconcilers that work on it, wired together."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping

from controllers.core.workloads.own_statuses import own_status
from controllers.inventory.inventories import Inventories
from controllers.issuing.issuer import Issuer
from controllers.spaces.status_writing import put_status
from controllers.work_queue import ALL, PlacementQueues
from controllers.workloads.finalizers import Finalizers
from controllers.workloads.placement_translator import Note, PlacementTranslator
from controllers.workloads.queue_reconciler import QueueReconciler
from controllers.workloads.release_controller import ReleaseController
from controllers.workloads.rollouts import RolloutController
from controllers.workloads.status_summarizer import StatusSummarizer
from controllers.workloads.where_resolver import WhereResolver
from relay.ports import Clock
from relay.shell.publisher import CentrePublisher
from relay.space_port import FinalizingSpace, Space
from schemas.objects.objects import ObjectKey
from schemas.records.placements import title
from schemas.values.identity import MailKey


class WorkloadSpace:
    """The reconcilers of one space; `note` hears what no status can say."""

    def __init__(
        self,
        relay: CentrePublisher,
        issuer: Issuer,
        clock: Clock,
        space: Space,
        queues: PlacementQueues,
        inventories: Inventories,
        note: Note,
    ) -> None:
        self._queues = queues
        self.translator = PlacementTranslator(issuer, relay, space, clock, queues, note)
        self.summarizer = StatusSummarizer(self.translator, queues.statuses, inventories)
        self._reconcilers: list[QueueReconciler[str] | QueueReconciler[ObjectKey]] = [
            self.summarizer,
            WhereResolver(self.translator, queues.slices, inventories),
            OwnStatuses(self.translator, queues.own_statuses),
            RolloutController(self.translator, queues.rollouts),
        ]
        self._releases: ReleaseController | None = None
        if isinstance(space, FinalizingSpace) and queues.finalizers is not None:
            self._reconcilers.append(Finalizers(self.translator, queues.finalizers, space))

    def steer_releases(self) -> ReleaseController:
        """Have this space say which release of Leafcast the tree runs."""
        self._releases = ReleaseController(self.translator, self._queues.releases)
        self._reconcilers.append(self._releases)
        return self._releases

    @property
    def errors(self) -> Mapping[str, str]:
        """What is wrong now, by object: `edgeplacement/shop`, `statuscollector/ready`."""
        workloads = self.translator.workloads
        found = {title(name): text for name, text in workloads.invalid.items()}
        for word, invalid in (
            ("denatured", workloads.renatured.invalid),
            ("statuscollector", workloads.collectors.invalid),
            ("healthrule", workloads.health_rules.invalid),
            ("customtransform", workloads.transforms.invalid),
        ):
            found |= {f"{word}/{name}": "; ".join(texts) for name, texts in invalid.items()}
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
            for reconciler in self._reconcilers:
                group.create_task(reconciler.run(), name=type(reconciler).__name__)

    def counts_changed(self, keys: Collection[MailKey]) -> None:
        """Look again at those placements of this space whose counts changed."""
        found = (self.translator.name_of(key) for key in keys)
        names = frozenset(name for name in found if name is not None)
        self._queues.statuses.add(names)
        self._queues.rollouts.add(self.translator.workloads.rollouts.steering(names))
        if self._releases is not None and self._releases.key in keys:
            self._queues.releases.add([ALL])


class OwnStatuses(QueueReconciler[ObjectKey]):
    """Has objects of a space that only the centre reads say in their own status what is wrong."""

    async def _settle(self, key: ObjectKey) -> bool:
        found = own_status(self._translator.workloads, key, self._clock.now().wall_ms)
        return found is None or await put_status(self._space, key, *found) is None
