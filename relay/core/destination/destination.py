"""The destination at a node: which placements are meant for it, and what became of them.

It keeps also deltas that do not match now, believes only a profile whose path is its own, and asks
for removals only through what it no longer wants. One that is moved to another parent stays who it
was until its new place is told, and leaves nothing behind unmeant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple

from relay.core.content.content import Content, entries_of, upsync_of
from relay.core.destination.claim_history import ClaimHistory
from relay.core.destination.claims import DesiredObject, ObjectOwnership
from relay.core.destination.customizing import (
    NOBODY,
    Customize,
    Customizing,
    Forms,
    customizes_nothing,
)
from relay.core.destination.removals import DROPPED, RemovalCauses
from relay.core.destination.tally import SAMPLES_MAX, Judged, Said, Tally
from relay.core.destination.upsync import UpsyncWishes
from relay.core.events import Instant, ObjectObserved, UpsyncObserved
from schemas.blobs import Reference
from schemas.chunks import ManifestEntry
from schemas.identity import MailKey, NodePath
from schemas.moves import former_paths
from schemas.objects import ObjectKey
from schemas.placements import source_title
from schemas.properties import properties_of
from schemas.records import (
    BUCKETS,
    HINTED,
    OVER_LOCATION,
    DeltaBody,
    DeltaHead,
    Gate,
    LocationRecord,
    Profile,
    bucket,
)
from schemas.reports import (
    ARM_NOTHING,
    ARM_OLDER,
    AT_WORK,
    NOT_WORKING,
    Done,
    ExceptionSample,
    Health,
    ObjectResult,
    State,
    Summary,
)

REASON_MAX_CHARACTERS = 200
CONTENT_REFUSED = "ContentRefused: a blob of this placement is missing or damaged"
WITHHELD = "Withheld: it is meant for this destination, and its parent sent no content"
WITHHELD_AFTER_SECONDS = 60.0
FROZEN, CLASH = "Frozen", "Clash"
_OWNER = "edge/"


class Inventory(NamedTuple):
    """What the signed inventory says of a destination, whether or not its profile is in force."""

    # Whether a placement in force is meant for it.
    selects: Callable[[Profile, MailKey], bool]
    # The Locations that it belongs to.
    locations: Callable[[Profile], Iterable[LocationRecord]]


class Resolution(NamedTuple):
    """What choosing again came to."""

    # Placements whose report may be another.
    touched: dict[MailKey, None]
    # Whether the syncer is to be told.
    wants_changed: bool


@dataclass(frozen=True, slots=True)
class Assignment:
    """What one placement means for this destination."""

    # None where the destination gets nothing of it, or nothing is known of it yet.
    arm: Reference | None
    priority: int
    # None until the arm's content is here; without an arm to fetch it is withheld.
    entries: tuple[ManifestEntry, ...] | None = None
    # What stays in force until then.
    former: tuple[ManifestEntry, ...] = ()
    # What those in force become here, where that is not what they are.
    forms: Forms = field(default_factory=dict)
    # The generation of the record by which it is so.
    cause: int = field(default=DROPPED, compare=False)

    @property
    def in_force(self) -> tuple[ManifestEntry, ...]:
        return self.former if self.entries is None else self.entries


class Destination:
    """The destination at one node.

    Holds no deltas itself: `evaluate` is told of each that may have changed. What happens to one
    placement or object costs as much, however many others there are.
    """

    def __init__(
        self,
        path: NodePath,
        inventory: Inventory,
        content: Content,
        done: Iterable[Done],
        *,
        last_loss: int = 0,
        former: Iterable[NodePath] = (),
        customize: Customize = customizes_nothing,
    ) -> None:
        """`done` is what its syncer applied; `former` are paths at which this very node hung.

        `last_loss` is the newest generation by which something may have become unwanted before.
        """
        self.path = path
        self.profile: Profile | None = None
        self._former = frozenset(former)
        # Profiles that name this path, and those that this node may still be.
        self._profiles: dict[MailKey, Profile] = {}
        self._on_the_move: dict[MailKey, Profile] = {}
        self._inventory = inventory
        self._content = content
        self._assigned: dict[MailKey, Assignment] = {}
        # What people call these placements.
        self._titles: dict[MailKey, str] = {}
        # Placements whose content is not all here, and since when only their head is.
        self._awaiting: dict[MailKey, None] = {}
        self._withheld: dict[MailKey, float] = {}
        self._withheld_unsaid: dict[MailKey, float] = {}
        # Placements of which some object cannot be customized: they stay as they were, and why.
        self._frozen: dict[MailKey, tuple[ExceptionSample, ...]] = {}
        self._customizing = Customizing(customize)
        self._ownership = ObjectOwnership()
        # Placements that changed since the last `resolve`.
        self._changed: dict[MailKey, None] = {}
        self._tallies: dict[MailKey, Tally] = {}
        self._observed: dict[ObjectKey, ObjectObserved] = {}
        self._history = ClaimHistory()
        self._causes = RemovalCauses(last_loss)
        self.upsync = UpsyncWishes()
        for item in done:
            self._causes.lost([item.key], last_loss)
            for placement in item.placements:
                self._history.add(MailKey(placement), item.key)
            self._observed[item.key] = ObjectObserved(
                item.key, present=True, address="", error="", health="unknown", status=None
            )
            self._history.set_left(item.key, is_left=True)

    # What is meant.

    def put_profile(self, key: MailKey, profile: Profile | None) -> bool:
        """Take a profile in force, None if it is none any more; whether who hangs here is another.

        One of another path counts while none has this one, if this very node hung there, or if it
        says that what hung here was moved with all it has: it takes nothing away.
        """
        before = self.profile
        self._profiles.pop(key, None)
        self._on_the_move.pop(key, None)
        if profile is not None and profile.path == self.path:
            self._profiles[key] = profile
        elif profile is not None and (
            profile.path in self._former or self.path in former_paths(profile.annotations)
        ):
            self._on_the_move[key] = profile
        mine = self._profiles or self._on_the_move
        self.profile = max(mine.values(), key=lambda each: each.generation, default=None)
        return self.profile != before

    def read_properties(self) -> None:
        """Take what the inventory in force says of the destination; `evaluate` follows it."""
        profile = self.profile
        if profile is None:
            self._customizing.put(NOBODY)
        else:
            self._customizing.put(properties_of(profile, self._inventory.locations(profile)))

    def evaluate(
        self, key: MailKey, head: DeltaHead, body: DeltaBody | None, *, cause: int, now: float
    ) -> None:
        """Look at a delta again: is it meant, which arm, is its content here.

        `cause` is the generation of the record for which it is looked at: its own, or that of a
        profile or Location; DROPPED if a snapshot dropped that.
        """
        former = self._assigned.get(key)
        if self.profile is None or not self._inventory.selects(self.profile, key):
            self.drop(key, cause)
            return
        self._titles[key] = source_title(head.source)
        if body is None:
            self._withhold(key, head, former, now)
            return
        if self._withheld.pop(key, None) is not None:
            self._withheld_unsaid.pop(key, None)
            self._changed[key] = None
        gate = next(gate for gate in body.gates if self._admits(gate))
        assignment = _following(former, gate.arm, head.priority, cause)
        if gate.arm is None:
            self.upsync.put(key, ())
        if not self._customizing.is_current(assignment.forms):
            assignment = replace(assignment, entries=None, former=assignment.in_force)
        if former != assignment:
            self._assign(key, assignment)
        self._assigned[key] = assignment
        if assignment.entries is not None:
            self._frozen.pop(key, None)
        elif gate.arm is not None:
            self._awaiting[key] = None
            hints = tuple(r for r in body.content if r.kind in HINTED)
            if self._content.begin(owner_of(key), (gate.arm, *hints), read=True):
                self.content_ready(key)

    def drop(self, key: MailKey, cause: int = DROPPED) -> None:
        """The placement is not meant for this destination any more."""
        self._content.end(owner_of(key))
        self.upsync.put(key, ())
        self._withheld.pop(key, None)
        self._withheld_unsaid.pop(key, None)
        self._frozen.pop(key, None)
        self._titles.pop(key, None)
        if self._assigned.pop(key, None) is not None:
            self._awaiting.pop(key, None)
            self._tallies.pop(key, None)
            self._ownership.put(key, 0, ())
            self._causes.lost(self._history.objects(key), cause)
            self._changed[key] = None
        elif self.profile is not None:
            self._causes.lost_before(self._history.objects(key), cause)

    def content_ready(self, key: MailKey) -> None:
        """Take the entries of an arm whose content is all here, if all of it can be customized."""
        assignment = self._assigned.get(key)
        if assignment is None or assignment.arm is None:
            return
        plains = self._content.plains(owner_of(key))
        entries = entries_of(plains, assignment.arm)
        clauses = upsync_of(plains, assignment.arm)
        forms, failed = self._customizing.forms(entries, plains)
        plains.clear()
        if failed:
            self._freeze(key, failed)
            return
        self._frozen.pop(key, None)
        self.upsync.put(key, clauses)
        for entry in entries:
            self._history.add(key, entry.key)
            self._look_at_left(entry.key)
        if not assignment.former:
            # What it claimed before this run is known by its history alone.
            listed = {entry.key for entry in entries}
            gone = [obj for obj in self._history.objects(key) if obj not in listed]
            self._causes.lost(gone, assignment.cause)
        self._assign(key, replace(assignment, entries=entries, former=(), forms=forms))

    @property
    def is_stale(self) -> bool:
        """Whether `resolve` is due."""
        return bool(self._changed) or self.upsync.is_news

    def resolve(self) -> Resolution:
        """Choose again what is wanted."""
        delta = self._ownership.resolve()
        touched, self._changed = self._changed, {}
        for key in touched:
            self._release(key, self._history.objects(key))
        for key, objects in delta.told.items():
            touched[key] = None
            if key in self._tallies:
                self._tallies[key].stale(objects)
        for object_key in delta.toggled:
            if object_key in self.wanted:
                self._causes.forget(object_key)
            for key in self._history.placements(object_key):
                touched[key] = None
                self._release(key, [object_key])
            self._look_at_left(object_key)
        news, self.upsync.is_news = self.upsync.is_news, False
        return Resolution(touched, delta.wants or news)

    # What follows for the syncer.

    @property
    def wanted(self) -> Mapping[ObjectKey, DesiredObject]:
        return self._ownership.wanted

    @property
    def awaits_content(self) -> bool:
        """Whether some placement meant for this destination is not all here yet."""
        return bool(self._awaiting)

    def may_prune(self, key: ObjectKey, settled: int) -> bool:
        """Whether what made the object unwanted is settled; `settled` is a reached snapshot's.

        Not while a placement that claimed it has its content still to come: it may want it.
        """
        if key in self.wanted:
            return False
        unknown = (self._awaiting, self._withheld, self._frozen)
        if any(p in each for p in self._history.placements(key) for each in unknown):
            return False
        return self._causes.of(key) <= settled

    def observe(self, event: ObjectObserved) -> list[MailKey]:
        """Take the syncer's word on an object; names the placements whose report changes."""
        key = event.key
        stays = event.present or bool(event.error) or key in self.wanted
        if stays and self._observed.get(key) == event:
            return []
        claimers = self._history.placements(key)
        if stays:
            self._observed[key] = event
        else:
            # Said before, too, perhaps: but then the object was wanted, and only not there yet.
            self._observed.pop(key, None)
            self._causes.forget(key)
            for placement in claimers:
                if placement not in self._ownership.on(key):
                    self._history.remove(placement, key)
        self._look_at_left(key)
        for placement in self._ownership.on(key):
            self._tallies[placement].stale((key,))
        return claimers

    def observe_upsync(self, event: UpsyncObserved) -> Iterable[MailKey]:
        """Take a word on what comes up; the placements whose report changes."""
        return self.upsync.observe(event)

    # What is reported.

    def is_clean(self, key: MailKey) -> bool:
        """Whether nothing of the placement is left here."""
        return key not in self._assigned and not self._history.left(key)

    def deadline(self) -> float | None:
        """When `tick` is due, in monotonic seconds."""
        since = min(self._withheld_unsaid.values(), default=None)
        return None if since is None else since + WITHHELD_AFTER_SECONDS

    def tick(self, now: float) -> list[MailKey]:
        """The placements whose content is withheld for long enough now to be told of."""
        late = [
            key
            for key, since in self._withheld_unsaid.items()
            if since + WITHHELD_AFTER_SECONDS <= now
        ]
        for key in late:
            del self._withheld_unsaid[key]
        return late

    def is_pending(self, key: MailKey) -> bool:
        """Whether something of a placement is still under way; what is wrong is not looked for."""
        said = self._said(key)
        return said is not None and said.state == "pending"

    def summary(self, key: MailKey, now: Instant) -> Summary:
        """One destination's report on one placement; EMPTY if it has no part in it."""
        said = self._said(key)
        return Summary() if said is None else said.summary(now.wall_ms)

    def _said(self, key: MailKey) -> Said | None:
        if self.profile is not None and self.profile.path != self.path:
            # On the move: it counts where its record says that it hangs, and nowhere else.
            return None
        assignment = self._assigned.get(key)
        if assignment is None:
            return self._leaving(key)
        if key in self._withheld:
            samples = [] if key in self._withheld_unsaid else [self._sample(0, "", WITHHELD)]
            return Said("failing" if samples else "pending", "unknown", ARM_OLDER, samples)
        arm = ARM_NOTHING if assignment.arm is None else assignment.arm.address
        if key in self._frozen:
            return self._frozen_here(key)
        if assignment.entries is None:
            samples = self._content_sample(key)
            return Said("failing" if samples else "pending", "unknown", arm, samples)
        left = self._left_samples(key)
        if not assignment.entries and self._history.left(key):
            return self._leaving(key)
        left += self.upsync.samples(key, str(self.path))
        tally = self._refreshed(key)
        state = tally.state
        if any(sample.severity == 0 for sample in left):
            state = "failing"
        elif state == "synced" and self._history.left(key):
            # What it lost is still to be pruned.
            state = "pending"
        said = chain(tally.worst(SAMPLES_MAX), left, self._clash_samples(assignment))
        return Said(state, tally.health, arm, said)

    def results(self, key: MailKey) -> list[ObjectResult]:
        """The returned states of the objects that the placement wants back."""
        assignment = self._assigned.get(key)
        if assignment is None or (assignment.entries is None and key not in self._frozen):
            return []
        who = self.profile.destination if self.profile else ""
        booked = sorted(self._ownership.booked.get(key, ()))
        seen = ((obj, self._observed.get(obj)) for obj in booked)
        return [ObjectResult(obj, 1, who, saw.status if saw else None) for obj, saw in seen]

    def returned(self, key: MailKey, obj: ObjectKey) -> bytes | None:
        """The status that its copy of an object has, for a placement that lists it; b"" is none.

        None if the placement has no such object here, or not yet, or no one to speak for it.
        """
        assignment = self._assigned.get(key)
        if assignment is None or self.profile is None or self.profile.path != self.path:
            return None
        if obj not in self._ownership.of(key):
            return None
        observed = self._observed.get(obj)
        lost = self._ownership.winner_over(key, obj) is not None
        return b"" if observed is None or lost else observed.status or b""

    def books(self, key: MailKey, obj: ObjectKey) -> bool:
        """Whether what an object returns is said under this placement."""
        return obj in self._ownership.booked.get(key, ())

    def check(self) -> None:
        """Assert that what is derived agrees with what it is derived from."""
        self._ownership.check()
        self._history.check([key for key in self._observed if key not in self.wanted])
        assert self._tallies.keys() == self._assigned.keys()
        for key, assignment in self._assigned.items():
            assert assignment.entries is None or key not in self._awaiting
            assert (assignment.entries is None) == (key in self._awaiting or key in self._frozen)
            assert self._ownership.of(key).keys() == {each.key for each in assignment.in_force}
        for tally in self._tallies.values():
            tally.check()
        assert self._withheld.keys() <= self._assigned.keys()
        assert self._withheld_unsaid.keys() <= self._withheld.keys()

    def _assign(self, key: MailKey, assignment: Assignment) -> None:
        self._assigned[key] = assignment
        self._awaiting.pop(key, None)
        if assignment.entries is None:
            self._awaiting[key] = None
        differ = self._ownership.put(
            key, assignment.priority, assignment.in_force, assignment.forms
        )
        claimed = self._ownership.of(key)
        self._causes.lost([obj for obj in differ if obj not in claimed], assignment.cause)
        self._tallies.setdefault(key, Tally()).stale(differ)
        self._changed[key] = None

    def _freeze(self, key: MailKey, failed: Mapping[ObjectKey, str]) -> None:
        """All of the placement stays as it is here: nothing comes, changes or goes."""
        samples = [
            self._sample(0, str(obj), f"{FROZEN}: {why}"[:REASON_MAX_CHARACTERS])
            for obj, why in failed.items()
        ]
        self._frozen[key] = tuple(sorted(samples, key=lambda sample: sample.rank)[:SAMPLES_MAX])
        self._awaiting.pop(key, None)
        self._changed[key] = None

    def _frozen_here(self, key: MailKey) -> Said:
        tally = self._refreshed(key)
        health = tally.health if self._ownership.of(key) else "unknown"
        samples = chain(self._frozen[key], tally.worst(SAMPLES_MAX))
        return Said("frozen", health, ARM_OLDER, samples)

    def _refreshed(self, key: MailKey) -> Tally:
        tally, claims = self._tallies[key], self._ownership.of(key)
        tally.refresh(lambda obj: self._judged(key, obj) if obj in claims else None)
        return tally

    def _withhold(
        self, key: MailKey, head: DeltaHead, former: Assignment | None, now: float
    ) -> None:
        """Its head alone takes nothing away: what was held stays, and the content is waited for."""
        if key not in self._withheld:
            self._withheld[key] = self._withheld_unsaid[key] = now
            self._changed[key] = None
        if former is None:
            self._assign(key, Assignment(None, head.priority))

    def _admits(self, gate: Gate) -> bool:
        assert self.profile is not None
        if gate.below < BUCKETS and bucket(self.profile.destination, gate.salt) >= gate.below:
            return False
        if gate.selector is None:
            return True
        if gate.over != OVER_LOCATION:
            return gate.selector.matches(self.profile.labels)
        located = self._inventory.locations(self.profile)
        return any(gate.selector.matches(location.labels) for location in located)

    def _judged(self, key: MailKey, obj: ObjectKey) -> Judged:
        observed = self._observed.get(obj)
        present = observed is not None and observed.present
        health: Health = observed.health if observed and present else "progressing"
        state, sample = self._state_of(key, obj)
        return state, health, sample

    def _state_of(self, key: MailKey, obj: ObjectKey) -> tuple[State, ExceptionSample | None]:
        winner = self._ownership.winner_over(key, obj)
        if winner is not None:
            reason = (
                f"Overridden: {self._titles[winner]} says otherwise; say the same, or rename it"
            )
            return "failing", self._sample(1, str(obj), reason)
        observed = self._observed.get(obj)
        if observed is not None and observed.error:
            reason = observed.error[:REASON_MAX_CHARACTERS]
            return "failing", self._sample(0, str(obj), reason)
        wanted = self.wanted.get(obj)
        if observed is None or wanted is None or not observed.present:
            return "pending", None
        same = observed.address == wanted.address
        if not same and not (wanted.create_only and observed.address):
            return "pending", None
        if observed.health == "degraded":
            reason = (observed.reason or "Degraded")[:REASON_MAX_CHARACTERS]
            return "synced", self._sample(NOT_WORKING, str(obj), reason)
        if observed.health == "progressing" and observed.reason:
            reason = observed.reason[:REASON_MAX_CHARACTERS]
            return "synced", self._sample(AT_WORK, str(obj), reason)
        return "synced", None

    def _leaving(self, key: MailKey) -> Said | None:
        if not self._history.left(key):
            return None
        return Said("leaving", "unknown", ARM_NOTHING, self._left_samples(key))

    def _left_samples(self, key: MailKey) -> list[ExceptionSample]:
        """What keeps the placement's leftovers from being pruned."""
        seen = (self._observed[obj] for obj in self._history.left(key))
        return [
            self._sample(0, str(s.key), s.error[:REASON_MAX_CHARACTERS]) for s in seen if s.error
        ]

    def _clash_samples(self, assignment: Assignment) -> Iterator[ExceptionSample]:
        for obj, why in self._customizing.clashes(assignment.forms):
            yield self._sample(2, str(obj), f"{CLASH}: {why}"[:REASON_MAX_CHARACTERS])

    def _content_sample(self, key: MailKey) -> list[ExceptionSample]:
        if self._content.refused_since(owner_of(key)) is None:
            return []
        return [self._sample(0, "", CONTENT_REFUSED)]

    def _sample(self, severity: int, obj: str, reason: str) -> ExceptionSample:
        return ExceptionSample(severity, obj, reason, 1, str(self.path))

    def _look_at_left(self, key: ObjectKey) -> None:
        self._history.set_left(key, is_left=key in self._observed and key not in self.wanted)

    def _release(self, placement: MailKey, keys: Iterable[ObjectKey]) -> None:
        """Let go of what a placement claimed before, and others want: it is theirs to remove."""
        claimed = self._ownership.of(placement)
        for key in keys:
            if key in self.wanted and key not in claimed:
                self._history.remove(placement, key)


def owner_of(key: MailKey) -> str:
    """The owner of the walk for a placement's content at a destination."""
    return f"{_OWNER}{key}"


def placement_of(owner: str) -> MailKey | None:
    """The placement that such an owner names; None of any other."""
    return MailKey(owner.removeprefix(_OWNER)) if owner.startswith(_OWNER) else None


def _following(
    former: Assignment | None, arm: Reference | None, priority: int, cause: int
) -> Assignment:
    """What follows for an arm; what was held stays in force until its entries are known."""
    if arm is None:
        return Assignment(None, priority, (), cause=cause)
    if former is None:
        return Assignment(arm, priority, cause=cause)
    forms = former.forms
    if former.entries is None:
        # Two records in a row took something, and nothing came of the first yet.
        cause = max(cause, former.cause)
    elif former.arm == arm:
        return Assignment(arm, priority, former.entries, forms=forms, cause=cause)
    return Assignment(arm, priority, former=former.in_force, forms=forms, cause=cause)
