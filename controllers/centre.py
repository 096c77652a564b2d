"""The controllers of a centre: what they decide is in the ledger, what they know in statuses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from controllers.core.notes import Notes
from controllers.core.recovery import Orphan
from controllers.index_keeper import IndexKeeper
from controllers.issuing import Issuer, first_start
from controllers.keys import KeysUnusable, load_or_make_keys
from controllers.mailbox_controller import MailboxController
from controllers.ports import CentreRelay
from controllers.recovery import Recovery
from controllers.workload_space import Inventories, WorkloadSpace
from relay.ports import Clock, Dice, Space
from schemas.records import Record

NOT_LISTED = "the space is not read yet"


class Controllers:
    """All reconcilers over workload description spaces and inventory spaces, of each at least one.

    `translator` and `mailboxes` are of the first ones, those that commands speak of.

    `noted` hears what no status can say: a reason, what it is about, and why.
    The keys lie in `keys_folder`; the relay must have been made for their tree. Where a space has
    finalizers placements get one: their deletion is not to be missed.
    """

    def __init__(
        self,
        relay: CentreRelay,
        wds: Space | Sequence[Space],
        inventory: Space | Sequence[Space],
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
        self._notes = notes = recovery.notes if recovery is not None else Notes()
        self._index = IndexKeeper(self.issuer, clock)
        self.inventories = [MailboxController(self.issuer, one, clock) for one in _all(inventory)]
        together = Inventories(self.inventories)
        self.workload_spaces = [
            WorkloadSpace(one, relay, self.issuer, clock, together, notes) for one in _all(wds)
        ]
        self.translator = self.workload_spaces[0].translator
        self.mailboxes = self.inventories[0]
        for one in self.workload_spaces:
            one.translator.renew = self._index.renew
            one.noted = self._note
        for mailboxes in self.inventories:
            mailboxes.told, mailboxes.moved = self._located, self._moved
            mailboxes.notes = notes
        self._index.swept = self._forget_old
        self.issuer.told = self._issued
        self.noted: Callable[[str, str, str], None] = lambda _reason, _about, _why: None

    @property
    def errors(self) -> dict[str, str]:
        """What is wrong now, by object: `edgeplacement/shop`, `synctarget/s1`, `location/l1`."""
        found: dict[str, str] = {}
        for one in self.workload_spaces:
            found |= one.errors
        for mailboxes in self.inventories:
            found |= mailboxes.errors
        return found

    def unready(self) -> dict[str, str]:
        """What keeps each part from its work now, by name; "" if nothing does."""
        lost = self.recovery is not None and self.recovery.lost
        workloads = all(one.translator.known for one in self.workload_spaces)
        inventory = all(one.known for one in self.inventories)
        return {
            "ledger": "it was lost, and is read back from the children" if lost else "",
            "workloads": "" if workloads else NOT_LISTED,
            "inventory": "" if inventory else NOT_LISTED,
        }

    def orphans(self) -> tuple[Orphan, ...]:
        """The placements in force that no object stands for, once all spaces are known."""
        # Whose a placement is cannot be told from a space that was not heard of yet.
        if not all(one.translator.identified for one in self.workload_spaces):
            return ()
        return self.translator.orphans()

    async def caught_up(self) -> None:
        """Wait until what all spaces hold now is in the ledger; raises SpaceError."""
        for mailboxes in self.inventories:
            await mailboxes.caught_up()
        for one in self.workload_spaces:
            await one.translator.caught_up()

    async def written(self, names: Iterable[str]) -> None:
        """Wait until the statuses of these placements say what the tree reports now."""
        listed = tuple(names)
        for one in self.workload_spaces:
            await one.summarizer.written(listed)

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
            group.create_task(self._listen(), name="summaries")
            for mailboxes in self.inventories:
                group.create_task(mailboxes.run(), name="mailbox controller")
            for one in self.workload_spaces:
                group.create_task(one.run(), name="workload space")

    async def _listen(self) -> None:
        while True:
            keys = await self._relay.summaries_changed()
            for one in self.workload_spaces:
                one.changed(keys)

    def _issued(self, records: Sequence[Record]) -> None:
        for mailboxes in self.inventories:
            mailboxes.issued(records)
        self._notes.issued(max((record.generation for record in records), default=0))

    def _forget_old(self) -> None:
        for one in self.workload_spaces:
            one.translator.forget_old()

    def _located(self) -> None:
        for one in self.workload_spaces:
            one.summarizer.look_at_all()

    def _moved(self) -> None:
        for one in self.workload_spaces:
            one.where.look_at_all()

    def _note(self, reason: str, about: str, why: str) -> None:
        self.noted(reason, about, why)


def _all(spaces: Space | Sequence[Space]) -> Sequence[Space]:
    return spaces if isinstance(spaces, Sequence) else (spaces,)
