"""The process of a simulated tree's centre: the real controllers, on the root's publisher.

A start of it is a new term. What people write into its spaces outlives it. Nodes alone are issued
as commands have it: what the model says otherwise than the ledger is issued at the next start, and
what it does not say is held until people let it go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from dataclasses import replace

from controllers.centre import Controllers
from controllers.core.access.keys import KeyChange, KeyRing
from controllers.core.inventory.label_brakes import LabelBrakes
from controllers.core.ledger.ledger import same
from controllers.issuing.nodes import node_record
from relay.ports import BusBroken
from relay.space_port import Object
from schemas.records.records import LocationRecord, NodeRecord, Record
from schemas.records.signing import Signer
from schemas.values.identity import KeyId, MailKey, NodePath, random_id
from tests.simulation.books import Books
from tests.simulation.clocks import HostClock
from tests.simulation.inventory import InventorySpace
from tests.simulation.keys import first_ring
from tests.simulation.model import (
    INVENTORY,
    ROOT_KEY,
    SCOPED,
    SIGNING_KEY,
    TREE,
    WORKLOADS,
    Located,
    Target,
    location_key,
    node_draft,
)
from tests.simulation.sealing import WorldRing, nkey_of
from tests.simulation.signatures import public_key_of
from tests.simulation.workloads import WorkloadsSpace
from tests.simulation.world import World

CAUGHT_UP_SECONDS, STEP_SECONDS = 0.5, 0.5
"""So long after it was written inventory is registered, however much comes at once; so often it is
looked whether what people asked for is done."""
ANNOUNCED_SECONDS = 5.0
"""So late profiles bring a fleet key that deltas need already, where that fault is planted."""


class CentreProcess(Books):
    """Runs the controllers; people change nodes, inventory and keys."""

    def __init__(self, world: World) -> None:
        instant = world.root.instant()
        first = KeyRing(TREE, SIGNING_KEY, (ROOT_KEY,))
        super().__init__(world, first_ring(first, SCOPED, instant.wall_ms))
        # Nodes that the ledger holds and the model does not say, since the start.
        self.held: dict[MailKey, None] = {}
        self.terms: list[str] = []
        self.workloads, self.inventory = self._new_spaces()
        self._controllers: Controllers
        self._issuing = False
        # Places of which the nkey is not known.
        self._keyless: dict[NodePath, None] = {}
        # How often people wrote something, and how much of that the ledger says.
        self._written = self._registered = 0
        # Where the process is to crash that changes keys; "" is nowhere.
        self._ends_at = ""
        world.centre_started = self.begin
        self.begin()

    def _new_spaces(self) -> tuple[WorkloadsSpace, InventorySpace]:
        clock, dice = HostClock(self.world.root), self.world.dice
        workloads = WorkloadsSpace(clock, dice)
        workloads.put_collectors()
        workloads.on_rollout = self.rollout_written
        return workloads, InventorySpace(clock, dice)

    def rollout_written(self, rollout: str, status: Object) -> None:
        """A Rollout gets this status."""

    # A start, and what it makes of the ledger.

    def begin(self) -> None:
        """Begin a new term on what the disk holds, and issue what the model wants otherwise."""
        root = self.world.root
        root.driver.publisher.books = self
        self.world.finish(self._open())
        self.terms.append(self._controllers.issuer.ledger.term)
        root.run_beside(self._controllers.run(), "controllers")
        self._wrote()
        self._reconcile()

    async def _open(self) -> None:
        root, door = self.world.root, self.world.door
        spaces = (door(WORKLOADS, self.workloads), door(INVENTORY, self.inventory))
        self._controllers = await Controllers.begin(
            root.driver.publisher,
            *spaces,
            HostClock(root),
            self.world.dice,
            self.keys,
            self._noted,
        )

    def _noted(self, reason: str, about: str, why: str) -> None:
        assert reason != "SecondCentre", f"there is one centre: {about} {why}"
        self.world.note("centre", f"{reason} {about}: {why}")

    def _reconcile(self) -> None:
        """Nodes: what else the spaces say the controllers issue."""
        ledger, said = self._controllers.issuer.ledger, set[MailKey]()
        for path, nkeys in self.model.nodes.items():
            draft = node_draft(path, nkeys)
            said.add(draft.slot)
            if not same(draft.record, ledger.records.get(draft.slot)):
                self._put_node(path, nkeys)
        nodes = (key for key, it in ledger.records.items() if isinstance(it, NodeRecord))
        self.held = {key: None for key in nodes if key not in said}

    def _wrote(self) -> None:
        """It goes out now, or in a moment if much comes at once; or once the process runs."""
        self._written += 1
        if self.ready:
            catching_up = self._catch_up(self._written)
            self.world.loop.run_ready(self.world.root.begin(catching_up, "catch up"))

    async def _catch_up(self, written: int) -> None:
        await self._controllers.caught_up()
        self._registered = max(self._registered, written)

    def _do(self, coro: Coroutine[object, object, object]) -> None:
        """Have the centre's process do something; perhaps it ends amid that."""
        self._issuing = True
        with suppress(asyncio.CancelledError, BusBroken):
            self.world.finish(coro)
            self._controllers.issuer.assert_invariants()
        self._issuing = False

    def _until_done(self, coro: Coroutine[object, object, None]) -> None:
        """Let time pass until the centre's process has done something, or has ended."""
        task = self.world.root.begin(coro, "asked")
        while not task.done():
            self.world.run(STEP_SECONDS)

    # What it says.

    @property
    def behind(self) -> bool:
        """Whether people wrote what the ledger does not say yet."""
        return self._registered < self._written or self._has_deferred

    @property
    def _has_deferred(self) -> bool:
        """Whether a Location waits for a placement that is to hold it first."""
        records = (self.in_force.get(location_key(name)) for name in self.model.locations)
        said = [dict(it.labels) for it in records if isinstance(it, LocationRecord)]
        return said != [dict(it.labels) for it in self.model.locations.values()]

    @property
    def brakes(self) -> LabelBrakes:
        """What holds what edits of labels take."""
        return self._controllers.issuer.brakes

    @property
    def highest(self) -> int:
        """The highest generation that the ledger knows."""
        return self._controllers.issuer.ledger.highest

    @property
    def in_force(self) -> Mapping[MailKey, Record]:
        """What the ledger says."""
        return self._controllers.issuer.records

    def has_left(self, path: NodePath) -> bool:
        """Whether the ledger has no node at a path any more."""
        return node_record(self._controllers.issuer, path) is None

    @property
    def deleting(self) -> bool:
        """Whether snapshots list what people deleted, or the ledger is not what they wrote yet."""
        issuer = self._controllers.issuer
        unsaid = self._issuing or self.behind or issuer.ledger.deleted
        return bool(unsaid or issuer.lost or self.holds)

    @property
    def holds(self) -> bool:
        """Whether something stays that nothing says any more, until people let it go."""
        placements = self._controllers.translator.placements
        errors = self._controllers.mailboxes.registry.errors
        held = self.held or placements.held or self.brakes.brake.held
        return bool(held) or any("RemovalHeld" in it for it in errors)

    # What people do.

    def accept(self) -> None:
        """Let go of what nothing says any more, and of what the ledger lost."""
        controllers, translator = self._controllers, self._controllers.translator
        self._do(controllers.issuer.delete(sorted(self.held)))
        self.held = {}
        controllers.issuer.forget_lost()
        controllers.mailboxes.accept_removals()
        for name in sorted({*translator.workloads.placements, *translator.placements.held}):
            translator.accept_removals(name)
        self._wrote()

    def withdraw(self, term: str) -> None:
        """Let go of what a lost term issued."""
        self._controllers.issuer.withdraw(term)

    def run_ahead(self, milliseconds: int) -> None:
        """Generations run ahead of the clock from now on, as after very many registrations."""
        ahead = self.world.root.instant().wall_ms + milliseconds
        self._controllers.issuer.ledger.raise_to(ahead)

    def hold(self, name: str) -> None:
        """An `apply` goes on: nothing goes out before it is released, for 5 s at most."""
        if self.world.ports.holds():
            self._controllers.pause(name)

    def release(self, name: str) -> None:
        self._controllers.resume(name)
        self._wrote()

    # Nodes and inventory.

    def admit_keys(self, path: NodePath, *numbers: int) -> None:
        """A node may come by any of these keys of its own, and by no other."""
        self.model.nodes[path] = " ".join(nkey_of(path, number) for number in numbers)
        self._put_node(path, self.model.nodes[path])

    def put_node(self, path: NodePath, *, deleted: bool = False) -> None:
        nkey = nkey_of(path)
        self.model.nodes.pop(path, None)
        if not deleted:
            self.model.nodes[path] = nkey
            self._put_node(path, nkey)
        elif self.ready:
            self._do(self._controllers.issuer.delete([node_draft(path, nkey).slot]))

    def _put_node(self, path: NodePath, nkeys: str) -> None:
        """What the process is ended amid is issued at its next start, if it is still wanted."""
        draft = node_draft(path, nkeys)
        self.held.pop(draft.slot, None)
        if self.ready:
            self._do(self._controllers.issuer.issue([draft], []))

    def put_target(self, target: Target, *, deleted: bool = False) -> None:
        """A destination, or none any more; where it hung with all, its node goes in the same."""
        before = self.model.targets.pop(target.name, None)
        if deleted:
            self.inventory.remove("synctargets", target.name)
            self._wrote()
            return
        target = replace(target, uid=self.inventory.put_target(target))
        self.model.targets[target.name] = target
        self.past.targets.setdefault(target.path, []).append(target)
        left = before.path if before and before.path != target.path else None
        carried = before is not None and target.moved_from != before.moved_from
        if left is not None and carried:
            self.model.nodes.pop(left, None)
        self._wrote()

    def put_location(self, name: str, located: Located | None) -> None:
        former = self.model.locations.pop(name, None)
        if located is None:
            self._unlocated(former)
            self.inventory.remove("locations", name)
            self._wrote()
            return
        self.model.locations[name] = located
        self.past.locations.setdefault(name, []).append(located)
        self.inventory.put_location(name, located)
        self._wrote()

    def _unlocated(self, former: Located | None) -> None:
        """That a Location goes is no mail, so nobody waits for what it said of its destinations."""
        if former is not None and former.instances is not None and "tier" in dict(former.labels):
            for target in self.model.targets.values():
                if target.path in self.world.hosts:
                    self.world.watcher.drifted(self.world.hosts[target.path])

    def lose_spaces(self) -> None:
        """Others are in their places, and they are empty."""
        for said in (self.model.targets, self.model.locations, self.model.placements):
            said.clear()
        self.workloads, self.inventory = self._new_spaces()

    # Keys.

    def rotate_fleet(self) -> None:
        """People change the fleet key: profiles bring it, and then deltas need it."""
        controllers, sealing, dice = self._controllers, self.keys.sealing, self.world.dice
        if self.world.ports.announces_first():
            self._until_done(controllers.rotate_fleet(dice))
            return
        sealing.announce(dice)
        sealing.use_announced()
        controllers.translator.look_at_all()
        self.world.after(ANNOUNCED_SECONDS, controllers.mailboxes.look_at_all)
        self._wrote()

    def forget_key(self, path: NodePath, *, known: bool = False) -> None:
        """The key of who hangs at a path is not known, or is again."""
        self._keyless.pop(path, None)
        if not known:
            self._keyless[path] = None
        sealing, keyless = self.keys.sealing, frozenset(map(nkey_of, self._keyless))
        assert isinstance(sealing.announced, WorldRing)
        sealing.announced = replace(sealing.announced, keyless=keyless)
        self._controllers.mailboxes.look_at_all()
        self._wrote()

    def change_keys(self, change: KeyChange, crash: str = "") -> None:
        """What people change of the keys; the process may crash once they are `kept` or `told`."""
        self._roots |= {root.key_id: root for root in change.made}
        self._ends_at = crash
        self._do(self._controllers.issuer.change_keys(change))
        self._ends_at = ""
        if not self.ready:
            self.world.root.start()

    def kept_keys(self, where: str) -> None:
        """End the process if it is to crash just here."""
        if self._ends_at == where:
            self.world.root.stop(server_too=True)
            raise asyncio.CancelledError

    def new_key(self) -> Signer:
        """A key that nobody had before."""
        random = self.world.random
        return Signer(TREE, KeyId(random_id(random.randbytes(16))), random.randbytes(32))


def change_keys(centre: CentreProcess, what: str, crash: str = "") -> None:
    """Rotate the signing key or the root, or revoke the signing key."""
    made = centre.new_key()
    match what:
        case "root":
            change = KeyChange(roots={made.key_id: public_key_of(made)}, made=(made,))
        case "revoke":
            change = KeyChange(signing=made, revoked=centre.ring.signing.key_id)
        case _:
            change = KeyChange(signing=made)
    centre.change_keys(change, crash)
