"""What controllers, asks and people may know of a node; nothing here changes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from relay.core.asks.routing import LastHeard
from relay.core.audience import HERE
from relay.core.collectors.collected_results import Result
from relay.core.collectors.upsynced import Sources
from relay.core.destination.assignment import owner_of
from relay.core.destination.claims import DesiredObject
from relay.core.destination.copies_here import CopyHere, ListedObject, PruneWait
from relay.core.destination.destination import CONTENT_REFUSED
from relay.core.downstream import Downstream
from relay.core.link.child import ChildFigures
from relay.core.link.session import ChildStatus
from relay.core.link.target import mail_owner
from relay.core.records.accepted import AcceptedRecord, is_delta
from relay.core.records.trust import TrustVerdict
from relay.core.release_waves import wave_of_centre, wave_of_edge, wave_of_relay
from relay.core.reports.reduce import EMPTY, merge
from relay.core.rooms import Rooms, RoomsPart
from relay.core.upstream import STALE, Upstream
from schemas.objects.objects import ObjectKey
from schemas.records.health_rules import HealthProgram
from schemas.records.records import (
    LocationHead,
    LocationRecord,
    Profile,
    Record,
    ReleaseRecord,
)
from schemas.records.release_body import ReleaseWave
from schemas.records.signing import Envelope
from schemas.records.snapshots import SnapshotRecord
from schemas.reports.reports import (
    CELL_FORMER,
    ORPHANED,
    Count,
    ExceptionSample,
    ObjectResult,
    Summary,
)
from schemas.reports.running import Running
from schemas.reports.upsync import UpsyncClause
from schemas.values.identity import ContentHash, DestinationId, MailKey, NodePath

OUTDATED = "Withheld: a newer version is in force, and missing from the mailbox at the parent"
ORPHANED_HERE = (
    f"{ORPHANED}: a newer version is in force here than the centre knows; "
    "apply the placement anew, or have the centre's count: leafcast accept NAME"
)
WITHHELD = "Withheld: it is in force here, and its content is missing from the mailbox"
WAITING_FOR_MAX = 20


class Orphan(NamedTuple):
    """A record in force that the centre does not know."""

    key: MailKey
    kind: str
    namespace: str
    name: str
    generation: int
    term: str


class RecordHere(NamedTuple):
    """How it is with one placement at a node."""

    # It was shown no newer snapshot for long.
    stale: bool
    # A newer record is in force, and not here; or one that the centre does not know.
    outdated: bool
    orphaned: bool
    # Its parent sent a head without content.
    head_only: bool
    # The blobs that it lacks, and for how long they were not to be had; None if that is not so.
    missing: tuple[ContentHash, ...]
    refused_seconds: float | None
    # By its own clock, ms since 1970.
    now_ms: int


class NodeView(RoomsPart):
    """What a node knows, for those who ask it."""

    def __init__(
        self, path: NodePath, rooms: Rooms, upstream: Upstream | None, downstream: Downstream
    ) -> None:
        """At the centre there is no upstream."""
        super().__init__(rooms)
        self._path = path
        self._upstream = upstream
        self._downstream = downstream

    @property
    def ready(self) -> bool:
        """Whether the node is in session with its parent, and read its mailbox to the end."""
        upstream = self._upstream
        return upstream is None or (upstream.has_memory and upstream.caught_up)

    @property
    def has_profile(self) -> bool:
        """At an edge: whether it is a destination, by a profile in force."""
        return self._destination is not None and self._destination.profile is not None

    @property
    def is_destination(self) -> bool:
        """Whether this node has a space to fill."""
        return self._destination is not None

    @property
    def profile(self) -> Profile | None:
        """At an edge: its profile in force."""
        return self._destination.profile if self._destination is not None else None

    @property
    def stopped(self) -> bool:
        """Whether another run has this node's place, so that this one does nothing."""
        return self._upstream is not None and self._upstream.link.stopped

    @property
    def parent_addresses(self) -> tuple[str, ...]:
        """Where its parent listens, as that said last in this run; nobody vouches for it."""
        return self._upstream.link.addresses if self._upstream is not None else ()

    @property
    def records(self) -> Mapping[MailKey, AcceptedRecord]:
        """What the node holds, by mail key; not to be changed."""
        return self._book.by_key

    @property
    def wanted(self) -> Mapping[ObjectKey, DesiredObject]:
        """At an edge: what its space shall hold."""
        return self._destination.wanted if self._destination is not None else {}

    def health_rule(self, wanted: DesiredObject) -> HealthProgram | None:
        """At an edge: the HealthRule by which an object counts that is wanted there."""
        return self._destination.health.of(wanted) if self._destination is not None else None

    @property
    def in_maintenance(self) -> bool:
        """At an edge: whether a person works there, so that nothing is changed."""
        return self._destination is not None and self._destination.maintenance.is_on

    @property
    def upsync(self) -> frozenset[UpsyncClause]:
        """At an edge: what of its space comes up."""
        return self._destination.upsync.clauses if self._destination is not None else frozenset()

    @property
    def knows_upsync(self) -> bool:
        """Whether that is all that its parent has told, content included."""
        destination = self._destination
        return destination is not None and self.ready and not destination.awaits_content

    @property
    def upsync_sources(self) -> Sources:
        """At an edge: of what comes up, what collectors are over."""
        return self._collected.sources

    @property
    def session(self) -> str:
        """The run of the parent that welcomed this node; "" out of session."""
        upstream = self._upstream
        return upstream.link.reader.incarnation if upstream and upstream.welcomed else ""

    def is_kept(self, key: ObjectKey) -> bool:
        """Whether an object is kept here that nothing wants any more."""
        return self._destination is not None and self._destination.traces.is_kept(key)

    def may_prune(self, key: ObjectKey) -> bool:
        """Whether the removal of an object that is wanted no more is settled."""
        return self._destination is not None and self.prune_wait(key) is None

    def prune_wait(self, key: ObjectKey) -> PruneWait | None:
        """At an edge: why an object is not to be removed; None if it is."""
        reached, upstream = self._judge.reached, self._upstream
        if reached is None or (upstream is not None and not upstream.was_read):
            return PruneWait.UNSETTLED
        assert self._destination is not None
        return self._destination.prune_wait(key, reached.record.settled)

    def copy(self, placement: MailKey, key: ObjectKey) -> CopyHere | None:
        """At an edge: what became of one copy, and what a placement says of it."""
        return self._destination.copies.of(placement, key) if self._destination else None

    def listed(self, key: ObjectKey) -> Iterable[ListedObject]:
        """At an edge: the placements that deliver an object as it is wanted, and where."""
        return self._destination.copies.listed(key) if self._destination is not None else ()

    def record_here(self, key: MailKey) -> RecordHere:
        """How it is with a placement's record and its content at this node."""
        standings, held = self._judge.standings, self._book.get(key)
        owners = (mail_owner(key), owner_of(key))
        missing = dict.fromkeys(it for owner in owners for it in self._content.missing(owner))
        refused = [at for at in map(self._content.refused_since, owners) if at is not None]
        return RecordHere(
            stale=self._upstream is not None and self._upstream.stale,
            outdated=key in standings.outdated,
            orphaned=bool(standings.orphaned.get(key)),
            head_only=is_delta(held) and not held.full if held is not None else False,
            missing=tuple(missing),
            refused_seconds=self._clock().seconds - min(refused) if refused else None,
            now_ms=self._clock().wall_ms,
        )

    def awaits_content(self, key: MailKey) -> bool:
        """Whether content of a placement is wanted here, and has not come."""
        owners = (mail_owner(key), owner_of(key))
        return any(self._content.missing(owner) for owner in owners)

    def summary(self, key: MailKey) -> Summary:
        """What became of a placement in this subtree, as far as it is known now."""
        own = EMPTY
        if self._destination is not None:
            own = self._destination.summary(key, self._clock())
        troubles = self._troubles(key)
        if troubles is not EMPTY:
            own = merge(own, troubles)
        return self._reports.summary(key, own)

    def count(self, key: MailKey) -> Count:
        """The same, with whether it is exact: it reflects all that was sent, and sums up."""
        summary = self.summary(key)
        names = dict.fromkeys(self._audience.concerned(key))
        names |= dict.fromkeys(self._children.with_head(key))
        expected = sum(self._audience.expected(key, name) for name in (*names, HERE))
        counted = summary.destinations - summary.states.get("leaving", 0)

        def bears_on(accepted: AcceptedRecord) -> bool:
            record = accepted.record
            if isinstance(record, Profile):
                return self._audience.bears_on(record, key)
            # What a Location says may be put into the copies of all its destinations.
            return isinstance(record, LocationRecord | LocationHead)

        waiting = [n for n in names if not self._children.is_in_sync_with(n, key, bears_on)]
        # Some may be counted as they were before the present step of a rollout.
        exact = not waiting and counted == expected and CELL_FORMER not in summary.cells
        exact = exact and self._collected.is_evaluated(key)
        held = self._book.by_key.get(key)
        generation = held.record.generation if held is not None else 0
        waited_for = tuple(sorted(waiting)[:WAITING_FOR_MAX])
        return Count(summary, exact, waited_for, generation, self._reports.unsaid(key))

    def results(self, key: MailKey) -> dict[ObjectKey, ObjectResult]:
        """The objects' returned states in this subtree."""
        own = self._destination.results(key) if self._destination is not None else ()
        return self._reports.results(key, own)

    def collected(self, key: MailKey) -> list[Result]:
        """What collectors collected of a placement in this subtree."""
        return self._collected.results(key)

    def child_counts(self, key: MailKey) -> dict[str, Summary]:
        """What each child counts for now in a placement, by name."""
        return self._reports.by_child(key)

    def children_in_state(self, key: MailKey, state: str) -> list[tuple[str, int]]:
        """The children that count some destinations of a placement in a state, and how many."""
        return self._reports.in_state(key, state)

    def orphans(self) -> list[Orphan]:
        """What is in force here though the centre does not know the term that issued it."""
        found = []
        for key in sorted(self._judge.standings.orphaned):
            accepted = self._book.by_key[key]
            source, record = accepted.record.source, accepted.record
            found.append(
                Orphan(
                    key,
                    accepted.kind,
                    source.namespace,
                    source.name,
                    record.generation,
                    record.term,
                )
            )
        return found

    def lacks(self, addresses: Iterable[ContentHash]) -> frozenset[ContentHash]:
        """Which of these blobs are not in the node's store."""
        return frozenset(addresses) - self._content.held

    @property
    def release(self) -> ReleaseRecord | None:
        """The release of Leafcast that was chosen last, whoever is to run it."""
        return self._releases.newest

    def release_wave(self) -> ReleaseWave | None:
        """The wave of that release which admits this node; None if none does yet."""
        record, profile = self._releases.newest, self.profile
        waves = record.release.waves if record is not None else ()
        if self._destination is not None:
            return wave_of_edge(waves, profile) if profile is not None else None
        if self._path.is_root:
            return wave_of_centre(waves)
        below = [it.record for it in self._book.by_key.values()] if waves else []
        profiles = [it for it in below if isinstance(it, Profile)]
        return wave_of_relay(waves, self._path, profiles)

    @property
    def lacks_wire(self) -> int:
        """The version of the wire that records in force need, if this program lacks it; else 0."""
        return self._releases.lacks

    def running(self) -> Running:
        """Who runs what at and below this node, as it was said last."""
        return self._releases.running()

    def running_here(self) -> Running:
        """What this node said of itself last; nothing if it said nothing yet."""
        return self._releases.own

    def running_at(self, child: str) -> Running:
        """The same at and below a child."""
        return self._releases.of_child(child)

    def is_meant(self, key: MailKey) -> bool:
        """Whether a placement is for a destination at or below this node."""
        return bool(self._audience.concerned(key)) or self._audience.expected(key, HERE) > 0

    def _troubles(self, key: MailKey) -> Summary:
        """What to say of a placement because of how it is here: no content, or no fresh view."""
        held = self._book.get(key)
        if held is None:
            return EMPTY
        stale = self._upstream is not None and self._upstream.stale
        reasons = [(1, STALE)] if stale else []
        if key in self._judge.standings.outdated:
            reasons.append((1, OUTDATED))
        if self._judge.standings.orphaned.get(key):
            reasons.append((1, ORPHANED_HERE))
        if is_delta(held) and not held.full and self.is_meant(key):
            reasons.append((1, WITHHELD))
        if self._content.refused_since(mail_owner(key)) is not None:
            reasons.append((0, CONTENT_REFUSED))
        if not reasons:
            return EMPTY
        path = str(self._path)
        return Summary(exceptions=tuple(ExceptionSample(n, "", why, 1, path) for n, why in reasons))

    def disbelief(self, envelope: Envelope, record: Record) -> str:
        """Why a record that the envelope's payload says is not believed; empty if it is."""
        verdict = self._trust.judge(envelope, record)
        return "" if verdict is TrustVerdict.BELIEVED else verdict.value

    def children(self) -> list[str]:
        """The children by name."""
        return self._children.names()

    def figures_of(self, child: str) -> ChildFigures | None:
        """What is known of a child; None if there is none of this name."""
        return self._children.figures(child, self._clock())

    def unsaid_of(self, child: str) -> int:
        """How many returned states and collectors' rows of a child found no room here."""
        return self._reports.unsaid_of(child)

    def standing_of(self, child: str) -> ChildStatus | None:
        """How it is with a child; None if there is none of this name."""
        figures = self.figures_of(child)
        return figures.standing if figures is not None else None

    def heard(self, child: str) -> LastHeard | None:
        """When a child was last heard of; None if there is none of this name."""
        figures = self.figures_of(child)
        return LastHeard(figures.heard_ms, silent=figures.is_silent) if figures else None

    def destination_of(self, child: str) -> DestinationId | None:
        """The destination that a child is, if it is an edge and this node holds its profile."""
        if not self._book.is_edge(child):
            return None
        profile = self._book.by_key[next(iter(self._book.through(child)))].record
        return profile.destination if isinstance(profile, Profile) else None

    def lag(self, child: str, read_through: int | None = None) -> int:
        """How many messages in the child's mailbox it has not answered.

        `read_through` is the child's own word, if one can ask it; else its progress counts.
        """
        return self._children.lag(child, read_through)

    @property
    def read_through(self) -> int:
        """The sequence of the parent's mail up to which all is judged."""
        return self._upstream.link.reader.judged if self._upstream is not None else 0

    @property
    def snapshot_reached(self) -> SnapshotRecord | None:
        """The snapshot up to which all is carried out here; None before the first."""
        return self._judge.reached.record if self._judge.reached is not None else None

    @property
    def refusals(self) -> Mapping[str, int]:
        """How many records of its mailbox were refused in this run, by why; the centre has none."""
        return self._upstream.refused_by_reason if self._upstream is not None else {}

    def own_state(self) -> dict[str, Any]:
        """The node's session and cursor, and how much it holds and refused, for people."""
        upstream, reached = self._upstream, self._judge.reached
        refused = self._downstream.refused + (upstream.refused if upstream is not None else 0)
        age_ms = self._clock().wall_ms - reached.record.time_ms if reached is not None else 0
        cursor = upstream.link.reader.incarnation if upstream is not None else ""
        return {
            "session": upstream.link.session.state.name.lower() if upstream is not None else "",
            "cursor": {"incarnation": cursor, "sequence": self.read_through},
            "snapshotGeneration": reached.generation if reached is not None else 0,
            "snapshotAgeMs": max(age_ms, 0),
            "stale": upstream.stale if upstream is not None else False,
            "placements": len(self._book.deltas()),
            "refused": refused,
            "disbelieved": upstream.refused if upstream is not None else 0,
            "orphaned": len(self._judge.standings.orphaned),
            "withheld": len(self._judge.standings.outdated),
        }
