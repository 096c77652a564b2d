"""A centre whose users write all into its spaces: the real controllers say what follows from that.

The model is what they wrote. What the controllers make of it is read from the ledger.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from controllers.centre import Controllers
from controllers.core.ledger.ledger import Draft
from controllers.core.translation.reading import read_arm
from relay.space_port import Object
from schemas.content import blobs
from schemas.content.blobs import MANIFEST, Reference
from schemas.content.manifest import ManifestEntry
from schemas.objects.objects import ObjectKey
from schemas.records.placements import bare_name, placement_of
from schemas.records.records import DeltaBody, DeltaHead, NodeRecord, Record
from schemas.records.signed_records import SignedRecord
from schemas.values import codec
from schemas.values.identity import ContentHash, MailKey
from tests.simulation.centre import Centre
from tests.simulation.clocks import HostClock
from tests.simulation.content import reachable, read_stored
from tests.simulation.customizing import form_of
from tests.simulation.issuing import BookedPublisher
from tests.simulation.laws import ONLY_SIGNED
from tests.simulation.model import (
    INVENTORY,
    TIERS,
    WORKLOADS,
    Arm,
    Content,
    Placed,
    Rung,
    node_draft,
    placement_key,
)
from tests.simulation.sealing import marked
from tests.simulation.space import now
from tests.simulation.workloads import WorkloadsSpace
from tests.simulation.world import LawBroken, World

if TYPE_CHECKING:
    from tests.simulation.steering import Steered

NONE: Mapping[ContentHash, bytes] = MappingProxyType({})


class DescribedCentre(Centre):
    """Users write objects, placements and inventory; the controllers run in its process."""

    def __init__(self, world: World) -> None:
        self.workloads = WorkloadsSpace(HostClock(world.root), world.dice)
        self.workloads.put_collectors()
        self.workloads.on_rollout = self._rollout_written
        # The newest version of each object that a placement has, or had, and each by its mark.
        self._newest: dict[ObjectKey, Content] = {}
        self._marked: dict[tuple[ObjectKey, str], Content] = {}
        # What the space wants of each placement; what the model has may be less far.
        self.wishes: dict[str, Placed] = {}
        self._steered: dict[str, Steered] = {}
        self._controllers: Controllers
        super().__init__(world)

    def begin(self) -> None:
        for steered in self._steered.values():
            steered.slept()
        super().begin()

    async def _open(self, publisher: BookedPublisher, clock: HostClock) -> None:
        door, dice = self.world.door, self.world.dice
        spaces = (door(WORKLOADS, self.workloads), door(INVENTORY, self.inventory))
        self._controllers = await Controllers.begin(
            publisher, *spaces, clock, dice, self.keys, self._noted
        )
        self._issuer, self._mailboxes = self._controllers.issuer, self._controllers.mailboxes

    async def _run(self) -> None:
        await self._controllers.run()

    def _noted(self, reason: str, about: str, why: str) -> None:
        assert reason != "SecondCentre", f"there is one centre: {about} {why}"
        self.world.note("centre", f"{reason} {about}: {why}")

    async def _caught_up(self) -> None:
        await self._controllers.caught_up()

    def _wanted(self) -> Iterable[Draft]:
        """Nodes alone are issued by hand."""
        return (node_draft(path, nkeys) for path, nkeys in self.model.nodes.items())

    def _is_ours(self, record: Record) -> bool:
        return isinstance(record, NodeRecord)

    @property
    def holds(self) -> bool:
        placements = self._controllers.translator.placements
        return super().holds or bool(placements.held or self.brakes.brake.held)

    def accept(self) -> None:
        super().accept()
        translator = self._controllers.translator
        for name in sorted({*self.wishes, *translator.placements.held}):
            translator.accept_removals(name)
        self._wrote()

    # What users do.

    def arm(self, contents: Mapping[ObjectKey, Content], changes: int = 0) -> Arm:
        listed = sorted(contents.items())
        named = codec.canonical([[str(key), it.reference.address] for key, it in listed])
        return Arm(Reference(MANIFEST, codec.address(MANIFEST, named), 0), tuple(listed), changes)

    def _sealed(self, clear: Reference, _changes: int) -> Reference:
        return clear

    def put_together(self, placements: Mapping[str, Placed | None]) -> None:
        for name, placed in placements.items():
            if name not in self._steered:
                self.model.placements.pop(name, None)
            self.wishes.pop(name, None)
            if placed is None:
                self.workloads.remove_placement(name)
                continue
            for key, content in placed.arm.contents:
                self._write(key, content)
            contents = {key: self._newest[key] for key, _ in placed.arm.contents}
            self._wish(name, replace(placed, arm=self.arm(contents)))
            self.workloads.put_placement(name, placed)
        self._wrote()

    def put_object(self, key: ObjectKey, content: Content) -> None:
        """An object is another in its space, whoever has it."""
        self._write(key, content)
        self._wrote()

    def _write(self, key: ObjectKey, content: Content) -> None:
        """All placements that have the object have this version of it."""
        newest = self._newest.get(key)
        if newest is not None and newest.reference == content.reference:
            return
        obj = codec.unpack(self.plain(content), blobs.OBJECT_MAX_BYTES)
        content = self._newest[key] = replace(content, revision=self.workloads.put_object(obj))
        self._marked[key, marked(content.reference)] = content
        for name, placed in self.wishes.items():
            contents = dict(placed.arm.contents)
            if key in contents:
                self._wish(name, replace(placed, arm=self.arm({**contents, key: content})))

    def _wish(self, name: str, placed: Placed) -> None:
        """Enter what a space wants of a placement: without a rollout it is in force."""
        self.wishes[name] = placed
        key, steered = placement_key(name), self._steered.get(name)
        for object_key, content in placed.arm.contents:
            for tier in TIERS:
                form = form_of(content.reference, tier)
                self.contents[key, object_key, form] = None
                self.revisions[object_key, form] = content.revision
        if steered is None:
            self._in_force(name, placed)
        else:
            steered.wished()

    def _in_force(self, name: str, placed: Placed) -> None:
        self.model.placements[name] = placed
        self.past.placements.setdefault(placement_key(name), []).append(placed)

    def relapse(self) -> None:
        self.relapsed = int(now(self.workloads.revision()))

    # Rollouts.

    def steer(self, name: str, steered: Steered, spec: Object) -> None:
        """A Rollout has a placement from now on."""
        self._steered[name] = steered
        self.ask(name, spec)

    def ask(self, name: str, spec: Object, request: str = "") -> None:
        """Write a Rollout, and what is asked of it."""
        self.workloads.put_rollout(bare_name(name), spec, request)
        self._wrote()

    def lose_status(self, name: str) -> None:
        """A Rollout, and the centre, do not know any more how far it was."""
        self.world.root.stop()
        self.workloads.lose_status(bare_name(name))
        self.world.root.start()

    def _rollout_written(self, rollout: str, status: Object) -> None:
        for name, steered in self._steered.items():
            if bare_name(name) == rollout and status.get("phase"):
                steered.wrote(status)

    def counted(self, key: MailKey) -> None:
        for name, steered in self._steered.items():
            if placement_key(name) == key:
                steered.look()

    def publishing(
        self, signed: SignedRecord, brought: Mapping[ContentHash, bytes]
    ) -> SignedRecord:
        name, record = placement_of(signed.record.source) or "", signed.record
        if name in self._steered and isinstance(record, DeltaHead) and signed.body is not None:
            self.world.watcher.model_changed()
            self._in_force(name, self._gated(name, record, signed.body, brought))
            self.world.watcher.model_changed()
            self._steered[name].went_out()
        return super().publishing(signed, brought)

    def _gated(
        self, name: str, head: DeltaHead, body: DeltaBody, brought: Mapping[ContentHash, bytes]
    ) -> Placed:
        """What a delta that a rollout steers gives to whom."""
        *newer, last = body.gates
        rungs = tuple(
            Rung(self.arm_at(name, it.arm, brought), it.name, it.below, it.selector, it.path)
            for it in newer
        )
        return Placed(
            head.alternatives,
            self.arm_at(name, last.arm, brought),
            salt=next((gate.salt for gate in newer if gate.salt), ""),
            rungs=rungs,
            wave=last.name,
            rollout_since=head.rollout_since,
        )

    def arm_at(
        self, name: str, root: Reference | None, brought: Mapping[ContentHash, bytes] = NONE
    ) -> Arm:
        """The content that lies there, in the store or in what is about to be."""
        assert root is not None
        stored = {**self.world.root.streams.blobs, **brought}
        keys = self.keys.sealing.ring.keys(placement_key(name))
        arm = read_stored(read_arm(root, keys), stored)
        assert arm is not None, f"{name}: nobody can read {root}"
        return Arm(root, tuple(self._contents_of(arm.entries)))

    def _contents_of(
        self, entries: Mapping[ObjectKey, ManifestEntry]
    ) -> Iterator[tuple[ObjectKey, Content]]:
        for key, entry in sorted(entries.items()):
            content = self._marked.get((key, entry.mark))
            if content is None:
                raise LawBroken(ONLY_SIGNED, f"{key} goes out as nobody ever wrote it")
            yield key, replace(content, revision=entry.revision)

    def change_placement_key(self, name: str, *, crash: bool = False) -> None:
        self.model.key_changes[name] = self.model.key_changes.get(name, 0) + 1
        if crash:
            self.keys.sealing.renew(placement_key(name))
            self.world.root.stop(server_too=True)
            self.world.root.start()
            return
        self._controllers.translator.rotate_key(name)
        self._wrote()

    # What the ledger says.

    def root_of(self, name: str, arm: Arm) -> str:
        root = self._root_of(name, arm)
        return root.address if root is not None else ""

    def leads_to(self, name: str, arm: Arm) -> set[str]:
        root = self._root_of(name, arm)
        return reachable(self.world.root.streams.blobs, root) if root is not None else set()

    def is_collected(self, placed: Placed) -> bool:
        return not placed.is_rolled

    def _root_of(self, name: str, arm: Arm) -> Reference | None:
        if name in self._steered:
            return arm.root
        body = self._issuer.ledger.bodies.get(placement_key(name))
        return body.value.gates[-1].arm if body is not None else None
