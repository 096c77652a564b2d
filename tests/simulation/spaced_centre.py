"""A centre whose records come from spaces, by the real controllers; its books are what was issued.

It starts a desk for each run of the root's process, and tells a judge what is issued, what a space
showed, and what people let go.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence

from controllers.core.drafts import slot_of
from controllers.core.inventory import tombstone
from controllers.core.notes import Notes
from relay.adapters.memory.streams import MemoryStreams
from schemas.chunks import read_manifest_chunk, read_root
from schemas.identity import MailKey, NodePath
from schemas.objects import ObjectKey
from schemas.records import (
    DeltaHead,
    IndexRecord,
    LocationRecord,
    NodeRecord,
    Profile,
    Record,
)
from schemas.signing import Envelope
from tests.simulation.blind_space import BlindSpace, Object
from tests.simulation.centre import (
    INVENTORY,
    WORKLOADS,
    Arm,
    Books,
    Content,
    Located,
    Model,
    Placed,
    Target,
)
from tests.simulation.desk import Clerk, Desk, node_draft
from tests.simulation.recalling import open_blob
from tests.simulation.world import World

RESTART_SECONDS = 0.5


class Judge:
    """Hears of each change of what is in force before it is made; the removal oracle is one."""

    def issuing(self, key: str, record: Record, after: Model, *, anew: bool) -> None:
        """A record is about to come into force, and makes the model so."""

    def issued(self) -> None:
        """It is in force."""

    def seen(self, space: str, objects: Iterable[ObjectKey]) -> None:
        """A space was listed."""

    def heard(self, space: str, what: str, key: ObjectKey) -> None:
        """A watch told a change."""

    def read_back(self, records: Sequence[Record]) -> None:
        """These were read back."""

    def accepted(self, placement: str) -> None:
        """Someone let the removals of a placement go; without a name, those of the inventory."""


class SpacedCentre(Books, Clerk):
    """The centre of a tree whose users write objects into two spaces."""

    def __init__(self, world: World, other: dict[ObjectKey, Object]) -> None:
        super().__init__(world)
        self.workloads = BlindSpace(WORKLOADS, world.random, other)
        self.inventory = BlindSpace(INVENTORY, world.random, {})
        self.notes = Notes()
        self.enrolled: dict[str, str] = {}
        self.judge = Judge()
        self._placings: dict[tuple[MailKey, int], Placed] = {}
        self._backup: tuple[MemoryStreams, Notes] | None = None
        self.desk = self._new_desk()
        self.desk.begin()
        self.look()

    # The process.

    def look(self) -> None:
        """Begin a new run of the controllers wherever the last one ended."""
        if self.ready and not self.desk.here:
            self.desk = self._new_desk()
            self.world.note("centre", "controllers begin")
            self.desk.begin()
        self.world.after(RESTART_SECONDS, self.look)

    def end_run(self) -> None:
        """The controllers end; the relay's process stays."""
        self.desk.ended = True

    def lose_disk(self) -> None:
        """The root's streams are gone; its keys, its notes and its children's names are not."""
        children = dict(self.world.root.streams.children)
        self.world.root.stop(keep_disk=False)
        self._restart(children)

    def back_up(self) -> None:
        notes = Notes(self.notes.generation, self.notes.recovered)
        self._backup = copy.deepcopy(self.world.root.streams), notes

    def restore_backup(self, *, notes: bool) -> bool:
        """The root starts on an older copy of its disk, its notes with it or not."""
        if self._backup is None:
            return False
        children = dict(self.world.root.streams.children)
        self.world.root.stop(keep_disk=False)
        self.world.root.streams, kept = copy.deepcopy(self._backup)
        if notes:
            self.notes = Notes(kept.generation, kept.recovered)
        self._restart(children)
        return True

    def _restart(self, children: dict[str, str]) -> None:
        # The server starts with the accounts that it had, as far as a file beside it tells.
        self.enrolled = children
        self.world.root.streams.children = dict(children)
        self.world.root.start()

    def _new_desk(self) -> Desk:
        spaces = self.workloads, self.inventory
        return Desk(self.world.root, self.notes, self.enrolled, spaces, self)

    # What people do.

    def put_node(self, path: NodePath) -> None:
        self.desk.issue([node_draft(path, f"nkey{path}")])

    def remove_node(self, path: NodePath) -> None:
        record = self.desk.ledger.records.get(node_draft(path, "").slot)
        if isinstance(record, NodeRecord) and not record.deleted:
            self.desk.issue([tombstone("node", record)])

    def accept_one(self) -> None:
        """Let go what is held of a single placement, as it is shown."""
        held = sorted(self.desk.placements.held)
        if held:
            self._accept(self.world.random.choice(held))

    def accept(self) -> None:
        """Let go all that is held, as it is shown."""
        for name in sorted(self.desk.placements.held):
            self._accept(name)
        if any(name.endswith("/RemovalHeld") for name in self.desk.registry.errors):
            self.judge.accepted("")
            self.desk.accept_inventory()

    def _accept(self, name: str) -> None:
        shown = self.desk.placements.held[name]
        self.world.note("user", f"accepts for {name}: {shown}")
        self.judge.accepted(name)
        self.desk.accept(name)

    def go_on_without_missing(self) -> None:
        """Read back without children that there are no machines of, or that lost what they had.

        A disk that is empty cannot say so: it waits for the index of a centre that waits for it.
        """
        reading = self.desk.reading
        for name in sorted(reading.awaited) if reading.lost else ():
            host = self.world.hosts.get(NodePath((name,)))
            if host is None or (host.node and not host.node._state.inbox.remembers):
                self.world.note("user", f"goes on without {name}")
                reading.go_on_without(name)

    def withdraw_orphans(self) -> None:
        """Let the placements of the other space go."""
        for orphan in self.desk.orphans():
            if not orphan.here:
                self.judge.accepted(orphan.name)
                self.desk.withdraw(orphan)

    # The books.

    def entered(self, kind: str, record: Record, envelope: Envelope, *, anew: bool) -> None:
        key, after = slot_of(kind, record), self._changed(record)
        self.judge.issuing(key, record, after, anew=anew)
        self.model = after
        self.judge.issued()
        self.enter(key, record, envelope.encode(), envelope.bare().encode())
        if isinstance(record, IndexRecord):
            self._indexes[record.generation] = dict(self.desk_in_force())
        if isinstance(record, NodeRecord):
            self.desk.look_at_nodes([record])

    def desk_in_force(self) -> dict:
        """The placements in force by the books."""
        heads = ((k, r) for k, r in self.records.items() if isinstance(r, DeltaHead))
        return {key: head.generation for key, head in heads if not head.deleted}

    def read_back(self, records: Sequence[Record]) -> None:
        """What the ledger does not hold any more, no one ever saw: it is no longer asked for.

        What was lost so may come back with a backup that holds it.
        """
        ledger = self.desk.ledger.records
        kept = {key: ledger[key] for key in self.records if key in ledger}
        self.records = {**kept, **{key: ledger[key] for key in ledger if key not in kept}}
        model = Model()
        for record in self.records.values():
            model = self._changed(record, model)
        self.model = model
        self.judge.read_back(records)

    def seen(self, space: str, objects: Iterable[ObjectKey]) -> None:
        self.judge.seen(space, objects)

    def heard(self, space: str, what: str, key: ObjectKey) -> None:
        self.judge.heard(space, what, key)

    def _changed(self, record: Record, model: Model | None = None) -> Model:
        """The model with a record in force; what stays is shared with the one before."""
        now, name = copy.copy(model or self.model), record.source.name
        match record:
            case NodeRecord():
                now.nodes = {k: v for k, v in now.nodes.items() if k != record.path}
                if not record.deleted:
                    now.nodes[record.path] = record.nkey
            case Profile():
                now.targets = {k: v for k, v in now.targets.items() if k != name}
                if not record.deleted:
                    target = Target(name, record.path, tuple(sorted(record.labels.items())))
                    now.targets[name] = target
                    self.past.targets.setdefault(record.path, []).append(target)
            case LocationRecord():
                now.locations = {k: v for k, v in now.locations.items() if k != name}
                if not record.deleted and record.instance_selector is not None:
                    labels = tuple(sorted(record.labels.items()))
                    now.locations[name] = Located(labels, record.instance_selector)
                    self.past.locations.append(now.locations[name])
            case DeltaHead():
                now.placements = {k: v for k, v in now.placements.items() if k != name}
                if not record.deleted:
                    now.placements[name] = self._placed(record)
            case _:
                pass
        return now

    def _placed(self, head: DeltaHead) -> Placed:
        """What a head leads to, as it was issued: its content may be lost since."""
        about = head.source.key, head.generation
        if about not in self._placings:
            self._placings[about] = self._read(head)
        return self._placings[about]

    def _read(self, head: DeltaHead) -> Placed:
        root = self.world.root
        plain = open_blob(root, head.references[0])
        chunks = [open_blob(root, chunk) for chunk in read_root(plain or b"").chunks]
        entries = [entry for chunk in chunks for entry in read_manifest_chunk(chunk or b"")]
        contents = tuple(
            (entry.key, Content(entry.space, entry.revision, entry.reference)) for entry in entries
        )
        key = head.source.key
        for object_key, content in contents:
            self.contents[key, object_key, content.reference.address] = None
        placed = Placed(head.alternatives, Arm(head.references[0], contents))
        self.past.placements.setdefault(key, []).append(placed)
        return placed
