"""The edge's own part: which placements are meant for its destination, and what became of them.

It keeps also deltas that do not match now, believes only a profile whose path is its own, and asks
for removals only through what it no longer wants (design.md, §4, "Plan"). One that is moved to
another parent stays who it was until its new place is told, and leaves nothing behind unmeant.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from relay.core.records.accepted import Held
from relay.core.destination.claims import Claims, Wanted
from relay.core.content.content import Content, entries_of
from relay.core.events import ObjectObserved
from relay.core.destination.tally import Judged, Tally
from relay.core.where import Where
from schemas.blobs import Reference
from schemas.chunks import ManifestEntry
from schemas.identity import MailKey, NodePath
from schemas.moves import former_paths
from schemas.objects import ObjectKey
from schemas.records import BUCKETS, HINTED, OVER_LOCATION, DeltaHead, Gate, Profile, bucket
from schemas.reports import (
    ARM_NOTHING,
    Done,
    ExceptionSample,
    Health,
    ObjectResult,
    State,
    Summary,
)

REASON_MAX_CHARACTERS = 200
CONTENT_REFUSED = "ContentRefused: a blob of this placement is missing or damaged"
SAMPLES_MAX = 20


@dataclass(slots=True)
class Assignment:
    """What one placement means for this destination: an arm, and its entries once they are here.

    `former` are the entries that stay in force until then. Without an arm to fetch and without
    entries the content is withheld: the parent sent a bare head, yet the placement matches here.
    """

    arm: Reference | None
    priority: int
    entries: tuple[ManifestEntry, ...] | None = None
    former: tuple[ManifestEntry, ...] = ()

    @property
    def in_force(self) -> tuple[ManifestEntry, ...]:
        return self.former if self.entries is None else self.entries


class Edge:
    """The destination at one node.

    Holds no deltas itself: `evaluate` is told of each that may have changed. What happens to one
    placement or object costs as much, however many others there are. `changed` says that `resolve`
    is due, `wants_changed` that it chose otherwise than before.
    """

    def __init__(
        self,
        path: NodePath,
        where: Where,
        content: Content,
        done: Iterable[Done],
        former: Iterable[NodePath] = (),
    ) -> None:
        self.path = path
        self._former = frozenset(former)
        self._on_the_move: dict[MailKey, Profile] = {}
        self.profile: Profile | None = None
        self.assigned: dict[MailKey, Assignment] = {}
        self.changed = False
        self.wants_changed = False
        self._where = where
        self._content = content
        self._claims = Claims()
        self._moved: dict[MailKey, None] = {}
        self._awaiting: dict[MailKey, None] = {}
        self._tallies: dict[MailKey, Tally] = {}
        self._observed: dict[ObjectKey, ObjectObserved] = {}
        # Objects that a placement claimed here and that may still be present, and the reverse.
        self._claimed: dict[MailKey, dict[ObjectKey, None]] = {}
        self._claimers: dict[ObjectKey, dict[MailKey, None]] = {}
        for item in done:
            for placement in item.placements:
                self._note_claim(MailKey(placement), item.key)
            self._observed[item.key] = ObjectObserved(
                item.key, present=True, address="", error="", health="unknown", status=None
            )

    def take_profile(self, key: MailKey, profile: Profile) -> bool:
        """Take a profile in force, or a deleted one; whether who hangs here is told otherwise.

        One of another path counts while none has this one, if this very node hung there, or if it
        says that what hung here was moved with all it has: it takes nothing away.
        """
        before = self.profile
        moved = profile.path in self._former or self.path in former_paths(profile.annotations)
        if moved and profile.path != self.path and not profile.deleted:
            self._on_the_move[key] = profile
        else:
            self._on_the_move.pop(key, None)
        self.own_profile()
        return self.profile != before

    def own_profile(self) -> None:
        """Find the destination that hangs here: the newest profile whose path is this one."""
        mine = [p for p in self._where.profiles.values() if p.path == self.path]
        mine = mine or list(self._on_the_move.values())
        self.profile = max(mine, key=lambda profile: profile.generation, default=None)

    def evaluate(self, held: Held) -> None:
        """Look at a delta again: does it match, which arm, is its content here."""
        key, head = held.key, held.record
        if not isinstance(head, DeltaHead):
            return
        former = self.assigned.get(key)
        if not self._meant(held):
            self.drop(key)
            return
        if held.body is None:
            if former is None:
                self._assign(key, Assignment(None, head.priority))
            return
        gate = next(gate for gate in held.body.gates if self._admits(gate))
        assignment = Assignment(gate.arm, head.priority, () if gate.arm is None else None)
        if former is not None and former.arm == gate.arm and former.entries is not None:
            assignment.entries = former.entries
        elif former is not None:
            assignment.former = former.in_force
        if former != assignment:
            self._assign(key, assignment)
        if assignment.entries is None and gate.arm is not None:
            hints = tuple(r for r in head.references if r.kind in HINTED)
            here = self._content.begin(_owner(key), (gate.arm, *hints), read=True)
            if here:
                self.content_ready(key)

    def content_ready(self, key: MailKey) -> None:
        """Take the entries of an arm whose content is all here."""
        assignment = self.assigned.get(key)
        if assignment is None or assignment.arm is None:
            return
        plains = self._content.plains(_owner(key))
        entries = entries_of(plains, assignment.arm)
        plains.clear()
        for entry in entries:
            self._note_claim(key, entry.key)
        self._assign(key, Assignment(assignment.arm, assignment.priority, entries))

    def drop(self, key: MailKey) -> None:
        """The placement is not meant for this destination any more."""
        self._content.end(_owner(key))
        if self.assigned.pop(key, None) is not None:
            self._awaiting.pop(key, None)
            self._tallies.pop(key, None)
            self._claims.put(key, 0, ())
            self._moved[key] = None
            self.changed = True

    def resolve(self) -> dict[MailKey, None]:
        """Choose again what is wanted; names the placements whose report may change."""
        moved = self._claims.resolve()
        touched, self._moved = self._moved, {}
        self.changed, self.wants_changed = False, moved.wants
        for key in [key for key in touched if key not in self.assigned]:
            self._release(key, [k for k in self._claimed.get(key, ()) if k in self.wanted])
        for key, objects in moved.told.items():
            touched[key] = None
            if key in self._tallies:
                self._tallies[key].stale(objects)
        for object_key in moved.toggled:
            claimers = dict(self._claimers.get(object_key, {}))
            touched |= claimers
            for key in claimers if object_key in self.wanted else ():
                if key not in self.assigned:
                    self._release(key, [object_key])
        return touched

    def _assign(self, key: MailKey, assignment: Assignment) -> None:
        self.assigned[key] = assignment
        self._awaiting.pop(key, None)
        if assignment.entries is None:
            self._awaiting[key] = None
        differ = self._claims.put(key, assignment.priority, assignment.in_force)
        self._tallies.setdefault(key, Tally()).stale(differ)
        self._moved[key] = None
        self.changed = True

    @property
    def wanted(self) -> dict[ObjectKey, Wanted]:
        return self._claims.wanted

    @property
    def awaits_content(self) -> bool:
        """Whether some placement meant for this destination is not all here yet."""
        return bool(self._awaiting)

    def observe(self, event: ObjectObserved) -> dict[MailKey, None]:
        """Take the syncer's word on an object; names the placements whose report changes."""
        stays = event.present or bool(event.error) or event.key in self.wanted
        if stays and self._observed.get(event.key) == event:
            return {}
        claimers = dict(self._claimers.get(event.key, {}))
        if stays:
            self._observed[event.key] = event
        else:
            # Said before, too, perhaps: but then the object was wanted, and only not there yet.
            self._observed.pop(event.key, None)
            self._forget_claims(event.key)
        for key in self._claims.on(event.key):
            self._tallies[key].stale((event.key,))
        return claimers

    def clean(self, key: MailKey) -> bool:
        """Whether nothing of the placement is left here."""
        return key not in self.assigned and not self._leftovers(key)

    def summary(self, key: MailKey, now_ms: int) -> Summary:
        """One destination's report on one placement; EMPTY if it has no part in it."""
        if self.profile is not None and self.profile.path != self.path:
            # On the move: it counts where its record says that it hangs, and nowhere else.
            return Summary()
        assignment = self.assigned.get(key)
        if assignment is None:
            return self._leaving(key, now_ms)
        arm = ARM_NOTHING if assignment.arm is None else assignment.arm.address
        if assignment.entries is None:
            samples = self._content_sample(key)
            return _one("failing" if samples else "pending", "unknown", arm, samples, now_ms)
        if not assignment.entries and self._leftovers(key):
            return self._leaving(key, now_ms)
        tally, claims = self._tallies[key], self._claims.of(key)
        tally.refresh(lambda obj: self._judged(key, obj) if obj in claims else None)
        return _one(tally.state, tally.health, arm, tally.worst(SAMPLES_MAX), now_ms)

    def results(self, key: MailKey) -> list[ObjectResult]:
        """The returned states of the objects that the placement wants back."""
        assignment = self.assigned.get(key)
        if assignment is None or assignment.entries is None:
            return []
        who = self.profile.destination if self.profile else ""
        booked = sorted(self._claims.booked.get(key, ()))
        seen = ((obj, self._observed.get(obj)) for obj in booked)
        return [ObjectResult(obj, 1, who, saw.status if saw else None) for obj, saw in seen]

    def _meant(self, held: Held) -> bool:
        """Whether the delta is in force and means this destination, by what is signed."""
        if self.profile is None or held.record.deleted:
            return False
        return self._where.matches(held.key, self.profile)

    def _admits(self, gate: Gate) -> bool:
        assert self.profile is not None
        if gate.below < BUCKETS and bucket(self.profile.destination, gate.salt) >= gate.below:
            return False
        if gate.selector is None:
            return True
        if gate.over != OVER_LOCATION:
            return gate.selector.matches(self.profile.labels)
        located = self._where.locations_of(self.profile)
        return any(gate.selector.matches(self._where.locations[k].labels) for k in located)

    def _judged(self, key: MailKey, obj: ObjectKey) -> Judged:
        observed = self._observed.get(obj)
        present = observed is not None and observed.present
        health: Health = observed.health if observed and present else "progressing"
        state, sample = self._state_of(key, obj)
        return state, health, sample

    def _state_of(self, key: MailKey, obj: ObjectKey) -> tuple[State, ExceptionSample | None]:
        path = str(self.path)
        winner = self._claims.winner_over(key, obj)
        if winner is not None:
            reason = f"Overridden: placement {winner[:8]} from another source has this object"
            return "failing", ExceptionSample(1, str(obj), reason, 1, path)
        observed = self._observed.get(obj)
        if observed is not None and observed.error:
            reason = observed.error[:REASON_MAX_CHARACTERS]
            return "failing", ExceptionSample(0, str(obj), reason, 1, path)
        wanted = self.wanted.get(obj)
        if observed is None or wanted is None or not observed.present:
            return "pending", None
        same = observed.address == wanted.reference.address
        if not same and not (wanted.create_only and observed.address):
            return "pending", None
        if observed.health == "degraded":
            reason = (observed.reason or "Degraded")[:REASON_MAX_CHARACTERS]
            return "synced", ExceptionSample(2, str(obj), reason, 1, path)
        return "synced", None

    def _leaving(self, key: MailKey, now_ms: int) -> Summary:
        left = self._leftovers(key)
        if not left:
            return Summary()
        samples = [
            ExceptionSample(0, str(k), o.error[:REASON_MAX_CHARACTERS], 1, str(self.path))
            for k in left
            if (o := self._observed[k]).error
        ]
        return _one("leaving", "unknown", ARM_NOTHING, samples, now_ms)

    def _leftovers(self, key: MailKey) -> list[ObjectKey]:
        claimed = self._claimed.get(key, ())
        return [k for k in claimed if k in self._observed and k not in self.wanted]

    def _content_sample(self, key: MailKey) -> list[ExceptionSample]:
        if self._content.refused_since(_owner(key)) is None:
            return []
        return [ExceptionSample(0, "", CONTENT_REFUSED, 1, str(self.path))]

    def _note_claim(self, placement: MailKey, key: ObjectKey) -> None:
        self._claimed.setdefault(placement, {})[key] = None
        self._claimers.setdefault(key, {})[placement] = None

    def _release(self, placement: MailKey, keys: Iterable[ObjectKey]) -> None:
        """Let go of what a placement claimed that is gone, and others want: theirs to remove."""
        for key in keys:
            self._claimers[key].pop(placement)
            self._unclaim(placement, key)

    def _forget_claims(self, key: ObjectKey) -> None:
        for placement in self._claimers.pop(key, {}):
            if placement in self._claims.on(key):
                self._claimers.setdefault(key, {})[placement] = None
            else:
                self._unclaim(placement, key)

    def _unclaim(self, placement: MailKey, key: ObjectKey) -> None:
        claimed = self._claimed[placement]
        claimed.pop(key, None)
        if not claimed:
            del self._claimed[placement]


def _one(
    state: State, health: Health, arm: str, samples: list[ExceptionSample], now_ms: int
) -> Summary:
    worst = tuple(sorted(samples, key=lambda sample: sample.rank)[:SAMPLES_MAX])
    return Summary({state: 1}, {health: 1}, {arm: 1}, worst, oldest_ms=now_ms)


def _owner(key: MailKey) -> str:
    return f"edge/{key}"
