"""The Rollouts of one space: which placement each steers, and what its last written state lets out.

Of two of one placement the older counts. One that becomes invalid keeps its last good spec, and
opens nothing more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from controllers.core.rollout import layers
from controllers.core.rollout.kept_back import gave_everything
from controllers.core.rollout.rejection import Rejection, Wanted, rejection_of
from controllers.core.rollout.state import is_sound, target_of
from schemas.api.parsing import parse_wish
from schemas.api.rollout_spec import RolledPlacement, RolloutSpec
from schemas.api.rollout_status import Rollout, RolloutStatus
from schemas.content.blobs import Reference
from schemas.objects.annotations import RELEASE_ROLLOUT
from schemas.objects.objects import Object, ObjectKey, texts_of
from schemas.records.records import FormerRollout, Gate
from schemas.values.faults import InvalidObject
from schemas.values.groups import ROLLOUTS


def says_release(placement: Object | None) -> bool:
    """Whether the annotation is there by which a person lets a placement go on."""
    return bool(texts_of(placement or {}, "annotations").get(RELEASE_ROLLOUT) == "true")


class FormerRollouts:
    """By the names of placements."""

    def __init__(self) -> None:
        # Those whose Rollout someone took away: they follow their space once nothing differs.
        self.deleted: set[str] = set()
        # Those whose annotation counted already.
        self.released: set[str] = set()
        # Those of `deleted` of which nothing was decided since, and which gates its status said:
        # the ledger may not say them yet.
        self.left: dict[str, tuple[Gate, ...]] = {}

    def inherit(self, other: FormerRollouts) -> None:
        """Take over what is known, to try a change on."""
        self.deleted |= other.deleted
        self.released |= other.released
        self.left |= other.left

    def restore(self, name: str, known: FormerRollout) -> None:
        """Begin with what the ledger says of one."""
        if known.deleted:
            self.deleted.add(name)
        if known.released:
            self.released.add(name)

    def take_up(self, name: str) -> None:
        """Take it that a Rollout steers one again."""
        self.deleted.discard(name)
        self.left.pop(name, None)

    def put(self, name: str, placement: Object) -> None:
        """Take the present state of a placement: an annotation that comes again counts again."""
        if not says_release(placement):
            self.released.discard(name)

    def lets_go(self, name: str, placement: Object | None) -> bool:
        """Whether a person lets a placement go on without the Rollout that it had."""
        return says_release(placement) and name not in self.released

    def counted(self, name: str, placement: Object | None) -> bool:
        """Whether the annotation is there, and let the placement go from a former Rollout."""
        return says_release(placement) and name in self.released

    def settle(
        self, name: str, placement: Object | None, *, is_steered: bool, is_gated: bool | None
    ) -> FormerRollout:
        """What the ledger is to say of one, which it has with gates or without, or not at all."""
        if is_gated is None and placement is None:
            self.released.discard(name)
            self.left.pop(name, None)
        elif name in self.left:
            return FormerRollout(name in self.deleted, name in self.released)
        elif says_release(placement) and not is_steered and not is_gated:
            # There is nothing any more that it could let go.
            self.released.add(name)
        if is_steered or not is_gated:
            self.deleted.discard(name)
        return FormerRollout(name in self.deleted, name in self.released)


def rollout_key(name: str) -> ObjectKey:
    """Where a Rollout lies in its space."""
    return ObjectKey(*ROLLOUTS, "", name)


class Rollouts:
    """By name; `states` are those that were written, and only they let anything out."""

    def __init__(self) -> None:
        self.objects: dict[str, Object] = {}
        self.specs: dict[str, RolloutSpec] = {}
        self.invalid: dict[str, str] = {}
        # Which placement those name that were never read in this run: they steer nothing.
        self.unread: dict[str, str] = {}
        self.states: dict[str, RolloutStatus] = {}
        # The contents that placements want and the centre keeps.
        self.targets: dict[str, Wanted] = {}
        # Those that came in this run: all others, which a list showed, may be older.
        self.fresh: set[str] = set()
        # Placements that follow their space again, once the ledger says so.
        self.let_go: set[str] = set()
        # What is known of the Rollouts that placements had.
        self.former = FormerRollouts()

    def put(self, name: str, obj: Object) -> frozenset[str]:
        """Take the present state of one; the placements for which its spec is news."""
        before = self.specs.get(name)
        self.objects[name] = obj
        try:
            read = parse_wish(obj)
        except InvalidObject as error:
            self.invalid[name] = "; ".join(str(fault) for fault in error.faults)
            return self._put_unread(name, obj) if before is None else frozenset()
        self.invalid.pop(name, None)
        self.unread.pop(name, None)
        assert isinstance(read, Rollout)
        self.specs[name] = read.spec
        self.let_go.discard(read.spec.placement.placement)
        self.former.take_up(read.spec.placement.placement)
        if before is not None and before.placement != read.spec.placement:
            # What it said of one placement is nothing for another.
            left = before.placement.placement
            self._dismiss(left, self.states.pop(name, None), self.target(left))
            self._leave(left)
        if before == read.spec:
            return frozenset()
        return frozenset(it.placement.placement for it in (before, read.spec) if it is not None)

    def note_created(self, name: str) -> None:
        """Take it that someone made this one just now, unless it was known before."""
        if name not in self.objects:
            self.fresh.add(name)

    def deleted(self, name: str) -> frozenset[str]:
        """Take it that someone deleted one; the placement that it bore on."""
        state, spec = self._last_state(name), self.specs.get(name)
        target = self.target(spec.placement.placement) if spec is not None else None
        gone = self.remove(name)
        for placement in gone if spec is not None else ():
            self._dismiss(placement, state, target)
        return gone

    def remove(self, name: str) -> frozenset[str]:
        """Take it that one is not seen any more; the placement that it bore on."""
        self.objects.pop(name, None)
        self.invalid.pop(name, None)
        self.states.pop(name, None)
        self.fresh.discard(name)
        named = self.unread.pop(name, None)
        if (spec := self.specs.pop(name, None)) is not None:
            named = spec.placement.placement
            self._leave(named)
        return frozenset() if named is None else frozenset({named})

    def of(self, placement: str) -> str | None:
        """The one that steers a placement: the oldest."""
        named = [name for name, spec in self.specs.items() if spec.placement.placement == placement]
        return min(named, key=self._age, default=None)

    def unread_of(self, placement: str) -> str | None:
        """The one that names a placement which nothing steers, and cannot be read: the oldest."""
        named = [name for name, other in self.unread.items() if other == placement]
        return min(named, key=self._age, default=None)

    def steering(self, placements: Iterable[str]) -> frozenset[str]:
        """Those that steer these placements, and those that would if others did not."""
        wanted = set(placements)
        return frozenset(
            name for name, spec in self.specs.items() if spec.placement.placement in wanted
        )

    def yields_to(self, name: str, other: str) -> bool:
        """Whether the other one is older."""
        return self._age(other) < self._age(name)

    def gates(self, placement: str) -> tuple[Gate, ...]:
        """Who gets what of a placement that is steered; nothing is known yet if there are none."""
        state = self.state_of(placement)
        # Before its first revision there is nothing to be said of it.
        return layers.gates_of(state) if state is not None and state.revision else ()

    def target(self, placement: str) -> Reference | None:
        """The content that is to go out of what a placement wants; None if it is not known."""
        wanted = self.targets.get(placement)
        return None if wanted is None else wanted.target

    def rejection(self, placement: str, known: Rejection | None) -> Rejection | None:
        """What the Rollout of a placement rejects; what is `known` otherwise, if it says nothing.

        As it is written: a run that just started goes by the object.
        """
        name = self.of(placement)
        state = self.state_of(placement)
        if state is None and name is not None:
            state = self.stored_status(name)
        return rejection_of(state) if state is not None else known

    def keeps_back(self, name: str) -> bool:
        """Whether deleting one leaves destinations without what its placement wants now."""
        spec = self.specs.get(name)
        if spec is None or self.of(spec.placement.placement) != name:
            return False
        target, state = self.target(spec.placement.placement), self._last_state(name)
        return target is not None and (state is None or not gave_everything(state, target))

    def state_of(self, placement: str) -> RolloutStatus | None:
        """What is written of the Rollout that steers a placement."""
        return self.states.get(self.of(placement) or "")

    def waits_for_person(self, placement: str) -> tuple[str, str] | None:
        """Why what a placement wants goes on only by a command, and which; None if it does not."""
        state = self.state_of(placement)
        if state is None or not state.next:
            return None
        newest = self.target(placement) == target_of(state) or state.phase == "Held"
        return (state.message, state.next) if newest else None

    def waits_for(self, placement: str) -> str:
        """What the rollout of a placement waits for, as a sentence; "" if there is none."""
        state = self.state_of(placement)
        return state.message if state is not None else ""

    def _put_unread(self, name: str, obj: Object) -> frozenset[str]:
        """Take one that cannot be read; the placements for which it is news whom it names."""
        before, named = self.unread.pop(name, None), _named(obj)
        if named is not None:
            self.unread[name] = named
        touched = (before, named) if before != named else ()
        return frozenset(each for each in touched if each is not None)

    def _leave(self, placement: str) -> None:
        """What a placement wants is not followed while nothing steers it."""
        if self.of(placement) is None:
            self.targets.pop(placement, None)

    def _dismiss(
        self, placement: str, state: RolloutStatus | None, target: Reference | None
    ) -> None:
        """Nobody steers a placement any more, as someone wants it.

        It follows its space again if the Rollout had given everyone all that. If it had not, the
        ledger may not show yet that there was one.
        """
        if self.of(placement) is not None:
            return
        self.former.deleted.add(placement)
        if state is not None and gave_everything(state, target):
            self.let_go.add(placement)
        elif state is None:
            self.former.left[placement] = ()
        elif target is not None or not gave_everything(state, target_of(state)):
            self.former.left[placement] = layers.gates_of(state)

    def ended(self, placement: str) -> str:
        """How what the placement wants now ended, or what it is at; "" if it has not begun."""
        state = self.state_of(placement)
        if state is None or self.target(placement) != target_of(state):
            return ""
        return state.phase

    def stored_status(self, name: str) -> RolloutStatus | None:
        """What the object says of itself, from which a new run goes on; None if it says nothing."""
        status = self.objects.get(name, {}).get("status")
        if not isinstance(status, Mapping) or not status.get("phase"):
            return None
        try:
            state = RolloutStatus.model_validate(status, by_alias=True, by_name=False)
            sound = is_sound(state) and bool(layers.gates_of(state) or state.phase == "Held")
        except ValueError:
            return None
        # What it said of another placement is nothing for this one.
        spec = self.specs.get(name)
        ours = spec is not None and state.placement == spec.placement.placement
        return state if sound and ours else None

    def _last_state(self, name: str) -> RolloutStatus | None:
        """What was written of one: it may be seen before who wrote it says so."""
        return self.states.get(name) or self.stored_status(name)

    def _age(self, name: str) -> tuple[str, str]:
        metadata = self.objects[name].get("metadata") or {}
        return str(metadata.get("creationTimestamp") or ""), name


def _named(obj: Object) -> str | None:
    """The placement that a Rollout names, whatever else it says; None if it names none."""
    spec = obj.get("spec")
    said = spec.get("placement") if isinstance(spec, Mapping) else None
    try:
        return RolledPlacement.model_validate(said, by_alias=True, by_name=False).placement
    except ValueError:
        return None
