"""Rollouts steer how far the changes of their placements go out.

What is decided stands in a Rollout's status before the delta that follows from it is issued: so a
centre that was killed goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from controllers.core.conditions import condition, merged, stalled
from controllers.core.rollout import layers, revisions
from controllers.core.rollout.culprits import members_at
from controllers.core.rollout.decision import Run, begin_run, decide
from controllers.core.rollout.empty_waves import empty_condition
from controllers.core.rollout.estimates import label_values
from controllers.core.rollout.facts import RolloutFacts
from controllers.core.rollout.messages import OWNED, conditions, with_message
from controllers.core.rollout.rejection import rejection_of
from controllers.core.rollout.requests import answered, is_news
from controllers.core.rollout.rollouts import Rollouts, rollout_key
from controllers.core.rollout.state import ChangeCause, changed, is_under_way, present
from controllers.core.translation.reading import read_arm
from controllers.issuing.issuer import read_all
from controllers.spaces.status_writing import put_status
from controllers.work_queue import WorkQueue
from controllers.workloads.placement_translator import PlacementTranslator
from controllers.workloads.queue_reconciler import QueueReconciler
from schemas.api.rollout_spec import RolloutSpec
from schemas.api.rollout_status import RolloutStatus
from schemas.api.shared import Condition
from schemas.content.blobs import Reference
from schemas.objects.annotations import ROLLOUT_REQUEST
from schemas.objects.objects import texts_of
from schemas.objects.source_objects import generation_of
from schemas.records.records import LocationRecord, NodeRecord, Profile, Record

COUNTS_SECONDS = 1.0
"""How often a status is written that says no more than other counts."""
TIMES_SECONDS = 10.0
"""How often one is written that says no more than how long a wave was good."""
_COUNTS = ("members", "healthy", "synced", "failing", "waiting", "unreachable")
_TIMES = ("soaked", "lasted")
_CHANGE_CAUSE = "kubernetes.io/change-cause"


@dataclass(slots=True)
class _Known:
    """Of one rollout in this run: its newest state, which may be ahead of what is written."""

    state: RolloutStatus | None
    run: Run
    # Of which object, and of which placement, all of this is.
    uid: str
    placement: str
    written_at: float = float("-inf")
    written: Mapping[str, Any] | None = None
    revision: str = ""


class RolloutController(QueueReconciler[str]):
    """The reconciler of the Rollouts of one workload description space."""

    def __init__(self, translator: PlacementTranslator, queue: WorkQueue[str]) -> None:
        super().__init__(translator, queue)
        self._issuer = translator.issuer
        self._known: dict[str, _Known] = {}
        # Those that have waves, or keep places, of nobody: who comes is no news of theirs else.
        self._empty: set[str] = set()
        self._issuer.listen(self._inventory_changed)

    @property
    def _rollouts(self) -> Rollouts:
        return self._translator.workloads.rollouts

    async def _settle(self, key: str) -> bool:
        spec = self._rollouts.specs.get(key)
        if spec is None:
            await self._forget(key)
        if key in self._rollouts.invalid:
            # What is open stays so; the time until it is valid again does not count.
            self._known.pop(key, None)
            if spec is not None:
                self._translator.tell_of([spec.placement.placement])
            return await self._say_invalid(key)
        if spec is None:
            return True
        if not self._translator.placements.known:
            return False
        placement = spec.placement.placement
        if self._rollouts.of(placement) != key:
            return await self._say_superfluous(key, placement)
        return await self._go_on(key, spec)

    async def _forget(self, name: str) -> None:
        """Nobody goes back any more to contents of a Rollout that is gone."""
        known = self._known.pop(name, None)
        self._empty.discard(name)
        if known is not None and known.placement and self._rollouts.of(known.placement) is None:
            key = self._translator.source(known.placement).key
            # What it rejected goes out no more for its being deleted.
            left = self._translator.placements.rejections.known.get(known.placement) or ()
            if self._relay.kept_history().get(key, ()) != left:
                await self._relay.keep_history(key, left, rejected=left)

    async def _go_on(self, name: str, spec: RolloutSpec) -> bool:
        """Decide, write down what was decided, and only then let it out."""
        now, placement = self._clock.now(), spec.placement.placement
        known = self._known.get(name)
        uid = str((self._rollouts.objects[name].get("metadata") or {}).get("uid") or name)
        if known is not None and (known.uid, known.placement) != (uid, placement):
            await self._forget(name)
            known = None
        if known is None:
            stored = self._rollouts.stored_status(name)
            known = self._known[name] = _Known(stored, begin_run(stored, now), uid, placement)
            # It may have been held as one that cannot be read.
            self._translator.tell_of([placement])
        facts = self._facts(name, spec, await self._lost(name, known.state))
        decision = decide(spec, facts, known.state, known.run, now)
        state = with_message(spec, facts, decision.state, name)
        known.state, known.run = state, decision.run
        if decision.wake is not None:
            self._queue.add_later(name, decision.wake)
        empty = list(empty_condition(spec, state, facts))
        (self._empty.add if empty else self._empty.discard)(name)
        said = [*conditions(state), *empty]
        if not await self._write(name, known, said):
            return False
        await self._let_out(name, spec, state)
        return True

    async def _let_out(self, name: str, spec: RolloutSpec, state: RolloutStatus) -> None:
        """What is written down counts from now on."""
        rollouts, placement = self._rollouts, spec.placement.placement
        await self._keep_history(placement, state)
        before = rollouts.states.get(name)
        rollouts.states[name] = state
        if before is None or _let_out_by(before) != _let_out_by(state):
            self._translator.look_at([placement])
        if before is None or _standing(before) != _standing(state):
            self._translator.tell_of([placement])
        if before is not None and is_under_way(before) and not is_under_way(state):
            # Others may have waited for it.
            self._queue.add(each for each, it in rollouts.states.items() if it.waiting_for)

    async def _keep_history(self, placement: str, state: RolloutStatus) -> None:
        """Keep all contents that the state names, and what the placement wants meanwhile."""
        key, roots = self._translator.source(placement).key, revisions.roots(state)
        if (wanted := self._rollouts.targets.get(placement)) is not None:
            roots |= {wanted.target, wanted.wish or wanted.target}
        known, rejected = self._translator.placements.rejections.known, rejection_of(state)
        kept = frozenset(self._relay.kept_history().get(key, ()))
        if roots == kept and rejected == known.get(placement):
            return
        listed = sorted(roots, key=lambda each: each.address)
        await self._relay.keep_history(key, listed, rejected=rejected or ())
        if rejected is None:
            known.pop(placement, None)
        else:
            known[placement] = rejected

    # What is known.

    def _inventory_changed(self, records: Sequence[Record]) -> None:
        if any(isinstance(record, Profile | LocationRecord | NodeRecord) for record in records):
            for name in self._empty:
                self._queue.add_later(name, COUNTS_SECONDS)

    def _facts(self, name: str, spec: RolloutSpec, lost: frozenset[Reference]) -> RolloutFacts:
        translator, placement = self._translator, spec.placement.placement
        obj = self._rollouts.objects[name]
        source = translator.source(placement).key
        head = self._issuer.records.get(source)
        gates = translator.placements.gates(placement)
        count = self._relay.count(source)
        fresh = head is not None and count is not None and count.generation == head.generation
        is_first = name not in self._rollouts.fresh and self._issuer.is_new
        is_lost = gates is None and (is_first or source in self._issuer.lost)
        return RolloutFacts(
            wanted=self._rollouts.targets.get(placement),
            rejection=translator.placements.rejections.known.get(placement),
            change=_change(translator.workloads.objects.get(placement)),
            gates=gates,
            count=count if fresh else None,
            is_lost=is_lost,
            is_gone=gates is None and not is_lost and placement not in translator.workloads.objects,
            uid=self._known[name].uid,
            request=_request(obj),
            members=lambda wave: translator.places.members(source, wave),
            matches=lambda wave: translator.places.matches(source, wave),
            label_values=lambda label: label_values(self._issuer.records.values(), label),
            blocked=lambda: self._blocked(name, placement),
            lacks=lambda arm: arm in lost,
            in_wave=lambda gate, paths: members_at(self._issuer.records, gates or (), gate, paths),
            is_place=translator.places.is_place,
        )

    async def _lost(self, name: str, state: RolloutStatus | None) -> frozenset[Reference]:
        """Former contents of which something is not kept; looked for when a request comes."""
        text = _request(self._rollouts.objects[name])
        if state is None or not is_news(state, text):
            return frozenset()
        found = set()
        placement = self._rollouts.specs[name].placement.placement
        keys = self._translator.keys_of(self._translator.source(placement).key)
        for root in sorted(revisions.roots(state), key=lambda each: each.address):
            read = await read_all(self._relay, read_arm(root, keys))
            entries = read.entries.values() if read is not None else ()
            needed = [it.address for entry in entries for it in entry.references]
            if read is None or self._relay.lacks(needed):
                found.add(root)
        return frozenset(found)

    def _blocked(self, name: str, placement: str) -> str:
        """Why an older rollout keeps this one from beginning; "" if none does."""
        resolver = self._translator.workloads.resolver
        mine = resolver.selection(placement).keys()
        for other, state in sorted(self._rollouts.states.items()):
            spec = self._rollouts.specs.get(other)
            if spec is None or other == name or not self._rollouts.yields_to(name, other):
                continue
            both = mine & resolver.selection(spec.placement.placement).keys()
            if both and is_under_way(state):
                return f'rollout "{other}" has {min(both)}, too, and is under way: it goes first'
        return ""

    # What is said.

    async def _say_invalid(self, name: str) -> bool:
        text = self._rollouts.invalid[name]
        said = condition("Valid", "False", "Invalid", text)
        return await self._say(name, [said, *stalled("Invalid", text)], "it is not valid")

    async def _say_superfluous(self, name: str, placement: str) -> bool:
        older = self._rollouts.of(placement)
        text = f'rollout "{older}" has this placement already; delete one of them'
        said = condition("Superfluous", "True", "SecondRollout", text)
        return await self._say(name, [said, *stalled("SecondRollout", text)], text)

    async def _say(self, name: str, said: Sequence[Condition], why: str) -> bool:
        """Say what is wrong with one that steers nothing, and refuse what is asked of it."""
        obj = self._rollouts.objects.get(name)
        status = dict((obj or {}).get("status") or {})
        status["observedGeneration"] = generation_of(obj or {})
        if text := _request(obj or {}):
            refused = answered(text, "Refused", why)
            if (status.get("request") or {}).get("id") != refused.id:
                status["request"] = refused.to_mapping()
        now_ms = self._clock.now().wall_ms
        status["conditions"] = merged(status.get("conditions"), said, now_ms, OWNED)
        return await put_status(self._space, rollout_key(name), obj, status) is None

    async def _write(self, name: str, known: _Known, said: Iterable[Condition]) -> bool:
        """Write the state down, unless it says no more than other counts than a moment ago."""
        obj, now, state = self._rollouts.objects[name], self._clock.now(), known.state
        assert state is not None
        revision = str((obj.get("metadata") or {}).get("resourceVersion", ""))
        before = known.written if known.revision == revision else obj.get("status") or {}
        before = before or {}
        state = changed(state, observed_generation=generation_of(obj), placement=known.placement)
        status = state.to_mapping()
        listed = merged(before.get("conditions"), said, now.wall_ms, OWNED)
        status["conditions"] = listed
        if status == before:
            return True
        due = known.written_at + _gap(before, status)
        if due > now.seconds:
            self._queue.add_later(name, due - now.seconds)
            return True
        shown = {**obj, "status": before}
        if await put_status(self._space, rollout_key(name), shown, status) is not None:
            return False
        known.written_at, known.written, known.revision = now.seconds, status, revision
        return True


def _let_out_by(state: RolloutStatus) -> tuple[object, ...]:
    """What the ledger goes by; the first revision begins with gates that give nobody anything."""
    return bool(state.revision), layers.gates_of(state), rejection_of(state)


def _standing(state: RolloutStatus) -> object:
    """What decides whether the placement is held, and by what."""
    wave = present(state)
    of_wave = (wave.name, wave.phase, wave.reason) if wave is not None else None
    places = (state.pins, state.freezes)
    return state.phase, state.paused, of_wave, state.waiting_for, state.target, places


def _gap(before: Mapping[str, Any], status: Mapping[str, Any]) -> float:
    """How long after another write this one may wait: what decides nothing later is no hurry."""
    if _without(before, ()) == _without(status, ()):
        return TIMES_SECONDS
    if _without(before, _COUNTS) == _without(status, _COUNTS):
        return COUNTS_SECONDS
    return 0.0


def _without(status: Mapping[str, Any], fields: Sequence[str]) -> dict[str, Any]:
    left_out = {*fields, *_TIMES}
    listed = [
        {field: value for field, value in wave.items() if field not in left_out}
        for wave in status.get("waves") or ()
    ]
    spoken = ("message", "complete", "late", "conditions") if fields else ()
    rest = {field: value for field, value in status.items() if field not in spoken}
    return {**rest, "waves": listed}


def _request(obj: Mapping[str, Any]) -> str:
    return str(texts_of(obj, "annotations").get(ROLLOUT_REQUEST) or "")


def _change(placement: Mapping[str, Any] | None) -> ChangeCause:
    obj = placement or {}
    cause = texts_of(obj, "annotations").get(_CHANGE_CAUSE) or ""
    managed = (obj.get("metadata") or {}).get("managedFields") or ()
    entries = [item for item in managed if isinstance(item, Mapping)]
    ours = [item for item in entries if not str(item.get("manager", "")).startswith("leafcast-")]
    latest = max(ours, key=lambda item: str(item.get("time", "")), default={})
    return ChangeCause(str(latest.get("manager", "")), str(cause))
