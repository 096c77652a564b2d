"""Placements say in their status what became of them; a singleton's object says its one copy's."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from controllers.core.status.empty_selectors import empty_selectors
from controllers.core.status.facts import PlacementFacts
from controllers.core.status.generations import HubContent, copies_expected, of_all_copies
from controllers.core.status.holds import as_status, holds
from controllers.core.status.pacing import QUIET_SECONDS, Pacing
from controllers.core.status.rollout_holds import kept, lacking
from controllers.core.status.status import UNCOUNTED, placement_status, singleton, standing
from controllers.core.status.unreturned import STATUS_REFUSED, passes, unreturned, unwritten
from controllers.core.translation.translate import alternatives_of
from controllers.core.workloads.executing_count import count_to_say
from controllers.core.workloads.what import is_partial
from controllers.inventory.inventories import Inventories
from controllers.spaces.status_writing import put_status
from controllers.work_queue import ALL, WorkQueue
from controllers.workloads.combined_statuses import CombinedStatuses
from controllers.workloads.placement_translator import PlacementTranslator
from controllers.workloads.queue_reconciler import QueueReconciler
from relay.space_errors import SpaceError
from schemas.api.placement import EdgePlacement
from schemas.api.readiness import Readiness
from schemas.api.shared import Condition
from schemas.content.manifest import WANT_MULTI, WANT_SINGLETON
from schemas.objects.objects import ObjectKey, takes_status
from schemas.records.placements import BINDING_POLICIES, kind_of, placement_key, title
from schemas.records.records import CENTRE
from schemas.reports.reports import Count, ObjectResult
from schemas.reports.returned_states import opened_state
from schemas.values.faults import Fault
from schemas.values.identity import MailKey
from schemas.values.refusals import BlobRefused
from schemas.values.wire import replace

MANAGER = "leafcast-status"
REFUSED_SECONDS = 30.0
"""After so long a status is written again that was refused."""
_WANTED_BACK = WANT_SINGLETON | WANT_MULTI


class StatusSummarizer(QueueReconciler[str]):
    """Writes into one workload description space what the tree reports."""

    def __init__(
        self, translator: PlacementTranslator, queue: WorkQueue[str], inventories: Inventories
    ) -> None:
        super().__init__(translator, queue)
        self._inventories = inventories
        self._combined = CombinedStatuses(translator, queue)
        # Objects whose singleton status cannot be returned, with how many destinations have them.
        self._ambiguous: dict[ObjectKey, int] = {}
        # What each placement asked for when it was looked at last.
        self._asked_last: dict[str, Collection[ObjectKey]] = {}
        # Objects whose status the space does not take, and why.
        self._unreturned: dict[ObjectKey, Fault] = {}
        # Placements whose own status it does not take.
        self._unwritten: dict[str, Fault] = {}
        self._pacing = Pacing()
        # Placements for whose status someone waits.
        self._hurried: set[str] = set()
        # What was written last, with the revision that it was written on.
        self._written: dict[str, tuple[str, Mapping[str, Any]]] = {}

    async def written(self, names: Iterable[str]) -> None:
        """Wait until the statuses of these placements say what the tree reports now."""
        listed = frozenset(names)
        self._hurried |= listed
        self._queue.add(listed)
        await self._queue.wait_caught_up()

    async def reconcile(self, keys: frozenset[str]) -> frozenset[str]:
        """Write what is reported of these placements; those to be tried again."""
        if ALL in keys:
            keys = keys - {ALL} | self._translator.workloads.objects.keys()
        former = {name: self._asked_last.get(name, ()) for name in keys}
        outcomes = {key: await self._return(key) for key in sorted(self._concerned(keys))}
        failed = {key: error for key, error in outcomes.items() if error is not None}
        errors = failed.values()
        for name, asked in former.items():
            # What it asks for no more is to be asked for once more.
            if unwritten := failed.keys() & set(asked):
                self._asked_last[name] = unwritten.union(self._asked_last.get(name, ()))
        again = frozenset([name for name in sorted(keys) if not await self._write_all(name)])
        if any(passes(error.reason) for error in errors):
            return keys
        for name in keys if errors else ():
            self._queue.add_later(name, REFUSED_SECONDS)
        return again

    async def _write_all(self, name: str) -> bool:
        """Write all that is said of a placement; False if some of it is to be tried again."""
        combined = await self._combined.write(name, hurried=name in self._hurried)
        return await self._write(name) and combined

    async def _write(self, name: str) -> bool:
        """Write one placement's status, if it is due; False if that is to be tried again."""
        obj = self._translator.workloads.objects.get(name)
        if obj is None:
            self._pacing.forget(name)
            self._written.pop(name, None)
            self._unwritten.pop(name, None)
            return True
        if name not in self._translator.observed:
            # A run that just started does not know yet what holds it; it is told once it does.
            return True
        count = self._relay.count(self._translator.source(name).key)
        before, now = self._before(name, obj), self._clock.now()
        status = placement_status(self._facts(name), count, before, now.wall_ms)
        hurried = name in self._hurried
        self._hurried.discard(name)
        if status == before:
            return True
        due = self._pacing.due(name, before, status, count, now.seconds)
        if due > now.seconds and not hurried:
            # What is reported meanwhile may be due sooner.
            self._queue.add_later(name, min(due - now.seconds, QUIET_SECONDS))
            return True
        known = {**obj, "status": before}
        error = await put_status(self._space, placement_key(name), known, status)
        self._tell_refused(name, error)
        if error is None:
            self._pacing.written(name, now.seconds)
            self._written[name] = (_revision(obj), status)
        return error is None or name in self._unwritten

    def _tell_refused(self, name: str, error: SpaceError | None) -> None:
        """Note that the space does not take a placement's own status, which cannot say so."""
        if error is None or passes(error.reason):
            self._unwritten.pop(name, None)
            return
        fault = unwritten(title(name), error.reason, error.message)
        if self._unwritten.get(name) != fault:
            self._unwritten[name] = fault
            self._translator.note(STATUS_REFUSED, title(name), str(fault))
        self._queue.add_later(name, REFUSED_SECONDS)

    def _before(self, name: str, obj: Mapping[str, Any]) -> Any:
        """The status that the object has; what was written just now may not be told of yet."""
        revision, status = self._written.get(name, ("", None))
        return status if status and revision == _revision(obj) else obj.get("status")

    def held(self, name: str) -> list[dict[str, Any]]:
        """What keeps the newest content of a placement from destinations now, as a status lists it.

        One that was deleted, and whose removal is held, is told of, too.
        """
        obj = self._translator.workloads.objects.get(name)
        before = self._before(name, obj) if obj is not None else None
        known = before.get("held") if isinstance(before, Mapping) else None
        return as_status(
            holds(self._held_facts(name), self._count(name)), known, self._clock.now().wall_ms
        )

    def readiness(self, name: str) -> tuple[Condition, ...]:
        """Whether a placement is ready now, and else whether it goes on by itself."""
        return standing(self._facts(name), self._count(name))

    def unreturned(self, name: str) -> tuple[Fault, ...]:
        """Which statuses the space does not take, and why: its own, and those it wants back."""
        own = (self._unwritten[name],) if name in self._unwritten else ()
        if not self._unreturned:
            return own
        return own + tuple(
            self._unreturned[key] for key in sorted(self._asked(name) & self._unreturned.keys())
        )

    def kept_back(self, name: str) -> int | None:
        """How many destinations the waves keep from the newest content; None if nobody can tell."""
        steered = self._translator.steered(name)
        return kept(steered, self._count(name)) if steered is not None else 0

    def lacking(self, name: str) -> int | None:
        """How many destinations lack the newest content of a placement; None if nobody can tell."""
        steered = self._translator.steered(name)
        return lacking(steered, self._count(name)) if steered is not None else 0

    def _count(self, name: str) -> Count:
        return self._relay.count(self._translator.source(name).key) or UNCOUNTED

    def _empty_selectors(self, name: str) -> tuple[str, ...]:
        placement, places = self._translator.workloads.placements.get(name), self._translator.places
        if placement is None or placement.spec.readiness.allow_empty:
            return ()
        return empty_selectors(
            alternatives_of(placement.spec), lambda each: places.takes_any((each,))
        )

    def _held_facts(self, name: str) -> PlacementFacts:
        """What may hold a placement; it costs little, as it is asked of all of them at a time."""
        translator = self._translator
        workloads, placements = translator.workloads, translator.placements
        return PlacementFacts(
            # What is counted is of the spec that was looked at last, not of one that just came.
            generation=translator.observed.get(name, 0),
            locations=0,
            name=name,
            invalid=workloads.invalid.get(name, ""),
            in_force=name in workloads.placements or placements.in_force(name),
            removal_held=placements.held.get(name, ""),
            removal_goes_at=translator.removal_goes_at(name),
            faults=placements.faults.get(name, ()),
            lack=workloads.lack(name),
            differing=workloads.resolver.differing(name),
            is_gone=name in placements.gone,
            keeping=len(self._inventories.holds.of(translator.source(name).key)),
            keyless=translator.keyless(name),
            steered=translator.steered(name),
        )

    def _facts(self, name: str) -> PlacementFacts:
        """What the centre knows of a placement."""
        translator, workloads = self._translator, self._translator.workloads
        placement = workloads.placements.get(name)
        selectors = (
            placement.spec.location_selectors if isinstance(placement, EdgePlacement) else ()
        )
        return dataclasses.replace(
            self._held_facts(name),
            locations=sum(
                any(selector.matches(item.metadata.labels) for selector in selectors)
                for item in (self._inventories.locations if selectors else ())
            ),
            ambiguous={
                each: self._ambiguous[each] for each in self._asked(name) & self._ambiguous.keys()
            },
            unreturned=self.unreturned(name),
            selected=workloads.resolver.count(name),
            uncustomized=workloads.resolver.customizers.missing(name),
            undenatured=translator.undenatured_text(name),
            missing_collectors=workloads.collectors.missing(name),
            sourceless_collectors=workloads.collectors.sourceless(name),
            left_out_collectors=workloads.left_out_collectors(name),
            uncombined=self._combined.refused(name),
            wide=workloads.wide(name),
            empty_selectors=self._empty_selectors(name),
            is_policy=kind_of(name) is BINDING_POLICIES,
            absent=workloads.dependencies.absent(name, workloads.placements),
            circle=workloads.dependencies.circle(name),
            readiness=placement.spec.readiness if placement is not None else Readiness(),
            away=self._away(translator.source(name).key),
        )

    def _away(self, key: MailKey) -> tuple[str, ...]:
        """Behind which children of the centre destinations cannot be reached, and how many."""
        count = self._relay.count(key)
        if count is None or not count.summary.states.get("unreachable"):
            return ()
        return tuple(
            f"{CENTRE.child(child)} ({away})" for child, away in self._relay.unreachable(key)
        )

    def _concerned(self, names: Iterable[str]) -> set[ObjectKey]:
        """Objects whose status these placements ask for, or did, and those that still carry one.

        Not those that others ask for: each change of one would look at all.
        """
        resolver = self._translator.workloads.resolver
        keys = {key for key in resolver.counted if not resolver.selecting_with(key, _WANTED_BACK)}
        for name in names:
            asked = self._asked(name)
            keys.update(asked, self._asked_last.pop(name, ()))
            if asked:
                self._asked_last[name] = asked
        return keys

    def _asked(self, name: str) -> set[ObjectKey]:
        """Objects whose status this placement wants back: of one copy, or of all."""
        workloads = self._translator.workloads
        return {
            key
            for key, flags in workloads.resolver.selection(name).items()
            # What a Denatured holds is not there to be written to.
            if flags & _WANTED_BACK and takes_status(key) and not workloads.renatured.holds(key)
        }

    async def _return(self, key: ObjectKey) -> SpaceError | None:
        """Bring an object's status and its executing-count up to date; why they are not."""
        self._ambiguous.pop(key, None)
        self._unreturned.pop(key, None)
        obj = self._translator.workloads.resolver.objects.get(key)
        error: SpaceError | None = None
        try:
            if obj is not None and is_partial(obj):
                # What no placement selects any more may be known by its metadata only.
                obj = await self._space.get(key)
            error = await self._return_to(key, obj) if obj is not None else None
        except SpaceError as refused:
            error = refused
        if error is not None and not passes(error.reason):
            self._unreturned[key] = unreturned(key, error.reason, error.message)
        return error

    async def _return_to(self, key: ObjectKey, obj: Mapping[str, Any]) -> SpaceError | None:
        resolver = self._translator.workloads.resolver
        names = resolver.selecting_with(key, _WANTED_BACK)
        asking = [self._translator.source(name).key for name in names]
        if not asking:
            error = await put_status(self._space, key, obj, {})
            return error or await self._say_count(obj, 0, ())
        counted = [(self._relay.count(item), self._results(item, key)) for item in asking]
        hub = self._at_hub(key, obj)
        judged = singleton(key, counted, hub)
        status = judged.status
        if judged.count != 1 and status is not None:
            if resolver.selecting_with(key, WANT_MULTI):
                collected = [result for item in asking for result in self._relay.collected(item)]
                of_key = [each for each in collected if each.key == key]
                rows = [each.rows for each in of_key if each.program.is_aggregate]
                expected = copies_expected(judged.count, [count for count, _ in counted])
                status = of_all_copies(key, rows, hub, expected, obj.get("status"))
            else:
                self._ambiguous[key] = judged.count
        error = await put_status(self._space, key, obj, status) if status is not None else None
        return error or await self._say_count(obj, judged.count, names)

    def _at_hub(self, key: ObjectKey, obj: Mapping[str, Any]) -> HubContent:
        """What the hub has of an object, whoever sends it."""
        translator, ids = self._translator, frozenset[bytes]()
        for name in translator.workloads.resolver.selecting_with(key, _WANTED_BACK):
            if key not in translator.placements.refused.get(name, ()):
                marking = translator.keys_of(translator.source(name).key).marking
                cleaned = translator.placements.cleaned[translator.workloads.cleaning_of(name)]
                ids |= cleaned.content_ids(key, obj, marking)
        generation = obj["metadata"].get("generation")
        return HubContent(generation if isinstance(generation, int) else 0, ids)

    def _results(self, placement: MailKey, key: ObjectKey) -> list[ObjectResult]:
        """What is returned of one object; a state that nobody with the key said is none."""
        keys, results = self._translator.keys_of(placement).keys, []
        for result in self._relay.results(placement):
            if result.key == key:
                try:
                    results.append(opened_state(result, keys))
                except BlobRefused:
                    results.append(replace(result, status=None))
        return results

    async def _say_count(
        self, obj: Mapping[str, Any], count: int, placements: Collection[str]
    ) -> SpaceError | None:
        """Have the object say how many copies these make; why it is to be tried again."""
        wanted = count_to_say(obj, count, placements)
        if wanted is None:
            return None
        named = {at: obj["metadata"][at] for at in ("name", "namespace") if at in obj["metadata"]}
        metadata = {**named, **wanted}
        said = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": metadata}
        try:
            await self._space.apply(said, MANAGER)
        except SpaceError as error:
            return error
        return None


def _revision(obj: Mapping[str, Any]) -> str:
    return str(obj["metadata"].get("resourceVersion", ""))
