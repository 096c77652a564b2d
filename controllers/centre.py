"""The controllers of a centre: what they decide is in the ledger, what they know in statuses."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

from controllers.core.inventory.make_before_break import GuardIndex
from controllers.core.workloads.space import Placement
from controllers.inventory.inventories import Inventories
from controllers.inventory.mailbox_controller import InventoryKey, MailboxController
from controllers.inventory.moves import Moves
from controllers.issuing.issuer import Issuer, open_issuer
from controllers.issuing.keys import CentreKeys, KeysUnusable, load_or_make_keys
from controllers.spaces.informer import SpaceReconciler
from controllers.work_queue import PlacementQueues, WorkQueue
from controllers.workloads.placement_translator import Note, PlacementTranslator
from controllers.workloads.workload_space import WorkloadSpace
from relay.ports import Clock, Dice
from relay.shell.centre_watch import CentreWatch
from relay.shell.publisher import CentrePublisher
from relay.space_errors import SpaceError
from relay.space_port import FinalizingSpace, Space
from schemas.objects.objects import ObjectKey
from schemas.records.placements import placement_of
from schemas.records.placing import grace_seconds, move_seconds
from schemas.records.records import DeltaHead, LocationRecord, NodeRecord, Profile, Record
from schemas.values.identity import MailKey

MASTERS_LOST = (
    "it is gone, and new keys are made: placements that nobody can read any more stay as they are "
    "everywhere until `leafcast accept` lets them go out anew; better restore it from a backup"
)
log = logging.getLogger("leafcast.controllers")

SEEN_SECONDS_MAX = 5.0
CONFIRMED_SECONDS = 60.0
"""So long a person's word lets removals go that come by what was written just now."""


class Controllers:
    """All reconcilers over workload description spaces and inventory spaces, of each at least one.

    Where a space has finalizers placements get one: their deletion is not to be missed.
    """

    def __init__(
        self,
        relay: CentrePublisher,
        issuer: Issuer,
        keys: CentreKeys,
        wds: Sequence[tuple[Space, PlacementQueues]],
        inventory: Sequence[tuple[Space, WorkQueue[InventoryKey]]],
        clock: Clock,
        note: Note,
    ) -> None:
        self.relay = relay
        self.keys = keys
        self._clock = clock
        self.issuer = issuer
        # The identities of the inventory spaces that are followed.
        spaces = self._inventory_spaces = set[str]()
        # Applies that ended, and that still hold what goes out.
        self._ended, self._some_ended = set[str](), asyncio.Event()
        self._queues: Sequence[WorkQueue[str] | WorkQueue[InventoryKey]] = [
            *(queues.translations for _, queues in wds),
            *(queue for _, queue in inventory),
        ]
        placements = self._placements = [queues for _, queues in wds]
        self._registrations = [queue for _, queue in inventory]
        self.inventories = [
            MailboxController(issuer, space, clock, queue, spaces, placements, self)
            for space, queue in inventory
        ]
        holds = GuardIndex(issuer.records)
        together = Inventories(self.inventories, holds)
        self.workload_spaces = [
            WorkloadSpace(relay, issuer, clock, space, queues, together, note)
            for space, queues in wds
        ]
        # There is one release for the whole tree: the first space says which.
        self.releases = self.workload_spaces[0].steer_releases()
        self._moves = Moves(relay, holds, self.inventories, self._move_seconds, clock)
        issuer.listen(self._moves.ledger_changed)
        # Who is told a space, first of inventories: profiles bring what deltas need.
        self._followers: list[SpaceReconciler[Any]] = [
            *self.inventories,
            *(one.translator for one in self.workload_spaces),
        ]
        # Those of the first spaces, of which commands speak.
        self.translator = self.workload_spaces[0].translator
        self.summarizer = self.workload_spaces[0].summarizer
        self.mailboxes = self.inventories[0]

    @classmethod
    async def open(
        cls,
        relay: CentrePublisher,
        wds: Space | Sequence[Space],
        inventory: Space | Sequence[Space],
        clock: Clock,
        dice: Dice,
        keys_folder: Path,
        note: Note = lambda _reason, _about, _why: None,
    ) -> Controllers:
        """Begin a new term, with the keys in the folder; the relay is of their tree.

        What a new tree needs first is issued when this returns. Raises KeysUnusable, BusBroken.
        """
        keys = load_or_make_keys(keys_folder, dice)
        if keys.tree != relay.tree:
            raise KeysUnusable(keys.path, "they are another tree's", "name the right folder")
        return await cls.begin(relay, wds, inventory, clock, dice, keys, note)

    @classmethod
    async def begin(
        cls,
        relay: CentrePublisher,
        wds: Space | Sequence[Space],
        inventory: Space | Sequence[Space],
        clock: Clock,
        dice: Dice,
        keys: CentreKeys,
        note: Note,
    ) -> Controllers:
        """The same, with keys of the relay's tree."""
        workloads = [
            (space, PlacementQueues(clock, finalizing=isinstance(space, FinalizingSpace)))
            for space in _all(wds)
        ]
        inventories = [(space, WorkQueue[InventoryKey](clock)) for space in _all(inventory)]

        def ledger_changed(records: Sequence[Record]) -> None:
            nodes = [record.path for record in records if isinstance(record, NodeRecord)]
            for _, registrations in inventories:
                registrations.add(nodes)
            heads = (record.source for record in records if isinstance(record, DeltaHead))
            names = [name for name in map(placement_of, heads) if name is not None]
            for _, queues in workloads:
                if queues.finalizers is not None:
                    queues.finalizers.add(names)

        issuer = await open_issuer(relay, keys, clock, dice, ledger_changed, note)
        profiles = (it for it in issuer.records.values() if isinstance(it, Profile))
        if not keys.sealing.seals and any(it.fleet_key for it in profiles):
            # The masters are lost: what they sealed is issued anew where a person lets it.
            keys.sealing.announce(dice)
            keys.sealing.use_announced()
            note("MastersLost", str(keys.sealing.path), MASTERS_LOST)
        await issuer.begin()
        return cls(relay, issuer, keys, workloads, inventories, clock, note)

    @property
    def watch(self) -> CentreWatch:
        """What notes how changes fare at the centre; applies tell it what they write."""
        return self.relay.watch

    @property
    def errors(self) -> dict[str, str]:
        """What is wrong now, by object: `edgeplacement/shop`, `synctarget/s1`, `location/l1`."""
        errors: dict[str, str] = {}
        for one in self.workload_spaces:
            errors |= one.errors
        for mailboxes in self.inventories:
            errors |= mailboxes.registry.errors
        return errors

    def queues(self) -> Iterator[tuple[str, WorkQueue[Any]]]:
        """All work queues by name; those of a second space and more have its number behind it."""
        for number, registrations in enumerate(self._registrations, 1):
            yield _numbered("inventory", number), registrations
        for number, queues in enumerate(self._placements, 1):
            for name, queue in queues.by_name().items():
                yield _numbered(name, number), queue

    def unready(self) -> dict[str, str]:
        """What keeps each part from its work now, by name; "" if nothing does."""
        workloads = (one.translator.unready for one in self.workload_spaces)
        inventory = (one.unready for one in self.inventories)
        return {
            "workloads": next(filter(None, workloads), ""),
            "inventory": next(filter(None, inventory), ""),
        }

    def lost_spaces(self) -> Mapping[str, Sequence[Record]]:
        """What spaces said that nobody follows any more, by their identities.

        It stays in force until a person lets it go. Nothing is known before all spaces were listed.
        """
        followed = {one.translator.placements.identity for one in self.workload_spaces}
        followed |= self._inventory_spaces
        lost: dict[str, list[Record]] = defaultdict(list)
        listed = [one.translator.placements.known for one in self.workload_spaces]
        if all(listed) and all(one.registry.known for one in self.inventories):
            for record in self.issuer.records.values():
                is_said = isinstance(record, DeltaHead | Profile | LocationRecord)
                if is_said and record.source.space not in followed:
                    lost[record.source.space].append(record)
        return lost

    async def accept_lost_space(self, space: str) -> int:
        """Let go of what a lost space said; how many records. Raises BusBroken.

        Places of its destinations are free at once, and nobody drops what is registered there anew.
        """
        records = self.lost_spaces().get(space, ())
        await self.issuer.delete([record.source.key for record in records])
        for mailboxes in self.inventories:
            mailboxes.look_at_all()
        return len(records)

    async def rotate_fleet(self, dice: Dice) -> None:
        """Seal all content with new keys; raises SpaceError, BusBroken.

        While a space cannot be asked nothing changes. Profiles bring the fleet key before deltas
        need it. What ends this later leaves a key that the next rotation, or the next start, goes
        on with: an edge that lacks a key keeps what it has until the key comes.
        """
        await self.caught_up()
        if not self.keys.sealing.changes:
            self.keys.sealing.announce(dice)
        for mailboxes in self.inventories:
            mailboxes.look_at_all()
            await mailboxes.caught_up()
        self.keys.sealing.use_announced()
        for one in self.workload_spaces:
            one.translator.look_at_all()
            await one.translator.caught_up()

    async def caught_up(self) -> None:
        """Wait until ledger and counts are of what all spaces hold now; raises SpaceError."""
        for follower in self._followers:
            await follower.caught_up()
        for mailboxes in self.inventories:
            # What waits for placements to be known, as at a start, or to hold it need not wait on.
            if mailboxes.look_at_deferred():
                await mailboxes.caught_up()
        await self.relay.published_handled()

    def confirm_removals(self, placement: str, copies: int) -> None:
        """Let so many copies of a placement of the first space go, whoever takes them, at once."""
        until = self._clock.now().wall_ms + int(CONFIRMED_SECONDS * 1000)
        self.issuer.confirmed.allow(self.translator.source(placement).key, copies, until)
        self.translator.look_at([placement])
        self.issuer.brakes.look_again()

    def objects_of(self, placement: MailKey) -> AbstractSet[ObjectKey]:
        """The objects that a placement has delivered; raises LookupError while nobody knows."""
        if not all(one.translator.placements.known for one in self.workload_spaces):
            raise LookupError(placement)
        for translator, name in self._holding(placement):
            return translator.placements.entries(name).keys()
        # Of a space that nobody follows any more: it has something, whatever that is.
        return frozenset({ObjectKey("", "", "", str(placement))})

    def grace_of(self, placement: MailKey) -> float | None:
        """How long what an edit takes of it waits; None: until it is accepted."""
        found = self._placement(placement)
        return grace_seconds(found.metadata.annotations) if found is not None else None

    def brakes_changed(self, placements: AbstractSet[MailKey]) -> None:
        """Have placements of which something is held, or let go, say so."""
        for key in placements:
            for translator, name in self._holding(key):
                translator.look_at([name])

    def _holding(self, key: MailKey) -> Iterator[tuple[PlacementTranslator, str]]:
        """The space of a placement, and its name there."""
        for one in self.workload_spaces:
            if (name := one.translator.name_of(key)) is not None:
                yield one.translator, name

    def pause(self, name: str) -> None:
        """Issue nothing until `resume`: objects come one by one that belong together.

        It ends by itself 5 s after it was said last, and after a minute in any case; till then
        removals wait that are under way.
        """
        self.issuer.pause(name)
        for queue in self._queues:
            queue.pause(name)

    def resume(self, name: str) -> None:
        """Go on once all that the spaces hold now is known; nobody has to wait for that."""
        self._ended.add(name)
        self._some_ended.set()

    async def _release_ended(self) -> None:
        """Let go on what was held, all of it that ended by now at once."""
        while True:
            await self._some_ended.wait()
            self._some_ended.clear()
            names, self._ended = self._ended, set()
            try:
                await self._seen()
            except* (SpaceError, TimeoutError):
                # What is not known in time goes on, too.
                log.warning("what an apply wrote is not seen yet, and goes out as it is known")
            for name in names:
                self.issuer.resume(name)
                for queue in self._queues:
                    queue.resume(name)

    async def _seen(self) -> None:
        """Wait until what all spaces hold now is known; raises SpaceErrors in a group."""
        # Each may take a second on a server that is quiet.
        async with asyncio.timeout(SEEN_SECONDS_MAX), asyncio.TaskGroup() as group:
            for follower in self._followers:
                group.create_task(follower.seen())

    @property
    def now_ms(self) -> int:
        """The centre's time."""
        return self._clock.now().wall_ms

    async def written(self, names: Iterable[str]) -> None:
        """Wait until the statuses of these placements say what the tree reports now."""
        listed = tuple(names)
        for one in self.workload_spaces:
            await one.summarizer.written(listed)

    async def run(self) -> None:
        """Reconcile until cancelled; raises BusBroken when the run must start again."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.issuer.run(), name="issuer")
            group.create_task(self._follow_counts(), name="counts")
            group.create_task(self._moves.run(), name="moves")
            group.create_task(self._release_ended(), name="ended applies")
            for mailboxes in self.inventories:
                group.create_task(mailboxes.run(), name="mailbox controller")
            for one in self.workload_spaces:
                group.create_task(one.run(), name="workload space")

    def _move_seconds(self, key: MailKey) -> float | None:
        """How long the move of a placement may take; raises LookupError while nobody knows."""
        if not all(one.translator.placements.known for one in self.workload_spaces):
            raise LookupError(key)
        found = self._placement(key)
        return move_seconds(found.metadata.annotations) if found is not None else None

    def _placement(self, key: MailKey) -> Placement | None:
        found = (one.translator.placement_at(key) for one in self.workload_spaces)
        return next((placement for placement in found if placement is not None), None)

    async def _follow_counts(self) -> None:
        while True:
            keys: frozenset[MailKey] = await self.relay.counts_changed()
            self._moves.counts_changed(keys)
            for one in self.workload_spaces:
                one.counts_changed(keys)


def _all(spaces: Space | Sequence[Space]) -> Sequence[Space]:
    return spaces if isinstance(spaces, Sequence) else (spaces,)


def _numbered(name: str, number: int) -> str:
    return name if number == 1 else f"{name}-{number}"
