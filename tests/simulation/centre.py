"""A simulated centre whose users write all into its spaces: the controllers say what follows.

The model is what they wrote. What the controllers make of it is read from the ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from controllers.core.inventory.make_before_break import is_hold
from controllers.core.translation.reading import read_arm
from relay.space_port import Object
from schemas.content import blobs
from schemas.content.blobs import MANIFEST, Reference
from schemas.content.manifest import ManifestEntry
from schemas.objects.objects import ObjectKey
from schemas.records.placements import bare_name, placement_of
from schemas.records.records import DeltaBody, DeltaHead
from schemas.records.signed_records import SignedRecord
from schemas.values import codec
from schemas.values.identity import ContentHash, MailKey
from tests.simulation.content import reachable, read_stored
from tests.simulation.customizing import form_of, kind_of
from tests.simulation.issuing import NONE
from tests.simulation.laws import ONLY_SIGNED
from tests.simulation.model import TIERS, WORKLOADS, Arm, Content, Placed, Rung, placement_key
from tests.simulation.process import CentreProcess
from tests.simulation.sealing import content_key, marked
from tests.simulation.space import now, written
from tests.simulation.world import LawBroken, World

if TYPE_CHECKING:
    from tests.simulation.steering import Steered


class Centre(CentreProcess):
    """Users write objects, placements and Rollouts, too."""

    def __init__(self, world: World) -> None:
        # How many contents there were, and what each of them says.
        self._contents = 0
        self._plains: dict[ContentHash, bytes] = {}
        # The newest version of each object that a placement has, or had, and each by its mark.
        self._newest: dict[ObjectKey, Content] = {}
        self._marked: dict[tuple[ObjectKey, str], Content] = {}
        # What the space wants of each placement; what the model has may be less far.
        self.wishes: dict[str, Placed] = {}
        self._steered: dict[str, Steered] = {}
        super().__init__(world)

    def begin(self) -> None:
        for steered in self._steered.values():
            steered.slept()
        super().begin()

    # What users do.

    def content(self, text: str, space: str = WORKLOADS) -> Content:
        """A new version of some object."""
        self._contents += 1
        plain = codec.canonical(written(text, self._contents))
        kind = kind_of(text)
        clear = Reference(kind, codec.address(kind, plain), len(plain))
        self._plains[clear.address] = plain
        return Content(space, self._contents, clear)

    def plain(self, content: Content) -> bytes:
        """What a content says."""
        return self._plains[content.reference.address]

    def lies_at(self, content: Content) -> ContentHash:
        """Where a content lies that is sealed under the first key of its placement."""
        kind = content.reference.kind
        return content_key(0).store(kind, self.plain(content)).reference.address

    def arm(self, contents: Mapping[ObjectKey, Content]) -> Arm:
        """What a placement of these objects gives."""
        listed = sorted(contents.items())
        named = codec.canonical([[str(key), it.reference.address] for key, it in listed])
        return Arm(Reference(MANIFEST, codec.address(MANIFEST, named), 0), tuple(listed))

    def put_placement(self, name: str, placed: Placed | None) -> None:
        """Write a placement and its objects, or delete it."""
        self.put_together({name: placed})

    def put_together(self, placements: Mapping[str, Placed | None]) -> None:
        """The same of several, in this order, as one `apply` says them."""
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
        """Users do something by which destinations may go back to what they had."""
        self.relapsed = int(now(self.workloads.revision()))

    def change_placement_key(self, name: str, *, crash: bool = False) -> None:
        """People give a placement another key; the process may crash once its file holds that."""
        self.model.key_changes[name] = self.model.key_changes.get(name, 0) + 1
        if crash:
            self.keys.sealing.renew(placement_key(name))
            self.world.root.stop(server_too=True)
            self.world.root.start()
            return
        self._controllers.translator.rotate_key(name)
        self._wrote()

    def copied(self) -> Callable[[], None]:
        """A copy of what people wrote of workloads; called, it is all that they wrote."""
        held, placements = self.workloads.copied(), dict(self.model.placements)
        wishes, newest = dict(self.wishes), dict(self._newest)

        def put_back() -> None:
            self.workloads.fall_back_to(held)
            self.model.placements = placements
            self.wishes, self._newest = wishes, newest

        return put_back

    def lose_spaces(self) -> None:
        super().lose_spaces()
        self.wishes.clear()
        self._newest.clear()

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

    def rollout_written(self, rollout: str, status: Object) -> None:
        for name, steered in self._steered.items():
            if bare_name(name) == rollout and status.get("phase"):
                steered.wrote(status)

    def counted(self, key: MailKey) -> None:
        for name, steered in self._steered.items():
            if placement_key(name) == key:
                steered.look()

    # What goes out.

    def publishing(
        self, signed: SignedRecord, brought: Mapping[ContentHash, bytes]
    ) -> SignedRecord:
        name, record = placement_of(signed.record.source) or "", signed.record
        if name in self._steered and isinstance(record, DeltaHead) and signed.body is not None:
            self.world.watcher.model_changed()
            self._in_force(name, self._gated(name, record, signed.body, brought))
            self.world.watcher.model_changed()
            self._steered[name].went_out()
        elif name in self.wishes and isinstance(record, DeltaHead):
            self._enter_holders(name, record)
        return super().publishing(signed, brought)

    def _enter_holders(self, name: str, head: DeltaHead) -> None:
        """A placement is meant for who holds it, too."""
        placed = self.model.placements[name]
        holders = tuple(each for each in head.alternatives if is_hold(each))
        meant = (*self.wishes[name].alternatives, *holders)
        if meant != placed.alternatives:
            self.world.watcher.model_changed()
            self._in_force(name, replace(placed, alternatives=meant))
            self.world.watcher.model_changed()

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

    # What the ledger says.

    def root_of(self, name: str, arm: Arm) -> str:
        """Where the manifest lies that gives a placement's destinations an arm."""
        root = self._root_of(name, arm)
        return root.address if root is not None else ""

    def leads_to(self, name: str, arm: Arm) -> set[str]:
        """The blobs of all that an arm gives."""
        root = self._root_of(name, arm)
        return reachable(self.world.root.streams.blobs, root) if root is not None else set()

    def is_collected(self, placed: Placed) -> bool:
        """Whether it is known over which content collectors are."""
        return not placed.is_rolled

    def _root_of(self, name: str, arm: Arm) -> Reference | None:
        if name in self._steered:
            return arm.root
        body = self._controllers.issuer.ledger.bodies.get(placement_key(name))
        return body.value.gates[-1].arm if body is not None else None
