"""The centre of a simulated tree: the real issuer and mailbox controller, on the root's publisher.

A start of the process is a new term. Inventory is written into a space, and registered from there.
For placements the model stands in for their space: what it wants otherwise than the ledger is
issued, and what it does not say any more is held until people let it go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import replace

from controllers.core.access.keys import KeyChange, KeyRing
from controllers.core.inventory.label_brakes import LabelBrakes, Weights
from controllers.core.ledger.ledger import Draft, same, values_of
from controllers.inventory.mailbox_controller import InventoryKey, MailboxController
from controllers.issuing.issuer import Issuer, open_issuer
from controllers.issuing.nodes import node_record
from controllers.work_queue import WorkQueue
from relay.ports import BusBroken
from schemas.content.blobs import Reference, StoredBlob
from schemas.content.manifest import build_manifest
from schemas.objects.objects import ObjectKey
from schemas.records.placements import placement_of
from schemas.records.records import DeltaHead, LocationRecord, NodeRecord, Record
from schemas.records.signing import Signer
from schemas.values import codec
from schemas.values.identity import ContentHash, KeyId, MailKey, NodePath, random_id
from tests.simulation.books import Books
from tests.simulation.clocks import HostClock
from tests.simulation.customizing import form_of, kind_of
from tests.simulation.inventory import InventorySpace
from tests.simulation.issuing import BookedPublisher
from tests.simulation.keys import first_ring
from tests.simulation.model import (
    ROOT_KEY,
    SCOPED,
    SIGNING_KEY,
    TIERS,
    TREE,
    WORKLOADS,
    Arm,
    Content,
    Located,
    Placed,
    Target,
    all_drafts,
    arms_of,
    keys_of,
    location_key,
    manifest_entry,
    node_draft,
    placement_draft,
    placement_key,
    programs_of,
)
from tests.simulation.sealing import content_key, nkey_of, ring_of
from tests.simulation.signatures import public_key_of
from tests.simulation.space import written
from tests.simulation.world import World

ANNOUNCED_SECONDS = 5.0
CAUGHT_UP_SECONDS = 0.5
"""So long after it was written inventory is registered, however much comes at once."""


def _no_rival(reason: str, about: str, detail: str) -> None:
    raise AssertionError(f"there is one centre: {reason} {about} {detail}")


class Weightless:
    """No removal weighs anything, so that none is held."""

    def objects_of(self, _placement: MailKey) -> frozenset[ObjectKey]:
        return frozenset()

    def grace_of(self, _placement: MailKey) -> float | None:
        return None

    def brakes_changed(self, _placements: AbstractSet[MailKey]) -> None:
        """Nothing is held."""


class Centre(Books):
    """Changes the model, and issues what follows."""

    def __init__(self, world: World) -> None:
        instant = world.root.instant()
        first = KeyRing(TREE, SIGNING_KEY, (ROOT_KEY,))
        super().__init__(world, first_ring(first, SCOPED, instant.wall_ms))
        # What the ledger holds and the model does not say, since the start.
        self.held: dict[MailKey, None] = {}
        self.terms: list[str] = []
        self._values: dict[str, Mapping[ContentHash, bytes]] = {}
        self._plains: dict[ContentHash, bytes] = {}
        # By address in clear, and after how many changes of the key.
        self._seals: dict[tuple[ContentHash, int], Reference] = {}
        self._revision = 0
        self._issuer: Issuer
        self._issuing = False
        # How often the fleet key changed, and places of which the nkey is not known.
        self._announced, self._keyless = 0, dict[NodePath, None]()
        self.inventory = InventorySpace(HostClock(world.root), world.dice)
        # Knows what removals weigh, from the next start on: without it none is held.
        self.weights: Weights | None = None
        self._mailboxes: MailboxController
        self._registrations: WorkQueue[InventoryKey]
        # How often people wrote inventory, and how much of that the ledger says.
        self._written = self._registered = 0
        # Where the process is to crash that changes keys; "" is nowhere.
        self._ends_at = ""
        world.centre_started = self.begin
        self.begin()

    # A start, and what it makes of the ledger.

    def begin(self) -> None:
        """Begin a new term on what the disk holds, and issue what the model wants otherwise."""
        root = self.world.root
        publisher = root.driver.publisher
        publisher.books = self
        self.world.finish(self._open(publisher, HostClock(root)))
        self.terms.append(self._issuer.ledger.term)
        root.run_beside(self._run(), "controllers")
        self._wrote()
        self._reconcile()

    async def _open(self, publisher: BookedPublisher, clock: HostClock) -> None:
        self._registrations = WorkQueue(clock)
        self._issuer = await open_issuer(
            publisher, self.keys, clock, self.world.dice, self._changed, _no_rival
        )
        await self._issuer.begin()
        self._mailboxes = MailboxController(
            self._issuer,
            self.inventory,
            clock,
            self._registrations,
            set(),
            placements=(),
            weights=self.weights or Weightless(),
        )

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._issuer.run(), name="issuer")
            group.create_task(self._mailboxes.run(), name="mailbox controller")

    def _changed(self, records: Sequence[Record]) -> None:
        """Have who hangs at nodes that changed registered anew."""
        self._registrations.add(it.path for it in records if isinstance(it, NodeRecord))

    def _wrote(self) -> None:
        """It goes out now, or in a moment if much comes at once; or once the process runs."""
        self._written += 1
        if self.ready:
            catching_up = self._catch_up(self._written)
            self.world.loop.run_ready(self.world.root.begin(catching_up, "catch up"))

    async def _catch_up(self, written: int) -> None:
        await self._caught_up()
        self._registered = max(self._registered, written)

    async def _caught_up(self) -> None:
        await self._mailboxes.caught_up()

    @property
    def behind(self) -> bool:
        """Whether people wrote what the ledger does not say yet."""
        return self._registered < self._written or self._has_deferred

    @property
    def _has_deferred(self) -> bool:
        """Whether a Location waits for a placement that is to hold it first."""
        if self.weights is None:
            return False
        records = (self.in_force.get(location_key(name)) for name in self.model.locations)
        said = [dict(it.labels) for it in records if isinstance(it, LocationRecord)]
        return said != [dict(it.labels) for it in self.model.locations.values()]

    @property
    def brakes(self) -> LabelBrakes:
        """What holds what edits of labels take."""
        return self._issuer.brakes

    @property
    def highest(self) -> int:
        """The highest generation that the ledger knows."""
        return self._issuer.ledger.highest

    @property
    def in_force(self) -> Mapping[MailKey, Record]:
        """What the ledger says."""
        return self._issuer.records

    def has_left(self, path: NodePath) -> bool:
        """Whether the ledger has no node at a path any more."""
        return node_record(self._issuer, path) is None

    def run_ahead(self, milliseconds: int) -> None:
        """Generations run ahead of the clock from now on, as after very many registrations."""
        self._issuer.ledger.raise_to(self.world.root.instant().wall_ms + milliseconds)

    def _reconcile(self) -> None:
        """Nodes and placements: inventory is registered by who follows its space."""
        ledger, wanted = self._issuer.ledger, {d.slot: d for d in self._wanted()}
        for key, draft in wanted.items():
            held = ledger.records.get(key)
            if not same(draft.record, held) or ledger.bodies.get(key) != draft.body:
                self._issue([draft])
        ours = (key for key, it in ledger.records.items() if self._is_ours(it))
        self.held = {key: None for key in ours if key not in wanted}

    def _wanted(self) -> Iterable[Draft]:
        return all_drafts(self.model)

    def _is_ours(self, record: Record) -> bool:
        """Whether what says it goes out by this centre's own hand."""
        return isinstance(record, DeltaHead | NodeRecord)

    @property
    def deleting(self) -> bool:
        """Whether snapshots list what people deleted, or the ledger is not what they wrote yet."""
        ledger = self._issuer.ledger
        unsaid = self._issuing or self.behind or ledger.deleted
        return bool(unsaid or self._issuer.lost or self.holds)

    @property
    def holds(self) -> bool:
        """Whether something stays that nothing says any more, until people let it go."""
        return bool(self.held) or any("RemovalHeld" in it for it in self._mailboxes.registry.errors)

    def accept(self) -> None:
        """People let go of what the model does not say any more, and of what the ledger lost."""
        self._do(self._issuer.delete(sorted(self.held)))
        self.held = {}
        self._issuer.forget_lost()
        self._mailboxes.accept_removals()
        self._wrote()

    def withdraw(self, term: str) -> None:
        """People let go of what a lost term issued."""
        self._issuer.withdraw(term)

    # What users do.

    def relapse(self) -> None:
        """Users do something by which destinations may go back to what they had."""
        self.relapsed = self._revision

    def admit_keys(self, path: NodePath, *numbers: int) -> None:
        """A node may come by any of these keys of its own, and by no other."""
        nkeys = " ".join(nkey_of(path, number) for number in numbers)
        self.model.nodes[path] = nkeys
        self._issue([node_draft(path, nkeys)])

    def put_node(self, path: NodePath, *, deleted: bool = False) -> None:
        nkey = nkey_of(path)
        self.model.nodes.pop(path, None)
        if deleted:
            self._delete(node_draft(path, nkey).slot)
        else:
            self.model.nodes[path] = nkey
            self._issue([node_draft(path, nkey)])

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

    def lose_inventory(self) -> None:
        """Another space is in its place, and it is empty."""
        self.model.targets.clear()
        self.model.locations.clear()
        self.inventory = InventorySpace(HostClock(self.world.root), self.world.dice)

    def release_hold(self, slot: MailKey, placement: MailKey) -> None:
        """Let go of what a record holds for a placement, as who follows its moves does."""
        self._mailboxes.release(slot, placement)

    def _unlocated(self, former: Located | None) -> None:
        """That a Location goes is no mail, so nobody waits for what it said of its destinations."""
        if former is not None and former.instances is not None and "tier" in dict(former.labels):
            for target in self.model.targets.values():
                if target.path in self.world.hosts:
                    self.world.watcher.drifted(self.world.hosts[target.path])

    def content(self, text: str, space: str = WORKLOADS) -> Content:
        """A new version of some object."""
        self._revision += 1
        plain = codec.canonical(written(text, self._revision))
        kind = kind_of(text)
        clear = Reference(kind, codec.address(kind, plain), len(plain))
        self._plains[clear.address] = plain
        return Content(space, self._revision, clear, self._sealed(clear, 0))

    def arm(self, contents: Mapping[ObjectKey, Content], changes: int = 0) -> Arm:
        """A manifest of these, all sealed under the key after so many changes."""
        held = tuple(
            (key, replace(it, sealed=self._sealed(it.reference, changes)))
            for key, it in sorted(contents.items())
        )
        stored = _manifest(held, changes)
        return Arm(stored[0].reference, held, changes)

    def root_of(self, _name: str, arm: Arm) -> str:
        """Where the manifest lies that gives a placement's destinations an arm."""
        return arm.root.address

    def is_collected(self, _placed: Placed) -> bool:
        """Whether it is known over which content collectors are."""
        return True

    def leads_to(self, _name: str, arm: Arm) -> set[str]:
        """The blobs of all that an arm gives."""
        return {arm.root.address, *(content.sealed.address for _, content in arm.contents)}

    def plain(self, content: Content) -> bytes:
        """What a content says."""
        return self._plains[content.reference.address]

    def _sealed(self, clear: Reference, changes: int) -> Reference:
        found = self._seals.get((clear.address, changes))
        if found is None:
            stored = content_key(changes).store(clear.kind, self._plains[clear.address])
            found = self._seals[clear.address, changes] = stored.reference
            self._values[found.address] = stored.values
        return found

    def put_placement(self, name: str, placed: Placed | None) -> None:
        """Put a placement in force, or delete it."""
        self.put_together({name: placed})

    def put_together(self, placements: Mapping[str, Placed | None]) -> None:
        """The same of several, in this order, as one `apply` says them."""
        for name, wanted in placements.items():
            key, before = placement_key(name), self.model.placements.pop(name, None)
            if wanted is None:
                self._delete(key)
                continue
            placed = self._sealed_anew(name, wanted)
            placed = replace(placed, rollout_since=self._steady(key)) if wanted.wave else placed
            self.model.placements[name] = placed
            self.past.placements.setdefault(key, []).append(placed)
            for arm in arms_of(placed):
                for object_key, content in arm.contents:
                    for tier in TIERS:
                        form = form_of(content.reference, tier)
                        self.contents[key, object_key, form] = None
                        self.revisions[object_key, form] = content.revision
            held = self._issuer.ledger.records.get(key)
            last_loss = held.last_loss if isinstance(held, DeltaHead) else 0
            loses = bool(keys_of(before) - keys_of(placed, common=True)) or (
                before is not None and before.alternatives != placed.alternatives
            )
            self._issue(
                [placement_draft(name, placed, self.model, loses=loses, last_loss=last_loss)]
            )

    def _sealed_anew(self, name: str, placed: Placed) -> Placed:
        """All of it under the newest key; what a rollout lets out stays under the one it has."""
        changes = self.model.key_changes.get(name, 0)
        if placed.wave or all(arm.changes == changes for arm in arms_of(placed)):
            return placed
        return replace(placed, arm=self.arm(dict(placed.arm.contents), changes))

    def _steady(self, key: MailKey) -> int:
        """With which generation a placement's rollout began."""
        held = self._issuer.ledger.records.get(key)
        return (held.rollout_since or held.generation) if isinstance(held, DeltaHead) else 1

    def hold(self, name: str) -> None:
        """An `apply` begins: nothing is settled before it is released, for 60 s at most."""
        if self.world.ports.holds():
            self._issuer.pause(name)

    def release(self, name: str) -> None:
        self._issuer.resume(name)

    # Issuing.

    def _with_content(self, draft: Draft) -> Draft:
        """All that a placement needs goes with it, also what was swept since it was said last."""
        placed = self.model.placements.get(placement_of(draft.record.source) or "")
        if draft.kind != "delta" or placed is None:
            return draft
        blobs: dict[ContentHash, bytes] = {}
        for arm in arms_of(placed):
            for _, content in arm.contents:
                blobs |= self._values[content.sealed.address]
            blobs |= values_of(*_manifest(arm.contents, arm.changes))
        if (programs := programs_of(placed)) is not None:
            blobs |= programs.values
        return replace(draft, blobs=blobs)

    def _issue(self, drafts: Sequence[Draft], delete: Iterable[MailKey] = ()) -> None:
        """What the process is ended amid is issued at its next start, if it is still wanted."""
        gone = list(delete)
        said = [self._with_content(draft) for draft in drafts]
        for key in (*gone, *(draft.slot for draft in said)):
            self.held.pop(key, None)
        if self.ready:
            self._do(self._issuer.issue(said, gone))

    def _do(self, coro: Coroutine[object, object, object]) -> None:
        """Have the centre's process do something; perhaps it ends amid that."""
        self._issuing = True
        with suppress(asyncio.CancelledError, BusBroken):
            self.world.finish(coro)
            self._issuer.assert_invariants()
        self._issuing = False

    # Sealing.

    def rotate_fleet(self) -> None:
        """People change the fleet key: profiles bring it, and then deltas need it."""
        self._announced += 1
        if self.world.ports.announces_first():
            self._announce()
            self.world.run(ANNOUNCED_SECONDS)
        else:
            self.world.after(ANNOUNCED_SECONDS, self._announce)
        self.model.rotations = self._announced
        for name, placed in self.model.placements.items():
            held = self._issuer.ledger.records[placement_key(name)]
            last_loss = held.last_loss if isinstance(held, DeltaHead) else 0
            self._issue([placement_draft(name, placed, self.model, last_loss=last_loss)])

    def change_placement_key(self, name: str, *, crash: bool = False) -> None:
        """People give a placement another key; the process may crash once its file holds that."""
        self.model.key_changes[name] = self.model.key_changes.get(name, 0) + 1
        placed = self.model.placements[name]
        if not crash:
            self.put_placement(name, placed)
            return
        self.model.placements[name] = self._sealed_anew(name, placed)
        self.world.root.stop(server_too=True)
        self.world.root.start()

    def forget_key(self, path: NodePath, *, known: bool = False) -> None:
        """The key of who hangs at a path is not known, or is again."""
        self._keyless.pop(path, None)
        if not known:
            self._keyless[path] = None
        self._announce()

    def _announce(self) -> None:
        """Have profiles bring the fleet key to all whose own keys are known."""
        self.keys.sealing.announced = ring_of(self._announced, map(nkey_of, self._keyless))
        if self.ready:
            self._mailboxes.look_at_all()
            self._wrote()

    # Keys.

    def change_keys(self, change: KeyChange, crash: str = "") -> None:
        """What people change of the keys; the process may crash once they are `kept` or `told`."""
        self._roots |= {root.key_id: root for root in change.made}
        self._ends_at = crash
        self._do(self._issuer.change_keys(change))
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

    def _delete(self, key: MailKey) -> None:
        if self.ready:
            self._do(self._issuer.delete([key]))


def change_keys(centre: Centre, what: str, crash: str = "") -> None:
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


def _manifest(contents: Iterable[tuple[ObjectKey, Content]], changes: int) -> list[StoredBlob]:
    entries = [manifest_entry(key, content) for key, content in contents]
    return build_manifest(entries, key=content_key(changes))
