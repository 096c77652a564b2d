"""What follows from a record that is believed: whom else it concerns, and what is forgotten."""

from __future__ import annotations

from collections.abc import Iterable

from relay.core.book import Held, bare_of, is_delta, regrouped, to_keep
from relay.core.children import INDEX_TO_EDGE_SECONDS, Child
from relay.core.effects import AddChild, Noted, RemoveChild, StoreOwn
from relay.core.index import Unknown
from relay.core.mailbox import Mailbox
from relay.core.state import State
from relay.core.turns import Send
from schemas.chunks import read_root
from schemas.identity import INDEX_KEY, KEYS_KEY, MailKey
from schemas.records import DeltaHead, IndexRecord, KeysRecord, LocationRecord, NodeRecord, Profile

INDEX_ROOT, INDEX_CHUNKS = "index/root", "index/chunks"


class Accepting:
    """Puts records in force at one node; the same for what the centre issues and what arrives."""

    def __init__(self, state: State) -> None:
        self._state = state

    def put(self, held: Held) -> None:
        """Put an accepted record in force, in place of the one before."""
        state = self._state
        former = state.held.get(held.key)
        sure = state.is_root or state.inbox.remembers
        held = regrouped(held, former, sure=sure and not state.mailboxes.paused)
        state.hold(held)
        match held.record:
            case _ if is_delta(held):
                self._put_delta(held)
            case Profile() as record:
                self._put_profile(held, record, former)
            case LocationRecord() as record:
                self._put_location(held, record)
            case NodeRecord() as record:
                self._put_node(held, record)
            case KeysRecord() as record:
                state.inbox.trust.adopt(record)
                self._mark_all(held)
            case IndexRecord():
                self._put_index(held)
            case _:
                state.let_go(held.key)
        state.bury(held)

    def bare(self, held: Held, *, unmeant: bool) -> None:
        """The parent says that a delta held with its body is (not) meant for this subtree."""
        state = self._state
        if (held.key in state.unmeant) == unmeant:
            return
        if unmeant:
            state.unmeant[held.key] = None
        else:
            state.unmeant.pop(held.key)
        self._spread(held)

    def refresh_all(self) -> None:
        """Look at every record and every child that it may concern: at the start."""
        state = self._state
        for held in state.held.values():
            for child in self._may_concern(held):
                state.mailboxes.mark(child, held.key, held.order)
        for child in state.mailboxes.boxes:
            state.mailboxes.flush(child)

    def _may_concern(self, held: Held) -> Iterable[str]:
        state, path = self._state, self._state.config.path
        match held.record:
            case Profile() as record:
                goes = [path.step_towards(record.path)]
            case NodeRecord() as record:
                goes = [None if record.path.is_root else path.step_towards(record.path.parent)]
            case LocationRecord():
                goes = list(state.where.children_of_location(held.key))
            case IndexRecord():
                return ()
            case _:
                return state.mailboxes.boxes
        named = [child for child in goes if child is not None]
        return [*named, *self._having(held.key, named)]

    def forget_if_done(self, key: MailKey) -> None:
        """Let go of a record that is deleted, or not meant, once nothing of it is left below."""
        state = self._state
        held = state.held.get(key)
        if held is None or state.is_root or not self.is_gone(held):
            return
        if held.generation > state.index.generation:
            # Only a newer index, in its place, refuses what was in force before it.
            if held.key in state.unmeant and not held.opaque:
                # Its head will do: the parent tells no more of what it had answered for as gone.
                bare = bare_of(held)
                state.hold(bare)
                state.unmeant.pop(key)
                state.out.append(to_keep(bare, state.inbox.incarnation))
            return
        state.let_go(key)
        state.where.set_delta(key, None)
        state.forget_supply(key)
        state.reporting.forget(key)
        state.out.append(StoreOwn(key, None))

    def is_gone(self, held: Held) -> bool:
        """Whether a record that takes away has been answered by all who had it."""
        state = self._state
        if held.has_content and held.key not in state.unmeant:
            return False
        boxes = state.mailboxes.boxes.values()
        if any(held.key in box.slots or held.key in box.queue for box in boxes):
            return False
        return held.kind != "index" and (state.edge is None or state.edge.clean(held.key))

    def index_arrived(self, owner: str) -> None:
        """Go on with a newer index: its root, or chunks of it, are here."""
        state = self._state
        plains = state.content.plains(owner)
        if owner == INDEX_ROOT:
            held = state.held[INDEX_KEY]
            assert isinstance(held.record, IndexRecord)
            if held.generation > state.index.generation:
                state.index_since = state.now.seconds
            state.index.adopt(held.record, read_root(plains[held.record.root.address]), held.data)
        for address, plain in list(plains.items()):
            if owner == INDEX_CHUNKS:
                state.index.add_chunk(address, plain)
        state.content.end(owner)
        unread = state.index.unread()
        if owner == INDEX_ROOT and unread and (state.edge is None or state.mailboxes.boxes):
            if not state.content.begin(INDEX_CHUNKS, unread, read=True, expand=False):
                return
            self.index_arrived(INDEX_CHUNKS)
            return
        if state.index.generation <= state.inbox.index_came:
            # Not by chunks of one that was kept: it says nothing of what the parent shows now.
            state.inbox.shown_index = True
        self.pass_index_on()
        self.drop_unlisted()

    def want_chunks(self) -> None:
        """Fetch the chunks of the index that acceptance asks for."""
        state = self._state
        if state.content.knows(INDEX_CHUNKS) or state.index.root is None:
            return
        if state.content.begin(INDEX_CHUNKS, state.index.unread(), read=True, expand=False):
            self.index_arrived(INDEX_CHUNKS)

    def pass_index_on(self) -> None:
        """Send the index to relays at once, to edges when they need it or it has been long."""
        state = self._state
        held = state.held.get(INDEX_KEY)
        if held is None:
            return
        for name, child in state.children.items():
            edge = state.where.branch(name).is_edge
            due = child.index_sent + INDEX_TO_EDGE_SECONDS <= state.now.seconds
            if not edge or not child.has_memory or due:
                self.send_index(name, child, held)

    def send_index(self, name: str, child: Child, held: Held, *, again: bool = False) -> None:
        """Write the index into a child's mailbox; `again` also if it is there already."""
        state = self._state
        slot = state.mailboxes.boxes[name].slots.get(INDEX_KEY)
        if slot is not None and slot.generation == held.generation and not again:
            return
        child.index_sent = state.now.seconds
        state.mailboxes.force(name, INDEX_KEY, held.order)
        state.mailboxes.flush(name)

    def drop_unlisted(self) -> None:
        """Drop what a newer index does not list: the only absence that proves something."""
        state = self._state
        if state.is_root:
            return
        unknown = False
        for held in state.deltas():
            self.forget_if_done(held.key)
            forgotten = held.key not in state.held
            if forgotten or held.record.deleted or held.generation >= state.index.generation:
                continue
            listed = state.index.listed(held.key)
            unknown = unknown or isinstance(listed, Unknown)
            if listed is None:
                self._vanish(held)
        if unknown:
            self.want_chunks()

    def _vanish(self, held: Held) -> None:
        state = self._state
        state.out.append(Noted("Unlisted", held.record.source.name, "gone from the index"))
        state.let_go(held.key)
        state.inbox.forget(held.key)
        state.where.set_delta(held.key, None)
        state.forget_supply(held.key)
        for name in self._having(held.key, ()):
            state.mailboxes.mark(name, held.key, held.order)
            state.mailboxes.flush(name)
        if state.edge is not None:
            state.edge.drop(held.key)
        state.reporting.forget(held.key)
        state.out.append(StoreOwn(held.key, None))
        state.touch(held.key)

    def _put_delta(self, held: Held) -> None:
        state, record = self._state, held.record
        in_force = record if isinstance(record, DeltaHead) and not record.deleted else None
        state.unmeant.pop(held.key, None)
        state.forget_supply(held.key)
        state.where.set_delta(held.key, in_force.alternatives if in_force else None)
        self._spread(held)

    def _spread(self, held: Held) -> None:
        state = self._state
        for child, box in state.mailboxes.boxes.items():
            sent = held.key in box.slots or held.key in box.queue
            if sent or state.meant(child, held) is not Send.NOTHING:
                self._bear_on(held.key, box)
                state.mailboxes.mark(child, held.key, held.order)
                state.mailboxes.look(child)
        self._evaluate(held)
        state.touch(held.key)

    def _bear_on(self, delta: MailKey, box: Mailbox) -> None:
        """Profiles and locations that wait in the queue bear on a delta that comes after them.

        Of one that the child has in another version the child may see it so, whatever is new.
        """
        where = self._state.where
        for key in box.others:
            held = self._state.held.get(key)
            record = held.record if held is not None else None
            if not isinstance(record, Profile | LocationRecord):
                continue
            if key in box.slots or where.bears_on(record, delta):
                box.bears.setdefault(key, {})[delta] = None

    def _put_profile(self, held: Held, record: Profile, former: Held | None) -> None:
        state = self._state
        path = state.config.path
        bears: dict[MailKey, None] = {}
        steps: dict[str, None] = {}
        old = former.record if former else None
        for known in (old, record):
            if isinstance(known, Profile) and not known.deleted:
                bears |= state.where.deltas_of_profile(known)
                if step := path.step_towards(known.path):
                    steps[step] = None
        state.where.set_profile(held.key, None if record.deleted else record)
        for child in state.where.take_come_to_know():
            state.recount(child)
        if not record.deleted:
            bears |= state.where.deltas_of_profile(record)
        for child in (*steps, *self._having(held.key, steps)):
            self._mark_locations(child)
            self._mark(child, held, bears)
        if state.edge is not None and state.edge.take_profile(held.key, record):
            self._reevaluate(bears)
        self._answer(bears)
        state.labels_dirty = True

    def _mark_locations(self, child: str) -> None:
        """Locations that a child has come to belong to go before the profile that is the cause."""
        state = self._state
        box, branch = state.mailboxes.boxes.get(child), state.where.branch(child)
        if box is None:
            return
        for key in branch.locations:
            if key not in box.slots and key not in box.queue:
                held = state.held[key]
                record = held.record
                assert isinstance(record, LocationRecord)
                bears = state.where.deltas_of_location(record)
                self._mark(child, held, bears)

    def _put_location(self, held: Held, record: LocationRecord) -> None:
        state = self._state
        old = state.where.locations.get(held.key)
        former = state.where.deltas_of_location(old) if old else {}
        children = dict.fromkeys(state.where.children_of_location(held.key))
        state.where.set_location(held.key, None if record.deleted else record)
        newly = {} if record.deleted else state.where.deltas_of_location(record)
        bears = former | newly
        children |= dict.fromkeys(state.where.children_of_location(held.key))
        having = self._having(held.key, ())
        for child in dict.fromkeys((*children, *having)):
            self._mark(child, held, bears if child in having else newly)
        if state.edge is not None:
            self._reevaluate(bears)
        self._answer(bears)

    def _answer(self, keys: Iterable[MailKey]) -> None:
        """The parent waits for an answer to what bears on these, also if nothing follows here."""
        for key in keys:
            self._state.touch(key)

    def _reevaluate(self, keys: Iterable[MailKey]) -> None:
        state = self._state
        for key in keys:
            held = state.held.get(key)
            if is_delta(held):
                self._evaluate(held)
                state.touch(key)

    def _evaluate(self, held: Held) -> None:
        """Have an edge look at it; of what its parent says is not meant, it begins nothing."""
        edge, meant = self._state.edge, held.has_body and held.key not in self._state.unmeant
        if edge is not None and (meant or not edge.clean(held.key)):
            edge.evaluate(held)

    def _mark(self, child: str, held: Held, bears: Iterable[MailKey]) -> None:
        """First the deltas that may newly match, then the record that makes them match."""
        state = self._state
        for key in bears:
            delta = state.held.get(key)
            if delta is not None:
                state.mailboxes.mark(child, key, held.order)
                state.touch(key)
        state.mailboxes.mark(child, held.key, held.order, bears)
        state.mailboxes.flush(child)

    def _having(self, key: MailKey, besides: Iterable[str]) -> list[str]:
        return [name for name in self._state.mailboxes.having(key) if name not in besides]

    def _put_node(self, held: Held, record: NodeRecord) -> None:
        state = self._state
        path = state.config.path
        if record.path.is_root or not path.holds(record.path) or path == record.path:
            return
        # Without a node of its own a destination counts nowhere: from now on it does, or no more.
        bears = state.where.deltas_at(record.path)
        self._answer(bears)
        if record.path.parent != path:
            step = path.step_towards(record.path)
            if step is not None:
                self._mark(step, held, bears)
            return
        name = record.path.name
        if record.deleted:
            self._remove_child(record)
            return
        known = state.children.get(name)
        if known is not None and known.nkey == record.nkey:
            return
        remembers = state.is_root or state.inbox.remembers
        # Over restarts, too: memory came back with the mail, and what children hold did not.
        proven = remembers and name not in state.unproven
        state.children[name] = Child(record.nkey, state.now.seconds, proven=proven)
        state.mailboxes.boxes.setdefault(name, Mailbox())
        state.where.come(name)
        state.out.append(AddChild(record.path, record.nkey))
        self._refresh_child(name)

    def _refresh_child(self, child: str) -> None:
        """Look at all that a child may need: it is new, or its key is."""
        state, branch = self._state, self._state.where.branch(child)
        if state.mailboxes.paused:
            # At the start every record is looked at for every child, in the end.
            return
        own = branch.profiles | branch.locations | dict.fromkeys(state.mailboxes.boxes[child].slots)
        own[KEYS_KEY] = None
        named = [state.held[key] for key in own if key in state.held and key != INDEX_KEY]
        # Nothing here grows with the other children: each of 2,000 comes by.
        for held in (*named, *state.deltas(), *state.nodes_below(child)):
            state.mailboxes.mark(child, held.key, held.order, state.where.deltas_of(held.record))
        state.mailboxes.flush(child)

    def _remove_child(self, record: NodeRecord) -> None:
        state, name = self._state, record.path.name
        if state.children.pop(name, None) is None:
            return
        state.mailboxes.remove(name)
        state.joined.discard(name)
        state.admission.forget(name)
        state.reporting.forget_child(name)
        state.where.leave(name)
        state.labels_dirty = True
        state.out.append(RemoveChild(record.path))

    def _mark_all(self, held: Held) -> None:
        for child in self._state.mailboxes.boxes:
            self._mark(child, held, ())

    def _put_index(self, held: Held) -> None:
        state = self._state
        assert isinstance(held.record, IndexRecord)
        if state.is_root:
            state.index_since = state.now.seconds
            state.index.record = held.record
            self.pass_index_on()
            return
        state.content.end(INDEX_CHUNKS)
        if state.content.begin(INDEX_ROOT, (held.record.root,), read=True, expand=False):
            self.index_arrived(INDEX_ROOT)
