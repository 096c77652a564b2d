"""What follows from a record that is taken or dropped: whom it concerns, and who counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeGuard

from relay.core.audience import HERE
from relay.core.destination.removals import DROPPED
from relay.core.effects import AddChild, CountChanged, RemoveChild, StoreOwn
from relay.core.link.old_wires import sort_out
from relay.core.link.session import Presence
from relay.core.link.target import mail_owner
from relay.core.link.writer import NO_CAUSE
from relay.core.records.accepted import AcceptedRecord, is_delta
from relay.core.rooms import Rooms, RoomsPart
from schemas.records.records import (
    DeltaHead,
    KeysRecord,
    LocationHead,
    LocationRecord,
    NodeRecord,
    Profile,
    ReleaseRecord,
)
from schemas.values.identity import KEYS_KEY, MailKey, NodePath
from schemas.values.subjects import FIRST_SESSION_PREFIX


class Propagation(RoomsPart):
    """Keeps all that is derived from the records of one node in step with them."""

    def __init__(self, path: NodePath, rooms: Rooms) -> None:
        super().__init__(rooms)
        self._path = path
        self._is_restored = False
        # Deltas put in force since the last `spread`, each with its place in the own mail, and the
        # first place in it of all that was put or dropped.
        self._put: dict[MailKey, int] = {}
        self._cause = 0
        self._is_clean = True
        # Whether releases ever said which wire is needed.
        self._holds_back = False

    def put(self, accepted: AcceptedRecord, cause: int) -> None:
        """Put a record in force; `cause` is its place in the own mail. `spread` follows."""
        key, record = accepted.key, accepted.record
        former = self._book.get(key)
        self._book.put(accepted)
        match record:
            case _ if is_delta(accepted):
                self._put_delta(accepted)
                self._put[key] = min(cause, self._put.get(key, cause))
            case Profile():
                self._audience.put_profile(key, record)
                self._pass_through(accepted, former, cause)
            case LocationRecord() | LocationHead():
                # Of one that is known by its head alone nothing is said here.
                whole = record if isinstance(record, LocationRecord) else None
                self._audience.put_location(key, whole)
                touched = dict.fromkeys(
                    (*self._children.with_slot(key), *self._audience.concerned(key))
                )
                self._announce(touched, key, former, accepted, cause)
                self._refresh_waves(touched, self._book.gated)
            case NodeRecord():
                self._put_node(accepted, former, record, cause)
            case ReleaseRecord() | KeysRecord():
                self._put_for_all(key, record, cause)
            case _:
                pass
        self._children.answer_wants(key)
        self._note(cause)
        if isinstance(record, Profile):
            self._inventory_changed(key, record, accepted.generation)
        elif _is_location(accepted):
            self._inventory_changed(key, None, accepted.generation)

    def _put_for_all(self, key: MailKey, record: ReleaseRecord | KeysRecord, cause: int) -> None:
        """Put in force what goes to all children, whoever hangs there."""
        if isinstance(record, KeysRecord):
            self._trust.adopt(record)
        else:
            self._releases.put(key, record)
        for name in self._children.names():
            self._children.mark(name, key, cause)

    def drop(self, key: MailKey) -> None:
        """A snapshot that was reached lists a record no more. `spread` follows."""
        former = self._book.drop(key)
        if former is None:
            return
        self._out.append(StoreOwn(key, None))
        record = former.record
        having = self._concerned(former)
        match record:
            case _ if is_delta(former):
                self._audience.put_placement(key, None)
                self._content.end(mail_owner(key))
                self._collected.drop(key)
                if self._destination is not None:
                    self._destination.drop(key)
                self._reports.touch(key)
            case Profile():
                self._audience.put_profile(key, None)
                self._moving(having, key, former)
            case LocationRecord() | LocationHead():
                self._audience.put_location(key, None)
                self._moving(having, key, former)
                self._refresh_waves(having, self._book.gated)
            case NodeRecord() if record.path.parent == self._path:
                self._remove_child(record)
            case ReleaseRecord():
                self._releases.drop(key)
            case _:
                pass
        for name in having:
            self._children.mark(name, key, 0)
        self._note(0)
        if isinstance(record, Profile) or _is_location(former):
            self._inventory_changed(key, None, DROPPED)

    def restored(self) -> None:
        """All that the streams held is in force: look at each slot of each child."""
        for accepted in list(self._book.by_key.values()):
            self._mark_all_concerned(accepted, 0)
        self._put.clear()
        self.spread()
        self._is_restored = True

    def spread(self) -> None:
        """Follow what changed in who is meant, and mark for whom deltas were put in force.

        Once for a batch: a placement that comes is both, for the same children.
        """
        self._sort_out_old_wires()
        if self._is_clean:
            return
        put, self._put = self._put, {}
        self._is_clean, changed = True, self._audience.drain()
        for key, cause in put.items():
            held = self._book.get(key)
            if held is not None:
                names = {**self._names(held), **dict.fromkeys(changed.pop(key, ()))}
                names.pop(HERE, None)
                self._mark_delta(names, key, cause)
        self._spread_changes(changed, self._cause)

    def _sort_out_old_wires(self) -> None:
        needs = self._releases.needs
        if needs or self._holds_back:
            for name in sort_out(self._children, needs):
                self._mark_child(name, NO_CAUSE)
                self.child_changed(name)
            self._holds_back = bool(needs)

    def _note(self, cause: int) -> None:
        self._cause = cause if self._is_clean else min(self._cause, cause)
        self._is_clean = False

    def _spread_changes(self, changed: Mapping[MailKey, Iterable[str]], cause: int) -> None:
        for key, names in changed.items():
            held = self._book.get(key)
            placement = is_delta(held) or self._reports.has_rows(key)
            having = set(self._children.with_slot(key)) if _is_location(held) else set()
            for name in names:
                if name == HERE:
                    continue
                # What a Location says is put into copies: who is told of it first holds others.
                if _is_location(held) and name not in having:
                    self._children.inventory_changes(name, key, (held,))
                self._children.mark(name, key, cause)
                if placement:
                    self._reports.refresh(name, key)

    def child_changed(self, name: str) -> None:
        """A child is there, or is not there any more: what it counts for is another."""
        self._reports.refresh_child(name)
        for key in self._audience.placements_concerning(name):
            if is_delta(self._book.get(key)):
                self._reports.refresh(name, key)

    def _inventory_changed(self, key: MailKey, profile: Profile | None, cause: int) -> None:
        """Look at the destination here: who it is, or what it belongs to, may be another."""
        destination = self._destination
        if destination is None:
            return
        another = False
        if profile is not None or self._book.get(key) is None:
            another = destination.put_profile(key, profile)
        if another or profile is None:
            destination.read_properties()
        for accepted in self._book.deltas():
            self._evaluate(accepted, cause)
            if another:
                # It may bring the keys of what is collected over.
                self._collected.put(accepted.key, accepted.body)
            self._collected.mark_dirty(accepted.key, HERE)
            self._reports.touch(accepted.key)

    def look_again(self, key: MailKey) -> None:
        """A window of a placement may be open now."""
        held = self._book.get(key)
        if held is not None:
            self._evaluate(held, held.last_loss or held.generation)

    def _evaluate(self, accepted: AcceptedRecord, cause: int) -> None:
        if self._destination is not None and isinstance(accepted.record, DeltaHead):
            self._destination.evaluate(
                accepted.key, accepted.record, accepted.body, cause=cause, now=self._clock()
            )

    def _put_delta(self, accepted: AcceptedRecord) -> None:
        key, record = accepted.key, accepted.record
        alternatives = record.alternatives if isinstance(record, DeltaHead) else None
        self._content.end(mail_owner(key))
        self._audience.put_placement(key, alternatives)
        self._evaluate(accepted, accepted.last_loss or accepted.generation)
        self._collected.put(key, accepted.body)
        self._reports.touch(key)

    def _mark_all_concerned(self, accepted: AcceptedRecord, cause: int) -> None:
        key, names = accepted.key, self._names(accepted)
        if is_delta(accepted):
            self._mark_delta(names, key, cause)
            return
        for name in names:
            self._children.mark(name, key, cause)

    def _mark_delta(self, names: Iterable[str], key: MailKey, cause: int) -> None:
        for name in names:
            self._children.mark(name, key, cause)
            self._reports.refresh(name, key)

    def _names(self, accepted: AcceptedRecord) -> dict[str, None]:
        """The children that a record in force is looked at for."""
        if accepted.key == KEYS_KEY:
            return dict.fromkeys(self._children.names())
        return self._concerned(accepted)

    def _pass_through(
        self, accepted: AcceptedRecord, former: AcceptedRecord | None, cause: int
    ) -> None:
        """Mark a profile for the child it goes to, and for the one it went to."""
        touched = self._concerned(accepted)
        touched |= self._concerned(former) if former is not None else {}
        if isinstance(accepted.record, Profile):
            # Who hangs there may be another, and the numbers the same.
            for name in touched:
                self._collected.mark_child_dirty(name)
        self._announce(touched, accepted.key, former, accepted, cause)
        if self._book.gated:
            meant = self._audience.placements_of(accepted.key)
            self._refresh_waves(touched, [key for key in meant if key in self._book.gated])

    def _refresh_waves(self, names: Iterable[str], placements: Iterable[MailKey]) -> None:
        """Who hangs below these children may be in other waves, as far as they are counted here.

        A child that is in step says so itself, and where the numbers change `spread` looks again.
        """
        if self._is_restored:
            for name in names:
                if self._children.presence(name) is not Presence.IN_STEP:
                    for key in placements:
                        self._reports.refresh(name, key)

    def _concerned(self, accepted: AcceptedRecord) -> dict[str, None]:
        """The children that a record goes to, or whose slots of it are in use.

        Of a delta in full only who is meant has it: whoever is not any more comes by in `spread`.
        """
        key = accepted.key
        match accepted.record:
            case DeltaHead():
                names = (*self._audience.concerned(key), *self._children.with_head(key))
                return dict.fromkeys(names)
            case LocationRecord() | LocationHead():
                names = (*self._audience.concerned(key), *self._children.with_slot(key))
                return dict.fromkeys(names)
            case _ if accepted.opaque or isinstance(accepted.record, ReleaseRecord):
                return dict.fromkeys(self._children.names())
            case _:
                step = self._book.step_of(accepted)
                return {} if step is None else {step: None}

    def _announce(
        self,
        names: Iterable[str],
        key: MailKey,
        former: AcceptedRecord | None,
        accepted: AcceptedRecord,
        cause: int,
    ) -> None:
        versions = (accepted,) if former is None else (former, accepted)
        for name in names:
            self._children.inventory_changes(name, key, versions)
            self._children.mark(name, key, cause)

    def _moving(self, names: Iterable[str], key: MailKey, former: AcceptedRecord) -> None:
        for name in names:
            self._children.inventory_changes(name, key, (former,))

    def _put_node(
        self,
        accepted: AcceptedRecord,
        former: AcceptedRecord | None,
        record: NodeRecord,
        cause: int,
    ) -> None:
        if former is not None and isinstance(former.record, NodeRecord):
            gone = former.record.path != record.path and former.record.path.parent == self._path
            if gone:
                self._remove_child(former.record)
        if record.path.is_root or record.path.parent != self._path:
            self._mark_all_concerned(accepted, cause)
            return
        name, now = record.path.name, self._clock()
        nkey, known = self._key_of(name, record), self._children.figures(name, now)
        if known is not None and known.nkey == nkey:
            return
        if known is None:
            self._children.add(name, nkey, now.seconds, joined=name in self._joined)
            self._mark_child(name, cause)
            self.child_changed(name)
        else:
            self._children.rekey(name, nkey, now.wall_ms)
        self._out.append(AddChild(record.path, nkey))

    def _key_of(self, name: str, record: NodeRecord) -> str:
        """The key with which a child is let in: that of a bundle only if it came by it in time.

        Bundles are a former release's, and so are the notes of who came by one.
        """
        noted = self._first_sessions.get(name)
        if noted is not None and noted != record.nkey:
            self._forget_first_session(name)
        return record.nkey if not record.until_ms or noted == record.nkey else ""

    def _forget_first_session(self, name: str) -> None:
        if self._first_sessions.pop(name, None) is not None:
            self._out.append(StoreOwn(f"{FIRST_SESSION_PREFIX}{name}", None))

    def _mark_child(self, name: str, cause: int) -> None:
        """Look at all that a new child may need."""
        if self._book.get(KEYS_KEY) is not None:
            self._children.mark(name, KEYS_KEY, cause)
        concerning = self._audience.placements_concerning(name)
        # A release first: it may bring the child up to what follows.
        for key in (*self._book.releases(), *self._book.through(name), *concerning):
            self._children.mark(name, key, cause)
        for accepted in self._book.deltas():
            if accepted.opaque:
                self._children.mark(name, accepted.key, cause)

    def _remove_child(self, record: NodeRecord) -> None:
        name = record.path.name
        if not self._children.has(name):
            return
        self._children.remove(name)
        self._joined.discard(name)
        self._forget_first_session(name)
        self._reports.forget_child(name)
        if self._releases.forget(name, self._clock().seconds) and self._path.is_root:
            # Who steers releases looks again.
            self._out += map(CountChanged, self._releases.keys())
        self._out.append(RemoveChild(record.path))
        self.child_changed(name)


def _is_location(accepted: AcceptedRecord | None) -> TypeGuard[AcceptedRecord]:
    return accepted is not None and accepted.kind == "location"
