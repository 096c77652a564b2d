"""The controllers of a centre: what they decide is in the ledger, what they know in statuses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from controllers.core.notes import Notes
from controllers.finalizers import Finalizers
from controllers.index_keeper import IndexKeeper
from controllers.issuing import Issuer, first_start
from controllers.keys import KeysUnusable, load_or_make_keys
from controllers.mailbox_controller import MailboxController
from controllers.placement_translator import PlacementTranslator
from controllers.ports import CentreRelay, FinalizingSpace
from controllers.recovery import Recovery
from controllers.status_summarizer import StatusSummarizer
from controllers.where_resolver import WhereResolver
from relay.ports import Clock, Dice, Space
from schemas.records import Record

NOT_LISTED = "the space is not read yet"


class Controllers:
    """All reconcilers over one workload description space and one inventory space.

    `noted` hears what no status can say: a reason, what it is about, and why.
    The keys lie in `keys_folder`; the relay must have been made for their tree. Where a space has
    finalizers placements get one: their deletion is not to be missed.
    """

    def __init__(
        self,
        relay: CentreRelay,
        wds: Space,
        inventory: Space,
        clock: Clock,
        dice: Dice,
        keys_folder: Path,
        recovery: Recovery | None = None,
    ) -> None:
        self._relay = relay
        self.keys = load_or_make_keys(keys_folder, dice)
        if self.keys.tree != relay.tree:
            raise KeysUnusable(self.keys.path, "they are another tree's", "name the right folder")
        self.issuer = Issuer(relay, self.keys.signing, clock)
        self.recovery = recovery
        self._notes = recovery.notes if recovery is not None else Notes()
        self._index = IndexKeeper(self.issuer, clock)
        self.translator = PlacementTranslator(self.issuer, relay, wds, clock)
        self.translator.renew = self._index.renew
        self._index.swept = self.translator.forget_old
        self.mailboxes = MailboxController(self.issuer, inventory, clock)
        self._summarizer = StatusSummarizer(
            relay, wds, clock, self.translator, lambda: self.mailboxes.locations
        )
        self._where = WhereResolver(wds, clock, self.translator, self.mailboxes)
        self._finalizers: Finalizers | None = None
        if isinstance(wds, FinalizingSpace):
            self._finalizers = Finalizers(wds, clock, self.translator)
        self.translator.told = self._looked_at
        self.translator.sliced = self._where.look
        self.mailboxes.told = self._summarizer.look_at_all
        self.mailboxes.moved = self._where.look_at_all
        self.translator.notes = self.mailboxes.notes = self._notes
        self.issuer.told = self._issued
        self.noted: Callable[[str, str, str], None] = lambda _reason, _about, _why: None

    @property
    def errors(self) -> dict[str, str]:
        """What is wrong now, by object: `edgeplacement/shop`, `synctarget/s1`, `location/l1`."""
        workloads = self.translator.workloads
        found = {f"edgeplacement/{name}": text for name, text in workloads.invalid.items()}
        for name, text in workloads.renatured.invalid.items():
            found[f"denatured/{name}"] = text
        for name, text in self.translator.held.items():
            found[f"edgeplacement/{name}"] = text
        for name, faults in self.translator.faults.items():
            if faults:
                found[f"edgeplacement/{name}"] = "; ".join(str(fault) for fault in faults)
        return {**found, **self.mailboxes.errors}

    def unready(self) -> dict[str, str]:
        """What keeps each part from its work now, by name; "" if nothing does."""
        lost = self.recovery is not None and self.recovery.lost
        return {
            "ledger": "it was lost, and is read back from the children" if lost else "",
            "workloads": "" if self.translator.known else NOT_LISTED,
            "inventory": "" if self.mailboxes.known else NOT_LISTED,
        }

    async def caught_up(self) -> None:
        """Wait until what both spaces hold now is in the ledger; raises SpaceError."""
        await self.mailboxes.caught_up()
        await self.translator.caught_up()

    async def written(self, names: Iterable[str]) -> None:
        """Wait until the statuses of these placements say what the tree reports now."""
        await self._summarizer.written(names)

    async def start(self) -> None:
        """Issue what a new tree needs first; harmless on a later start. Raises KeysUnusable."""
        recovery = self.recovery
        lost = recovery is not None and recovery.looks_lost(self.issuer)
        await first_start(self.issuer, self._relay, self.keys, lost=lost)
        if recovery is not None and lost:
            await recovery.enrol(self.issuer)

    async def run(self) -> None:
        """Reconcile until cancelled; raises BusBroken when the run must start again."""
        await self.start()
        if self.recovery is not None:
            self.recovery.noted = self.noted
            await self.recovery.run(self.issuer, self._relay, self.keys)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._index.run(), name="index")
            group.create_task(self.translator.run(), name="placement translator")
            group.create_task(self.mailboxes.run(), name="mailbox controller")
            group.create_task(self._summarizer.run(), name="status summarizer")
            group.create_task(self._where.run(), name="where resolver")
            if self._finalizers is not None:
                group.create_task(self._finalizers.run(), name="finalizers")

    def _issued(self, records: Sequence[Record]) -> None:
        self.mailboxes.issued(records)
        self._notes.issued(max((record.generation for record in records), default=0))

    def _looked_at(self, names: Iterable[str]) -> None:
        held, there = self.translator.held, self.translator.workloads.objects
        for name in names:
            if name in held and name not in there:
                self.noted("RemovalHeld", f"edgeplacement/{name}", held[name])
        self._summarizer.look(names)
        self._where.look(names)
        if self._finalizers is not None:
            self._finalizers.look(names)
