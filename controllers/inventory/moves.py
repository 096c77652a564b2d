"""Moves that make before they break: lets go of who loses a placement once who gains it is well."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from controllers.core.inventory.make_before_break import GATHER_SECONDS, GuardIndex, HealthBaseline
from controllers.inventory.mailbox_controller import MailboxController
from controllers.work_queue import WorkQueue
from relay.ports import Clock
from relay.shell.publisher import CentrePublisher
from schemas.records.records import DeltaHead, Record
from schemas.values.identity import MailKey


@dataclass(eq=False)
class Moves:
    """The reconciler of placements that move so, by mail key; `HealthBaseline` decides."""

    _relay: CentrePublisher
    _holds: GuardIndex
    _inventories: Sequence[MailboxController]
    # How long a placement's move may take; None of what does not move so. It raises LookupError
    # while nobody knows.
    _deadline_of: Callable[[MailKey], float | None]
    _clock: Clock

    def __post_init__(self) -> None:
        self._queue: WorkQueue[MailKey] = WorkQueue(self._clock)
        self._usual: dict[MailKey, HealthBaseline] = {}

    def ledger_changed(self, records: Sequence[Record]) -> None:
        """Take records that came into force, or left it."""
        self._queue.add(self._holds.changed(records))
        heads = (record for record in records if isinstance(record, DeltaHead))
        self._queue.add(head.source.key for head in heads if head.source.key in self._holds)

    def counts_changed(self, keys: Iterable[MailKey]) -> None:
        """Look again at those of these placements that move so."""
        self._queue.add(key for key in keys if key in self._holds or self._moves(key))

    async def run(self) -> None:
        """Reconcile until cancelled."""
        self._queue.add(self._holds.placements())
        await self._queue.work(self.reconcile)

    async def reconcile(self, keys: frozenset[MailKey]) -> frozenset[MailKey]:
        """Let go of what is held for these and need not be any more."""
        for key in keys:
            try:
                deadline = self._deadline_of(key)
            except LookupError:
                self._queue.add_later(key, GATHER_SECONDS)
                continue
            self._look(key, deadline)
        return frozenset()

    def _look(self, key: MailKey, deadline: float | None) -> None:
        now, count = self._clock.now(), self._relay.count(key)
        held = self._holds.of(key)
        seen = None
        if count is not None and count.exact:
            healthy = count.summary.health.get("healthy", 0)
            seen = count.summary.destinations - healthy, healthy
        if deadline is None:
            self._usual.pop(key, None)
            self._release(key, held)
            return
        usual = self._usual.get(key)
        if not held:
            if seen is not None:
                usual = usual or HealthBaseline(seen[0], now.seconds, seen[1])
                self._usual[key] = usual.seen(*seen, now.seconds, deadline)
            return
        late = [slot for slot, since in held.items() if now.wall_ms >= since + deadline * 1000]
        gathered = now.wall_ms >= max(held.values()) + GATHER_SECONDS * 1000
        if gathered and seen is not None and self._may_end(key, *seen):
            late = list(held)
        self._release(key, late)
        if len(late) < len(held):
            self._queue.add_later(key, GATHER_SECONDS)

    def _may_end(self, key: MailKey, unwell: int, healthy: int) -> bool:
        """Whether those who keep it may lose it; who they are is looked up where it may matter."""
        usual = self._usual.get(key, HealthBaseline(0, 0.0, 0))
        return unwell <= usual.unwell and usual.allows(unwell, healthy, self._holds.keepers(key))

    def _release(self, key: MailKey, slots: Iterable[MailKey]) -> None:
        for slot in slots:
            for mailboxes in self._inventories:
                mailboxes.release(slot, key)

    def _moves(self, key: MailKey) -> bool:
        try:
            return self._deadline_of(key) is not None
        except LookupError:
            return False
