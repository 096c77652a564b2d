"""A centre whose users write all into its spaces: the real controllers say what follows from that.

The model is what they wrote. What the controllers make of it is read from the ledger.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from controllers.centre import Controllers
from controllers.core.ledger.ledger import Draft
from schemas.content.blobs import MANIFEST, Reference
from schemas.objects.objects import ObjectKey
from schemas.records.records import NodeRecord, Record
from schemas.values import codec
from tests.simulation.centre import Centre
from tests.simulation.clocks import HostClock
from tests.simulation.content import reachable
from tests.simulation.customizing import form_of
from tests.simulation.issuing import BookedPublisher
from tests.simulation.model import TIERS, Arm, Content, Placed, node_draft, placement_key
from tests.simulation.space import written
from tests.simulation.workloads import WorkloadsSpace
from tests.simulation.world import World


class DescribedCentre(Centre):
    """Users write objects, placements and inventory; the controllers run in its process."""

    def __init__(self, world: World) -> None:
        self.workloads = WorkloadsSpace(HostClock(world.root), world.dice)
        self.workloads.put_collectors()
        # The newest version of each object that a placement has, or had.
        self._newest: dict[ObjectKey, Content] = {}
        self._controllers: Controllers
        super().__init__(world)

    async def _open(self, publisher: BookedPublisher, clock: HostClock) -> None:
        spaces, dice = (self.workloads, self.inventory), self.world.dice
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
        for name in self.model.placements.keys() | self._controllers.translator.placements.held:
            self._controllers.translator.accept_removals(name)
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
            self.model.placements.pop(name, None)
            if placed is None:
                self.workloads.remove_placement(name)
                continue
            for key, content in placed.arm.contents:
                if self._newest.get(key) != content:
                    self._write(key, content)
            self._placed(name, placed)
            self.workloads.put_placement(name, placed)
        self._wrote()

    def _write(self, key: ObjectKey, content: Content) -> None:
        """All placements that have the object have this version of it."""
        self._newest[key] = content
        self.workloads.put_object(written(key.name, content.revision))
        for name, placed in self.model.placements.items():
            contents = dict(placed.arm.contents)
            if key in contents:
                self._placed(name, replace(placed, arm=self.arm({**contents, key: content})))

    def _placed(self, name: str, placed: Placed) -> None:
        """Enter what is wanted now in the books."""
        key = placement_key(name)
        self.model.placements[name] = placed
        self.past.placements.setdefault(key, []).append(placed)
        for object_key, content in placed.arm.contents:
            for tier in TIERS:
                form = form_of(content.reference, tier)
                self.contents[key, object_key, form] = None
                self.revisions[object_key, form] = content.revision

    def change_placement_key(self, name: str, *, crash: bool = False) -> None:
        self.model.key_changes[name] = self.model.key_changes.get(name, 0) + 1
        if crash:
            self.keys.sealing.renew(placement_key(name))
            self.world.root.stop(server_too=True)
            self.world.root.start()
            return
        self._controllers.translator.rotate_key(name)
        self._wrote()

    def hold(self, name: str) -> None:
        if self.world.ports.holds():
            self._controllers.pause(name)

    def release(self, name: str) -> None:
        self._controllers.resume(name)

    # What the ledger says.

    def root_of(self, name: str, _arm: Arm) -> str:
        root = self._root_of(name)
        return root.address if root is not None else ""

    def leads_to(self, name: str, _arm: Arm) -> set[str]:
        root = self._root_of(name)
        return reachable(self.world.root.streams.blobs, root) if root is not None else set()

    def _root_of(self, name: str) -> Reference | None:
        body = self._issuer.ledger.bodies.get(placement_key(name))
        return body.value.gates[-1].arm if body is not None else None
