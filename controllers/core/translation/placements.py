"""What each placement of one space needs next: the translator's decisions, without its errands.

Nothing is decided before the space was listed whole. What only a list no longer shows is held where
that looks like blindness.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import MappingProxyType

from controllers.core.access.keyring import IN_CLEAR, PlacementKeys
from controllers.core.inventory.label_brakes import LabelBrakes
from controllers.core.inventory.make_before_break import (
    MOVED,
    hold_alternatives,
    is_hold,
    kept_alternatives,
)
from controllers.core.ledger.destination_counts import SelectedDestinations
from controllers.core.ledger.removal import (
    LOST,
    REMEDY,
    UNREADABLE,
    hold_records,
    named,
)
from controllers.core.ledger.weighing import Brake, Confirmations, Delivered, weigh
from controllers.core.translation.clean_objects import ObjectRefused, cleaned_by_rule
from controllers.core.translation.inferred_removals import held_back, too_large
from controllers.core.translation.rejections import Rejections
from controllers.core.translation.stored_arms import Entries, StoredArm
from controllers.core.translation.stranded import Stranded, news_among, objects_text
from controllers.core.translation.translate import (
    DeltaRules,
    IssuedDelta,
    Steering,
    Translation,
    alternatives_of,
    bare_head,
    translate,
)
from controllers.core.translation.work import Work, outdated_text
from controllers.core.workloads.space import Placement, Workloads
from controllers.core.workloads.space_settings import secret_faults
from schemas.api.placement import Cleaning
from schemas.content.blobs import Reference
from schemas.content.manifest import removal_flag
from schemas.objects.annotations import ON_REMOVAL
from schemas.objects.objects import Object, ObjectKey
from schemas.records.placements import bare_name, kind_of, placement_at, placement_key, placement_of
from schemas.records.placing import grace_seconds, move_seconds
from schemas.records.records import (
    Alternative,
    DeltaHead,
    Dependency,
    FormerRollout,
    Gate,
    Record,
    Source,
)
from schemas.values.faults import Fault
from schemas.values.identity import MailKey

_NOTHING: frozenset[str] = frozenset()

KeysOf = Callable[[MailKey], PlacementKeys]
"""Under which keys a placement's content is sealed."""


class Placements:
    """The placements of the space of one identity; `issued` is what the ledger holds of them.

    `listed` and the changes after it return the placements to look at again.
    """

    def __init__(
        self,
        identity: str,
        issued: Mapping[str, IssuedDelta],
        ledger: Mapping[MailKey, Record] = MappingProxyType({}),
        is_kept: Callable[[MailKey], bool] = lambda _key: False,
        keys_of: KeysOf = lambda _key: IN_CLEAR,
        brakes: LabelBrakes | None = None,
    ) -> None:
        self.identity = identity
        self.workloads = Workloads()
        # What cannot be sent, by name.
        self.faults: dict[str, tuple[Fault, ...]] = {}
        # Which objects that is, by name.
        self.refused: dict[str, Mapping[ObjectKey, Fault]] = {}
        # Why removals wait, by name.
        self.held: dict[str, str] = {}
        # What edits take, and waits: of placements and their objects, and of labels.
        self._brakes = brakes or LabelBrakes({}, Confirmations())
        self.brake = Brake(self._brakes.brake.confirmed)
        # Placements that stay as they are, as the Rollout is gone that steered them.
        self.gone: dict[str, Stranded] = {}
        self.known = False
        # What waits until that which it waits for is in the ledger.
        self.deferred: frozenset[str] = frozenset()
        self._issued = dict(issued)
        # What placements that are steered wanted last, whoever gets it.
        self._targets: dict[str, StoredArm] = {}
        self.rejections = Rejections(self.workloads)
        # Says which destinations there are.
        self._ledger = ledger
        # Whether a snapshot lists a key, though it may be deleted.
        self._is_kept = is_kept
        self._keys_of = keys_of
        # What placements hold of kinds that are not followed any more: nobody tells of it.
        self._unfollowed: set[ObjectKey] = set()
        self._now_ms = 0
        # Who is there, looked at once for all that is decided at one moment.
        self._inventory: SelectedDestinations | None = None
        # What is tried went through all waves.
        self._is_dry_run = False
        self.cleaned = cleaned_by_rule(self.workloads)

    def trial(
        self, objects: Mapping[ObjectKey, Object], ledger: Mapping[MailKey, Record]
    ) -> Placements:
        """The same of its own, to try a change on; `objects` are all that the space shows now."""
        trial = Placements(self.identity, self._issued, ledger, keys_of=self._keys_of)
        trial.listed(objects)
        trial.workloads.inherit(self.workloads)
        trial.brake = self.brake.trial()
        trial._unfollowed = {*self._unfollowed}
        trial._is_dry_run = True
        trial.rejections = self.rejections.trial(trial.workloads)
        trial.workloads.rollouts.let_go |= self.workloads.rollouts.let_go
        trial.workloads.rollouts.former.inherit(self.workloads.rollouts.former)
        return trial

    # What the space says.

    def listed(
        self, objects: Mapping[ObjectKey, Object], kind: tuple[str, str] | None = None
    ) -> frozenset[str]:
        """Take all objects of the space, or all of one kind: group and resource."""
        in_ledger = {name: issued.entries or {} for name, issued in self._issued.items()}
        self.known = True
        self._unfollowed -= objects.keys()
        touched = self.workloads.listed(objects, in_ledger, kind)
        for cleaned in self.cleaned.values():
            cleaned.keep_only(self.workloads.resolver.objects)
        return touched

    def put(self, key: ObjectKey, obj: Object) -> frozenset[str]:
        """Take an object's present state, as an unbroken watch says it."""
        self._unfollowed.discard(key)
        return self.workloads.put(key, obj)

    def deleted(self, key: ObjectKey) -> frozenset[str]:
        """Take it that an object is gone: an unbroken watch said so."""
        for cleaned in self.cleaned.values():
            cleaned.forget(key)
        self._unfollowed.discard(key)
        # Who holds it for an edit does not select it, and lets go of it, too.
        holding = [name for name in self.braked if key in self.entries(name)]
        return self.workloads.deleted(key) | frozenset(holding)

    def holding(self, key: ObjectKey) -> list[str]:
        """The placements in force that have an object, or are the one at this key."""
        found = [name for name in self._issued if key in self.entries(name)]
        placement = placement_at(key)
        return [*found, placement] if placement in self._issued else found

    def vanished(self, key: ObjectKey, *, stays: bool = False) -> frozenset[str]:
        """Take it that an object goes with its definition, of which nobody spoke.

        It `stays` while something holds it there.
        """
        for cleaned in self.cleaned.values():
            cleaned.forget(key)
        return self.workloads.vanished(key, stays=stays)

    def keep_kinds(self, kinds: AbstractSet[tuple[str, str]]) -> None:
        """Forget the objects of all other kinds: nothing is told of them any more."""
        shown = self.workloads.resolver.objects
        for issued in self._issued.values():
            entries = issued.entries or {}
            lost = {key for key in entries if key in shown and key.group_resource not in kinds}
            self._unfollowed |= lost
        self.workloads.keep_kinds(kinds)

    def doubt(self) -> None:
        """Take it that the space shows an older state: what differs waits for a person."""
        self.workloads.doubted = {*self._issued, *self.workloads.objects}

    def accept(self, name: str) -> frozenset[str]:
        """Let a placement's held removals pass, those that are held now and no later ones."""
        before = self._issued.get(name)
        entries = before.entries if before and before.entries is not None else {}
        self.workloads.accept(list(entries), name)
        self.brake.accept(self.source(name).key)
        return frozenset({name})

    # What is issued.

    def next(self, names: Iterable[str], now_ms: int = 0) -> list[Work]:
        """What to issue and delete for these, all of one moment.

        Those that wait for one of these are `deferred`: they are to be asked for once that is in
        the ledger, and then name its generation.
        """
        self.deferred = frozenset()
        self._now_ms, self._inventory = now_ms, None
        if not self.known:
            return []
        works, busy, deferred = list[Work](), set[str](), set[str]()
        for name in self.workloads.dependencies.ordered(names):
            if not busy.isdisjoint(self.workloads.dependencies.of(name)):
                deferred.add(name)
                busy.add(name)
            elif (work := self._next(name)) is not None:
                works.append(work)
                busy.add(name)
        self.deferred = frozenset(deferred)
        for cleaned in self.cleaned.values():
            cleaned.translated()
        return works

    def issued(self, works: Sequence[Work], records: Iterable[Record]) -> None:
        """Take what is in the ledger now: a record for each of these that has a draft, in order."""
        stored = iter(records)
        for work in works:
            said = work.translation
            if said is None:
                del self._issued[work.name]
                self._targets.pop(work.name, None)
                self.workloads.rollouts.targets.pop(work.name, None)
                self.rejections.deleted(work.name)
                continue
            self._note(work, said)
            if said.draft is None:
                continue
            record = next(stored)
            assert isinstance(record, DeltaHead)
            self._issued[work.name] = said.issued(record)
            self.workloads.rollouts.former.left.pop(work.name, None)
            if not record.is_gated:
                self.workloads.rollouts.let_go.discard(work.name)
        if self.workloads.unseen:
            # What nobody has any more is not missed.
            self.workloads.unseen.intersection_update(self._held_objects())

    def _held_objects(self) -> set[ObjectKey]:
        return {key for each in self._issued.values() for key in each.entries or ()}

    def _note(self, work: Work, said: Translation) -> None:
        """Take what is wanted, whoever gets it."""
        wanted = work.wanted
        assert wanted is not None
        self.rejections.note(work.name, said, wanted)
        if self.workloads.rollouts.of(work.name) is not None:
            self._targets[work.name] = said.arm
            self.workloads.rollouts.targets[work.name] = wanted

    def settle_former_rollout(self, name: str) -> FormerRollout:
        """What the ledger is to say of the Rollout that a placement had."""
        rollouts, issued = self.workloads.rollouts, self._issued.get(name)
        is_gated = issued.head.is_gated if issued is not None else None
        is_steered = rollouts.of(name) is not None
        return rollouts.former.settle(
            name, self.workloads.objects.get(name), is_steered=is_steered, is_gated=is_gated
        )

    # What there is.

    def source(self, name: str) -> Source:
        """The clear key of a placement of this space."""
        return Source(kind_of(name).api, self.identity, "", bare_name(name))

    def is_ours(self, record: Record) -> bool:
        """Whether a record is of a placement of this space."""
        return placement_of(record.source) is not None and record.source.space == self.identity

    def standing(self) -> dict[str, IssuedDelta]:
        """All that the ledger holds, by name."""
        return dict(self._issued)

    def in_force(self, name: str) -> bool:
        """Whether the ledger holds the placement."""
        return name in self._issued

    def entries(self, name: str) -> Entries:
        """The objects of a placement as the ledger has them; none of what cannot be read."""
        issued = self._issued.get(name)
        return issued.entries or {} if issued is not None else {}

    def gates(self, name: str) -> tuple[Gate, ...] | None:
        """Who gets what of a placement by the ledger; None if that does not have it."""
        issued = self._issued.get(name)
        return issued.gates if issued is not None else None

    def newest(self, name: str) -> Reference | None:
        """The content that a placement wants, if a Rollout steers it, or did; None if unknown."""
        if (gone := self.gone.get(name)) is not None:
            return gone.newest
        return self.workloads.rollouts.target(name)

    @property
    def braked(self) -> list[str]:
        """The placements that hold what an edit takes of them."""
        if not self.brake.held:
            return []
        return [name for name in self._issued if self.source(name).key in self.brake.held]

    def wanted(self, name: str) -> Entries | None:
        """The objects of that; None if it is not known, or nothing steers the placement."""
        if (gone := self.gone.get(name)) is not None:
            return gone.entries
        target = self._targets.get(name)
        return target.entries if target and self.workloads.rollouts.of(name) else None

    def sent(self, key: ObjectKey, cleaning: Cleaning) -> tuple[Object | None, bytes | None]:
        """An object of the space, None if it is not there, and as it would be sent."""
        obj = self.workloads.resolver.objects.get(key)
        if obj is None:
            return None, None
        try:
            return obj, self.cleaned[cleaning].plain(key, obj)
        except ObjectRefused:
            return obj, None

    def news(self, name: str) -> str:
        """What a placement wants that is new to someone, in words; "" if nothing is known to be."""
        if (gone := self.gone.get(name)) is not None:
            return gone.news
        issued, target = self._issued.get(name), self._targets.get(name)
        if issued is None or target is None:
            return ""
        return objects_text(news_among(issued, target.entries))

    def lacks_target(self, name: str) -> bool:
        """Whether what a steered placement wanted last is to be read from the store."""
        return self.workloads.rollouts.of(name) is not None and name not in self._targets

    def put_target(self, name: str, target: StoredArm) -> None:
        """Take what the store has of what a placement wanted last."""
        self._targets.setdefault(name, target)

    # Deciding.

    def _next(self, name: str) -> Work | None:
        """What to issue for a placement now; None if the ledger says it already."""
        work = self._judged(name)
        if work is None or name not in self.workloads.doubted:
            return work
        # Whoever made this of it may have made something else of it since.
        said = self.held.get(name), outdated_text(work, self._issued.get(name))
        self.held[name] = "; ".join(filter(None, said))
        return None

    def _judged(self, name: str) -> Work | None:
        before = self._issued.get(name)
        placement = self.workloads.placements.get(name)
        self.held.pop(name, None)
        self.gone.pop(name, None)
        if placement is None:
            return self._withdraw(name, before)
        brake, key = self._brakes.brake, self.source(name).key
        if key in brake.held:
            self.held[name] = brake.message(key, name)
        if self._unreadable(name, before):
            return None
        if self.rejections.is_unreadable(name) or self.workloads.frozen(name):
            return None
        known = self.rejections.known.get(name)
        if (stays := self._stranded(name, placement, before)) is not None:
            # Once the ledger says that a Rollout steered it, it stays through a restart.
            is_told = stays.draft is None or (before is not None and before.head.is_gated)
            return None if is_told else Work(name, key, stays, self.rejections.of(name), known)
        translation = self._translated(name, placement, before, self._steering(name, before))
        faults = self.workloads.renatured.faults(self.workloads.resolver.selection(name))
        rules = self.workloads.resolver.rules(name)
        self.faults[name] = translation.faults + faults + tuple(secret_faults(rules))
        self.refused[name] = translation.refused
        work = Work(name, key, translation, self.rejections.of(name), known)
        if translation.draft is None and not translation.unsent and self._is_wanted(work):
            self.workloads.doubted.discard(name)
            return None
        return work

    def _translated(
        self,
        name: str,
        placement: Placement,
        before: IssuedDelta | None,
        steering: Steering | None,
    ) -> Translation:
        """What a placement comes to now."""
        resolver = self.workloads.resolver
        selected = resolver.selection(name)
        meant = self._alternatives(name, placement)
        lost = frozenset[ObjectKey]()
        if before is not None and before.entries:
            lost = frozenset(before.entries.keys() - selected.keys())
        unseen = self._hold(name, lost, before)
        held, kept = self._weigh(name, placement, meant, lost - unseen, before)
        return translate(
            bare_head(self.source(name), meant + kept),
            selected,
            resolver.objects,
            self.cleaned[placement.spec.cleaning],
            before,
            unseen | held,
            DeltaRules(
                self.workloads.collecting(name),
                self.workloads.resolver.rules(name).sent_upsync,
                steering,
                self._after(name, before),
                self._keys_of(self.source(name).key),
                self.rejections.arms(name),
                removal_flag(placement.metadata.annotations.get(ON_REMOVAL, "")),
                self.workloads.health_rules.of(selected),
            ),
        )

    def _stranded(
        self, name: str, placement: Placement, before: IssuedDelta | None
    ) -> Translation | None:
        """What a placement stays at, as the Rollout is gone that steered it; None if none is."""
        rollouts, former = self.workloads.rollouts, self.workloads.rollouts.former
        is_gated = before is not None and before.head.is_gated
        if rollouts.of(name) is not None or not (is_gated or name in former.left):
            return None
        gates = before.gates if before is not None else former.left[name]
        if is_gated:
            former.left.pop(name, None)
        if name in rollouts.let_go or former.lets_go(name, self.workloads.objects.get(name)):
            former.left.pop(name, None)
            return None
        steering = Steering(lambda _target: gates, target=self._targets.get(name))
        stays = self._translated(name, placement, before, steering)
        found = Stranded(stays.root, news_among(before, stays.entries), stays.entries)
        is_known = before is None or before.knows_all
        if name in former.deleted and is_known and not found.differing:
            # Someone deleted it, and nothing differs: what comes next is for everyone.
            former.left.pop(name, None)
            return None
        self.faults[name], self.refused[name] = stays.faults, stays.refused
        self.gone[name] = found
        return stays

    def _after(self, name: str, before: IssuedDelta | None) -> tuple[Dependency, ...]:
        """What a placement waits for, of what is there.

        What is deleted counts until no snapshot lists it: if both are, what waits goes first.
        """
        found = []
        said = {each.name: each for each in before.after} if before is not None else {}
        for other in self.workloads.dependencies.of(name):
            placement, issued = self.workloads.placements.get(other), self._issued.get(other)
            former = said.get(bare_name(other))
            if placement is None and former is not None and self._is_kept(self.source(other).key):
                found.append(former)
            elif placement is not None:
                generation = issued.head.generation if issued is not None else 0
                meant = self._alternatives(other, placement)
                found.append(Dependency(bare_name(other), generation, meant))
        return tuple(found)

    def _alternatives(self, name: str, placement: Placement) -> tuple[Alternative, ...]:
        """For whom it is meant, and who keeps it while it moves."""
        meant, key = alternatives_of(placement.spec), self.source(name).key
        moves = move_seconds(placement.metadata.annotations) is not None
        held = hold_alternatives(key) if moves and meant else ()
        return meant + held + self._brakes.alternatives(key)

    def _steering(self, name: str, before: IssuedDelta | None) -> Steering | None:
        """What a Rollout makes of the placement; before it is known nothing changes."""
        rollouts = self.workloads.rollouts
        if rollouts.of(name) is None:
            return None
        if self._is_dry_run:
            return Steering(lambda target: (Gate(target),))
        gates = rollouts.gates(name) or (before.gates if before is not None else ())
        return Steering(lambda _target: gates, target=self._targets.get(name))

    def _is_wanted(self, work: Work) -> bool:
        """Whether its Rollout, if it has one, knows what is wanted; if not, the ledger."""
        rollouts, wanted = self.workloads.rollouts, work.wanted
        if rollouts.of(work.name) is not None:
            return rollouts.targets.get(work.name) == wanted
        return wanted is None or wanted.rejection == self.rejections.known.get(work.name)

    def _unreadable(self, name: str, before: IssuedDelta | None) -> bool:
        """Whether nobody can tell what the placement would lose: then it stays as it is."""
        if before is None or before.entries is not None or self.workloads.is_accepted(name):
            return False
        self.held[name] = f"{UNREADABLE}; {REMEDY.format(name=name)}"
        return True

    def _hold(
        self, name: str, lost: frozenset[ObjectKey], before: IssuedDelta | None
    ) -> frozenset[ObjectKey]:
        if before is None or not before.entries:
            return frozenset()
        inferred = self.workloads.inferred(name, lost)
        undefined = inferred & self.workloads.undefined
        if undefined and self._is_confirmed(name, undefined, before):
            self.workloads.accept(undefined, name)
            inferred -= undefined
        kept, held = held_back(self.workloads, name, before.entries.keys(), inferred)
        if held.items:
            self.held[name] = f"{held.reason}: {named(held.items)}; {REMEDY.format(name=name)}"
        return kept

    def _weigh(
        self,
        name: str,
        placement: Placement,
        meant: tuple[Alternative, ...],
        lost: frozenset[ObjectKey],
        before: IssuedDelta | None,
    ) -> tuple[frozenset[ObjectKey], tuple[Alternative, ...]]:
        """What an edit takes of a placement, and stays: objects, and whom it is meant for."""
        if before is None or before.entries is None:
            return frozenset(), ()
        # Who keeps it for a move is let go in the end, and is no loss.
        were = tuple(
            each for each in before.head.alternatives if each in meant or not is_hold(each, MOVED)
        )
        shown = self.workloads.resolver.objects
        # What is deleted is not shown: who deletes an object by its name means it.
        edited = frozenset(key for key in lost if key in shown or key in self._unfollowed)
        # What a Rollout takes by waves is there until the last one has it: it was let go before.
        if before.head.is_gated and (target := self._targets.get(name)) is not None:
            edited = edited.intersection(target.entries)
        if not edited and all(each in meant for each in were):
            if self.brake.held:
                self.brake.let_go(self.source(name).key)
            return frozenset(), ()
        key = self.source(name).key
        inventory = self._inventory = self._inventory or SelectedDestinations(self._ledger.values())
        had = Delivered(were, before.entries.keys())
        has = Delivered(meant, before.entries.keys() - edited)
        loss = weigh((inventory, inventory), had, has, self._others(name))
        grace = grace_seconds(placement.metadata.annotations)
        if not self.brake.withholds(key, loss, grace, self._now_ms):
            return frozenset(), ()
        said = self.held.get(name), self.brake.message(key, name)
        self.held[name] = "; ".join(filter(None, said))
        return edited | self.workloads.needed_by(edited), kept_alternatives(inventory, were, meant)

    def _is_confirmed(self, name: str, gone: AbstractSet[ObjectKey], before: IssuedDelta) -> bool:
        """Whether a person let these objects of a placement go by name."""
        inventory = self._inventory = self._inventory or SelectedDestinations(self._ledger.values())
        had = (before.entries or {}).keys()
        meant = before.head.alternatives
        loss = weigh(
            (inventory, inventory), Delivered(meant, had), Delivered(meant, had - gone), ()
        )
        key = self.source(name).key
        return self._brakes.brake.confirmed.covers(key, loss.copies, self._now_ms)

    def _others(self, name: str) -> Iterable[Delivered]:
        """What all other placements give whom now, or are about to."""
        for other, placement in self.workloads.placements.items():
            if other != name and not self.workloads.frozen(other):
                selected = self.workloads.resolver.selection(other)
                yield Delivered(self._alternatives(other, placement), selected.keys())

    def _withdraw(self, name: str, before: IssuedDelta | None) -> Work | None:
        """Delete it, unless the placement is only invalid, or nobody said that it is gone."""
        self.faults.pop(name, None)
        self.refused.pop(name, None)
        self.brake.let_go(self.source(name).key)
        if name in self.workloads.invalid:
            return None
        if before is None:
            self.workloads.doubted.discard(name)
            return None
        unseen = self.workloads.unseen_placements
        if name in unseen:
            seen_any = bool(self.workloads.objects)
            held = hold_records([*self._issued], unseen, "placements", seen_any=seen_any)
            reason = held.reason or too_large(before, self._ledger.values())
            if placement_key(name) in self.workloads.lost:
                reason = LOST
            if self.workloads.is_undefined(name):
                kind = kind_of(name)
                reason = f"the definition {kind.resource}.{kind.group} is gone"
            if reason:
                said = f"the placement is not seen any more, and {reason}"
                self.held[name] = f"{said}; {REMEDY.format(name=name)}"
                return None
        return Work(name, before.head.source.key, None, remembered=self.rejections.known.get(name))
