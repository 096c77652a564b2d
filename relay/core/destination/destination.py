"""The destination at a node: which placements are meant for it, and what became of them.

It keeps also deltas that do not match now, believes only a profile whose path is its own, and asks
for removals only through what it no longer wants. One that is moved to another parent stays who it
was until its new place is told, and leaves nothing behind unmeant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain

from relay.core.content.content import Content, manifest_of
from relay.core.content.destination_keys import DestinationKeys
from relay.core.destination.admissions import AdmittedArms
from relay.core.destination.assignment import Assignment, Resolution, following, hints, owner_of
from relay.core.destination.claims import DesiredObject, ObjectOwnership
from relay.core.destination.copies_here import CopiesHere, PruneWait
from relay.core.destination.customized_forms import (
    NOBODY,
    Customize,
    CustomizedForms,
    customizes_nothing,
)
from relay.core.destination.health_rules import PlacementHealthRules
from relay.core.destination.inputs import FormerRun, OwnProfiles, SignedInventory
from relay.core.destination.maintenance import PlaceMaintenance
from relay.core.destination.object_outcome import (
    WAITING,
    not_delivered,
    sample,
)
from relay.core.destination.order import CompleteContent, DependencyOrder, is_meant
from relay.core.destination.removals import DROPPED, ClaimHistory, RemovalCauses
from relay.core.destination.returned_states import returned_state
from relay.core.destination.tally import SAMPLES_MAX, ObjectTally, PlacementOutcome
from relay.core.destination.traces import Traces
from relay.core.destination.upsync import UpsyncWishes
from relay.core.destination.withheld import WITHHELD, Withheld
from relay.core.events import ObjectObserved
from relay.core.gates import Candidate, arm_name
from relay.core.instant import Instant
from schemas.content.blobs import Reference
from schemas.objects.objects import NAMESPACES, ObjectKey
from schemas.records.placements import source_title
from schemas.records.properties import properties_of
from schemas.records.records import DeltaBody, DeltaHead, Dependency, Profile
from schemas.reports.reports import (
    ARM_NOTHING,
    ARM_OLDER,
    ExceptionSample,
    ObjectResult,
    State,
    Summary,
)
from schemas.reports.returned_states import sealed_state
from schemas.reports.states import AT_WORK
from schemas.values.identity import MailKey, NodePath, TreeId
from schemas.values.refusals import WireRefused

CONTENT_REFUSED = "ContentRefused: a blob of this placement is missing or damaged"
FROZEN, CLASH, SEALED = "Frozen", "Clash", "Sealed"


class LocalDestination:
    """The destination at one node.

    Holds no deltas itself: `evaluate` is told of each that may have changed. What happens to one
    placement or object costs as much, however many others there are.
    """

    def __init__(
        self,
        path: NodePath,
        inventory: SignedInventory,
        content: Content,
        past: FormerRun,
        customize: Customize = customizes_nothing,
        destination_keys: DestinationKeys | None = None,
    ) -> None:
        self.path = path
        self._destination_keys = destination_keys or DestinationKeys(TreeId(""))
        # The keys of placements meant for it, as their deltas bring them.
        self._wrapped: dict[MailKey, bytes] = {}
        self.profile: Profile | None = None
        self._profiles = OwnProfiles(path, past.paths)
        self._inventory = inventory
        self._content = content
        self._assigned: dict[MailKey, Assignment] = {}
        self.maintenance = PlaceMaintenance()
        self.admissions = AdmittedArms(past.taken)
        # What people call these placements.
        self._titles: dict[MailKey, str] = {}
        # Placements whose content is not all here, and since when only their head is.
        self._awaiting: dict[MailKey, None] = {}
        self._withheld = Withheld()
        # Placements that stay as they were, as something cannot be customized or opened; and why.
        self._frozen: dict[MailKey, tuple[State, tuple[ExceptionSample, ...]]] = {}
        self._customized_forms = CustomizedForms(customize)
        self._ownership = ObjectOwnership()
        # Placements that changed since the last `resolve`.
        self._changed: dict[MailKey, None] = {}
        self._tallies: dict[MailKey, ObjectTally] = {}
        self._observed: dict[ObjectKey, ObjectObserved] = {}
        self._history = ClaimHistory()
        self.traces = Traces(self._history, str(path))
        told = (self._ownership, self._observed, self._history, self.traces, self._titles)
        self.copies = CopiesHere(*told, self._assigned, str(path))
        self._causes = RemovalCauses(past.last_loss)
        self.upsync = UpsyncWishes()
        self.health = PlacementHealthRules(content)
        self._order = DependencyOrder(past.done)
        for item in past.done:
            self._causes.lost([item.key], past.last_loss)
            for placement in item.placements:
                self._history.add(MailKey(placement), item.key)
            if self.traces.restore(item):
                continue
            self._observed[item.key] = ObjectObserved(
                item.key, present=True, address="", error="", health="unknown", status=None
            )
            self._history.set_left(item.key, is_left=True)

    # What is meant.

    def put_profile(self, key: MailKey, profile: Profile | None) -> bool:
        """Take a profile, None if it is in force no more; whether who hangs here is another."""
        before, self.profile = self.profile, self._profiles.put(key, profile)
        self.maintenance.put(self.profile)
        if self.profile != before:
            self._destination_keys.put_profile(self.profile)
        return self.profile != before

    def read_properties(self) -> None:
        """Take what the inventory in force says of the destination; `evaluate` follows it."""
        who = self.profile
        said = properties_of(who, self._inventory.locations(who)) if who is not None else NOBODY
        self._customized_forms.put(said)

    def evaluate(
        self, key: MailKey, head: DeltaHead, body: DeltaBody | None, *, cause: int, now: Instant
    ) -> None:
        """Look at a delta again: is it meant, which arm, is its content here.

        `cause` is the generation of the record for which it is looked at: its own, or that of a
        profile or Location; DROPPED if a snapshot dropped that.
        """
        former = self._assigned.get(key)
        if self.profile is None or not self._inventory.selects(self.profile, key):
            self._let_go(key, cause)
            return
        self._titles[key] = source_title(head.source)
        if body is None:
            self._withhold(key, head, former, now.seconds)
            return
        if self._withheld.end(key):
            self._changed[key] = None
        self._wrapped[key] = body.key
        self.health.name(key, body.collectors)
        self._order.put(key, head, body.after)
        self._order.held.pop(key, None)
        arm = self._admit(key, body, now)
        self._customized_forms.end_other(key, arm)
        assignment = following(former, arm, cause, gated=head.is_gated)
        if arm is None:
            self.upsync.put(key, ())
        if not self._customized_forms.is_current(assignment.forms):
            assignment = replace(assignment, entries=None, former=assignment.in_force)
        if former != assignment:
            self._assign(key, assignment)
        self._assigned[key] = assignment
        if assignment.entries is not None:
            self._frozen.pop(key, None)
            self.health.fetch(key)
        elif arm is not None:
            self._awaiting[key] = None
            if self._content.begin(owner_of(key), (arm, *hints(body)), read=True):
                self.content_ready(key)

    def drop(self, key: MailKey) -> None:
        """A snapshot dropped the placement."""
        self._let_go(key, DROPPED)
        self.admissions.end(key)

    def _let_go(self, key: MailKey, cause: int) -> None:
        """The placement is not meant for this destination any more, or not yet."""
        self._content.end(owner_of(key))
        self._customized_forms.end_other(key)
        self.upsync.put(key, ())
        self.health.forget(key)
        self._withheld.end(key)
        self._frozen.pop(key, None)
        self._wrapped.pop(key, None)
        self._order.let_go(key)
        self.admissions.forget(key)
        self._titles.pop(key, None)
        if self._assigned.pop(key, None) is not None:
            self.admissions.end(key)
            self._awaiting.pop(key, None)
            self._tallies.pop(key, None)
            self._ownership.put(key, ())
            self._causes.lost(self._history.objects(key), cause)
            self._changed[key] = None
        elif self.profile is not None:
            self._causes.lost_before(self._history.objects(key), cause)

    def content_ready(self, key: MailKey) -> None:
        """Take the entries of an arm whose content is all here, if all of it can be opened."""
        assignment = self._assigned.get(key)
        if assignment is None or assignment.arm is None:
            return
        plains = self._content.plains(owner_of(key))
        self.health.take(key, plains)
        try:
            keys = self._destination_keys.keys(key, self._wrapped.get(key, b""))
            manifest = manifest_of(plains, assignment.arm, keys)
            self._customized_forms.begin(key, assignment.arm, manifest, plains)
        except WireRefused as refused:
            self._keep_as_is(key, "pending", [self._sample(AT_WORK, "", f"{SEALED}: {refused}")])
        else:
            self._customize(key)
        finally:
            plains.clear()

    def _customize(self, key: MailKey) -> None:
        """Go on with the objects of an arm; once all are customized, take its entries."""
        try:
            forms = self._customized_forms.go_on(key)
        except WireRefused as refused:
            self._keep_as_is(key, "pending", [self._sample(AT_WORK, "", f"{SEALED}: {refused}")])
            return
        if forms is None:
            return
        if failed := forms.failed.items():
            said = [self._sample(0, str(obj), f"{FROZEN}: {why}") for obj, why in failed]
            self._keep_as_is(key, "frozen", said)
            return
        self._frozen.pop(key, None)
        manifest, before = forms.manifest, self._assigned[key]
        ready = replace(
            before, entries=manifest.entries, former=(), forms=forms.made, key=manifest.key
        )
        if self._waits_for(key, ready) is None:
            self._take(key, CompleteContent(ready, manifest.upsync))
        else:
            self._order.held[key] = CompleteContent(ready, manifest.upsync)
            self._awaiting.pop(key, None)
            self._changed[key] = None

    def _take(self, key: MailKey, ready: CompleteContent) -> None:
        """Put content in force that is all here."""
        assignment = self._assigned[key]
        entries = ready.assignment.entries or ()
        self._order.took(ready.assignment)
        self.upsync.put(key, ready.clauses)
        for entry in entries:
            self._history.add(key, entry.key)
            self._look_at_left(entry.key)
        if not assignment.former:
            # What it claimed before this run is known by its history alone.
            listed = {entry.key for entry in entries}
            gone = [obj for obj in self._history.objects(key) if obj not in listed]
            self._causes.lost(gone, assignment.cause)
        self._assign(key, ready.assignment)

    @property
    def is_stale(self) -> bool:
        """Whether `resolve` is due."""
        return any((self._changed, self.upsync.is_news, self.health.is_news, self._order.is_stale))

    def look(self, now: Instant) -> bool:
        """Look at the clock; whether `resolve` is due."""
        self._changed |= dict.fromkeys(self._assigned if self.maintenance.look(now) else ())
        return self.is_stale

    def resolve(self) -> Resolution:
        """Choose again what is wanted, until nobody waits for what is well."""
        resolution, news = self._choose(), self._order.take_released()
        held = self._order.held
        while free := [p for p, it in held.items() if self._waits_for(p, it.assignment) is None]:
            for key in free:
                self._take(key, held.pop(key))
            more = self._choose()
            resolution = Resolution({**resolution.touched, **more.touched}, wants_changed=True)
        # What is left of one placement may go once that of another is gone.
        return resolution._replace(wants_changed=resolution.wants_changed or news)

    def _waits_for(self, key: MailKey, ready: Assignment) -> Dependency | None:
        """What new content of a placement waits for."""
        if self.profile is None or not self._order.is_new(ready, self._ownership.of(key)):
            return None
        who = Candidate(self.profile, self._inventory.locations)
        return self._order.waits_for(key, who, self._is_healthy)

    def _is_healthy(self, key: MailKey) -> bool:
        """Whether a placement is healthy here in the content that it has for here."""
        assignment, admission = self._assigned.get(key), self.admissions.of(key)
        if assignment is None or assignment.entries is None or key in self._withheld:
            return False
        if admission is not None and admission.awaits:
            return False
        tally = self._tally(key)
        return (tally.state, tally.health) == ("synced", "healthy")

    def _is_needed(self, key: MailKey, claimers: Iterable[MailKey]) -> bool:
        """Whether an object that a placement left has to stay for others that wait for that."""
        needing = self._order.needed_by(key)
        return any(self._needs(p, key, each) for p, each in needing if p not in claimers)

    def _needs(self, key: MailKey, other: MailKey, dependency: Dependency) -> bool:
        assignment = self._assigned.get(key)
        if assignment is None or self._history.left(key):
            return not self.is_clean(key)
        assert self.profile is not None
        who = Candidate(self.profile, self._inventory.locations)
        behind = assignment.entries is None or other not in self._assigned
        return behind and is_meant(dependency.alternatives, who)

    def _choose(self) -> Resolution:
        delta = self._ownership.resolve()
        touched, self._changed = self._changed, {}
        for key in touched:
            self._release(key, self._history.objects(key))
        for key, objects in delta.to_report.items():
            touched[key] = None
            if key in self._tallies:
                self._tallies[key].mark_dirty(objects)
        for object_key in delta.added_or_removed:
            if object_key in self.wanted:
                self._causes.forget(object_key)
            for key in self._history.placements(object_key):
                touched[key] = None
                self._release(key, [object_key])
            self._look_at_left(object_key)
        news = any([self.upsync.take_news(), self.health.take_news()])
        self._forget_order(touched)
        # Whether what is left may go now can change though nothing else is wanted.
        left = any(self._history.left(key) for key in touched)
        return Resolution(touched, delta.wants or news or left or self.maintenance.take_news())

    def _forget_order(self, placements: Iterable[MailKey]) -> None:
        for key in placements:
            if self.is_clean(key):
                self._order.forget(key)

    # What follows for the syncer.

    @property
    def wanted(self) -> Mapping[ObjectKey, DesiredObject]:
        return self._ownership.wanted

    @property
    def awaits_content(self) -> bool:
        """Whether some placement meant for this destination is not all here yet."""
        return bool(self._awaiting or self._order.held)

    def may_prune(self, key: ObjectKey, settled: int) -> bool:
        """Whether the object is to be removed; `settled` is a reached snapshot's."""
        return self.prune_wait(key, settled) is None

    def prune_wait(self, key: ObjectKey, settled: int) -> PruneWait | None:
        """Why the object is not to be removed; None if it is."""
        if key in self.wanted:
            return PruneWait.WANTED
        claimers = self._history.placements(key)
        # Who does not know who he is lets nothing go of which he forgot who claimed it.
        nobody = self.profile is None and key.group_resource != NAMESPACES
        if any(map(self._is_unknown, claimers)) or (
            not claimers and (self.awaits_content or nobody)
        ):
            return PruneWait.UNKNOWN
        if any(self._is_needed(p, claimers) for p in claimers):
            return PruneWait.NEEDED
        return None if self._causes.of(key) <= settled else PruneWait.UNSETTLED

    def _is_unknown(self, placement: MailKey) -> bool:
        """Whether what it wants here is not known, or not to be carried out yet."""
        parts = (self._awaiting, self._withheld, self._frozen, self._order.held)
        return any(placement in each for each in parts)

    def observe(self, event: ObjectObserved) -> list[MailKey]:
        """Take the syncer's word on an object; names the placements whose report changes."""
        key = event.key
        kept = event.kept and key not in self.wanted
        news = self.traces.observe(event, kept=kept)
        stays = not kept and (event.present or bool(event.error) or key in self.wanted)
        if (stays and self._observed.get(key) == event) or (kept and not news):
            return []
        claimers = self._history.placements(key)
        if stays:
            self._observed[key] = event
        else:
            # Said before, too, perhaps: but then the object was wanted, and only not there yet.
            self._observed.pop(key, None)
            self._causes.forget(key)
            # Whose content is still to come may want it: somebody took it away, and not we.
            for placement in () if kept else claimers:
                if placement not in self._ownership.on(key) and not self._is_unknown(placement):
                    self._history.remove(placement, key)
        self._look_at_left(key)
        self._order.observed(claimers, gone=not stays)
        self._forget_order(claimers)
        for placement in self._ownership.on(key):
            self._tallies[placement].mark_dirty((key,))
        return claimers

    # What is reported.

    def is_clean(self, key: MailKey) -> bool:
        """Whether nothing of the placement is left here."""
        return key not in self._assigned and not self._history.left(key)

    def is_over(self, key: MailKey, *, in_force: bool) -> bool:
        """Whether nothing is to be told of the placement: while in force, what it keeps is."""
        return self.is_clean(key) and not (in_force and self.traces.keeps(key))

    def deadline(self) -> float | None:
        """When `tick` is due, in monotonic seconds."""
        parts = (self.admissions, self.maintenance, self._customized_forms)
        due = (*(part.deadline() for part in parts), *self._withheld.deadlines())
        return min((at for at in due if at is not None), default=None)

    def tick(self, now: float) -> list[MailKey]:
        """Customize more; the placements whose content is withheld for so long as to be told of."""
        for key in self._customized_forms.begin_turn():
            self._customize(key)
        return self._withheld.tick(now)

    def is_pending(self, key: MailKey) -> bool:
        """Whether something of a placement is still under way; what is wrong is not looked for."""
        said = self._said(key)
        return said is not None and said.state == "pending"

    def summary(self, key: MailKey, now: Instant) -> Summary:
        """One destination's report on one placement; EMPTY if it has no part in it."""
        said = self._said(key)
        summary = self.maintenance.shown(said, now.wall_ms, str(self.path))
        summary = self.admissions.counted(key, summary, self.profile, self._assigned.get(key))
        is_here = self.profile is not None and self.profile.path == self.path
        return self.traces.told(key, self._ownership.of(key), summary) if is_here else summary

    def _said(self, key: MailKey) -> PlacementOutcome | None:
        if self.profile is not None and self.profile.path != self.path:
            # On the move: it counts where its record says that it hangs, and nowhere else.
            return None
        assignment = self._assigned.get(key)
        if assignment is None:
            return self._leaving(key)
        if key in self._withheld:
            samples = [self._sample(0, "", WITHHELD)] if self._withheld.is_reported(key) else []
            return PlacementOutcome(
                "failing" if samples else "pending", "unknown", ARM_OLDER, samples
            )
        arm = arm_name(assignment.arm)
        if key in self._frozen:
            state, why = self._frozen[key]
            return self._kept(state, key, why)
        if key in self._order.held:
            return self._kept("waiting", key, self._waiting_samples(key))
        if assignment.entries is None:
            refused = self._content.refused_since(owner_of(key)) is not None
            samples = [self._sample(0, "", CONTENT_REFUSED)] if refused else []
            return PlacementOutcome("failing" if samples else "pending", "unknown", arm, samples)
        left = self.copies.left_samples(key)
        if not assignment.entries and self._history.left(key):
            return self._leaving(key)
        left += self.upsync.samples(key, str(self.path))
        tally = self._tally(key)
        state = tally.state
        if any(sample.severity == 0 for sample in left):
            state = "failing"
        elif state == "synced" and self._history.left(key):
            # What it lost is still to be pruned.
            state = "pending"
        said = chain(tally.worst(SAMPLES_MAX), left, self._clash_samples(assignment))
        return PlacementOutcome(state, tally.health, arm, said)

    def results(self, key: MailKey) -> list[ObjectResult]:
        """The returned states of the objects that the placement wants back."""
        assignment = self._assigned.get(key)
        if assignment is None or (assignment.entries is None and key not in self._frozen):
            return []
        who = self.profile.destination if self.profile else ""
        booked = sorted(self._ownership.booked.get(key, ()))
        said = [returned_state(o, who, self._observed.get(o), self.wanted.get(o)) for o in booked]
        return [sealed_state(it, assignment.key) for it in said] if assignment.key else said

    def returned(self, key: MailKey, obj: ObjectKey) -> ObjectResult | None:
        """What its copy of an object returns to a placement that lists it.

        None if the placement has no such object here, or not yet, or no one to speak for it.
        """
        assignment = self._assigned.get(key)
        if assignment is None or self.profile is None or self.profile.path != self.path:
            return None
        if obj not in self._ownership.of(key):
            return None
        observed = None if self._ownership.winner_over(key, obj) else self._observed.get(obj)
        return returned_state(obj, self.profile.destination, observed, self.wanted.get(obj))

    def books(self, key: MailKey, obj: ObjectKey) -> bool:
        """Whether what an object returns is said under this placement."""
        return obj in self._ownership.booked.get(key, ())

    def assert_invariants(self) -> None:
        """Assert that what is derived agrees with what it is derived from."""
        self._ownership.assert_invariants()
        self._order.assert_invariants()
        self._history.assert_invariants([key for key in self._observed if key not in self.wanted])
        assert self._tallies.keys() == self._assigned.keys()
        for key, assignment in self._assigned.items():
            assert assignment.entries is None or key not in self._awaiting
            unready = (self._awaiting, self._frozen, self._order.held)
            assert (assignment.entries is None) == any(key in each for each in unready)
            assert self._ownership.of(key).keys() == {each.key for each in assignment.in_force}
        for tally in self._tallies.values():
            tally.assert_invariants()
        assert set(self._withheld) <= self._assigned.keys()

    def _assign(self, key: MailKey, assignment: Assignment) -> None:
        self._assigned[key] = assignment
        self._awaiting.pop(key, None)
        if assignment.entries is None:
            self._awaiting[key] = None
        differ = self._ownership.put(
            key, assignment.in_force, assignment.forms, assignment.key, gated=assignment.gated
        )
        claimed = self._ownership.of(key)
        self._causes.lost([obj for obj in differ if obj not in claimed], assignment.cause)
        self._tallies.setdefault(key, ObjectTally()).mark_dirty(differ)
        self._changed[key] = None

    def _keep_as_is(self, key: MailKey, state: State, why: Iterable[ExceptionSample]) -> None:
        """All of the placement stays as it is here: nothing comes, changes or goes."""
        samples = sorted(why, key=lambda sample: sample.rank)[:SAMPLES_MAX]
        self._frozen[key] = (state, tuple(samples))
        self._awaiting.pop(key, None)
        self._changed[key] = None

    def _kept(self, state: State, key: MailKey, why: Iterable[ExceptionSample]) -> PlacementOutcome:
        """The report on a placement that stays as it was here."""
        tally = self._tally(key)
        health = not_delivered(tally.health, "unknown") if self._ownership.of(key) else "unknown"
        return PlacementOutcome(state, health, ARM_OLDER, chain(why, tally.worst(SAMPLES_MAX)))

    def _waiting_samples(self, key: MailKey) -> list[ExceptionSample]:
        awaited = self._waits_for(key, self._order.held[key].assignment)
        named = f"the placement {awaited.name} to be healthy here" if awaited else "nothing"
        return [self._sample(AT_WORK, "", f"{WAITING}: for {named}")]

    def _withhold(
        self, key: MailKey, head: DeltaHead, former: Assignment | None, now: float
    ) -> None:
        """Its head alone takes nothing away: what was held stays, and the content is waited for."""
        self.admissions.forget(key)
        if self._order.held.pop(key, None) is not None:
            self._awaiting[key] = None
        if self._withheld.begin(key, now):
            self._changed[key] = None
        if former is None:
            self._assign(key, Assignment(None, gated=head.is_gated))

    def _admit(self, key: MailKey, body: DeltaBody, now: Instant) -> Reference | None:
        """The arm that the gates give this destination now."""
        assert self.profile is not None
        who = Candidate(self.profile, self._inventory.locations)
        before = self.admissions.of(key)
        admission = self.admissions.judge(key, body.gates, who, now)
        if admission != before:
            self._changed[key] = None
        return admission.arm

    def _tally(self, key: MailKey) -> ObjectTally:
        """The placement's objects as they are now."""
        tally, claims = self._tallies[key], self._ownership.of(key)
        tally.refresh(lambda obj: self.copies.judged(key, obj) if obj in claims else None)
        return tally

    def _leaving(self, key: MailKey) -> PlacementOutcome | None:
        said = PlacementOutcome("leaving", "unknown", ARM_NOTHING, self.copies.left_samples(key))
        return said if self._history.left(key) else None

    def _clash_samples(self, assignment: Assignment) -> Iterator[ExceptionSample]:
        for obj, why in self._customized_forms.clashes(assignment.forms):
            yield self._sample(2, str(obj), f"{CLASH}: {why}")

    def _sample(self, severity: int, obj: str, reason: str) -> ExceptionSample:
        return sample(severity, obj, reason, str(self.path))

    def _look_at_left(self, key: ObjectKey) -> None:
        self._history.set_left(key, is_left=key in self._observed and key not in self.wanted)

    def _release(self, placement: MailKey, keys: Iterable[ObjectKey]) -> None:
        """Let go of what a placement claimed before, and others want: it is theirs to remove."""
        claimed = self._ownership.of(placement)
        for key in keys:
            if key in self.wanted and key not in claimed:
                self._history.remove(placement, key)
