"""What `leafcast.client` gives and raises, as values: paths, counts, moments, and what to do.

Placements go by names that commands and the client take, such as `epl/shop` and `bp/shop`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from leafcast.changes.removals import Removals
from leafcast.changes.wishes import PlannedWrite
from leafcast.show.stages import CopyStage
from relay.objects.merge import wish_of
from relay.space_port import Object
from schemas.objects.objects import ObjectKey
from schemas.records.placements import short_title
from schemas.values.identity import NodePath
from schemas.values.wording import many

Form = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Applied:
    """What came of an object of a batch, and the object as it lies at the centre then."""

    key: ObjectKey
    # created, configured or unchanged.
    verb: str
    object: Object

    @classmethod
    def of(cls, write: PlannedWrite) -> Applied:
        return cls(write.wish.key, write.verb, write.after)


@dataclass(frozen=True, slots=True)
class PlacementCounts:
    """How many destinations of a placement are in which state, and in which health.

    States are words such as `synced`, `pending`, `failing`, `unreachable`; health is `healthy` and
    the like. Who never joined counts apart. Counts are exact if they are `complete`, else at least.
    """

    name: str
    destinations: int
    never_joined: int
    states: Mapping[str, int]
    health: Mapping[str, int]
    complete: bool

    @classmethod
    def of(cls, form: Form) -> PlacementCounts:
        return cls(
            name=short_title(form.get("placement", form["name"])),
            destinations=form["destinations"],
            never_joined=form["never_joined"],
            states=dict(form["states"]),
            health=dict(form["health"]),
            complete=form["complete"],
        )


@dataclass(frozen=True, slots=True)
class DestinationOutcome:
    """What became of a placement at one destination."""

    path: NodePath
    state: str
    health: str
    # Whether its parent counts it exactly.
    complete: bool
    # The worst that is wrong.
    object: str = ""
    reason: str = ""

    @classmethod
    def of(cls, form: Form) -> DestinationOutcome:
        said = {name: form[name] for name in ("state", "health", "complete", "object", "reason")}
        return cls(NodePath.parse(form["path"]), **said)


@dataclass(frozen=True, slots=True)
class Watched:
    """An object of the centre's as it is now; None if it went."""

    kind: Literal["added", "modified", "deleted"]
    key: ObjectKey
    object: Object | None


@dataclass(frozen=True, slots=True)
class CopyStop:
    """The first stage at which a copy stops on its way, where, since when, and what to do.

    `stage` is a word that stays: `not-selected`, `content`, `refused` and so on; `as-meant` if
    nothing stops it. The page on `leafcast why` has them all.
    """

    placement: str
    stage: str
    said: str
    remedy: str
    since: dt.datetime | None
    # The path of the node at which it stops; "" if the centre lets it go nowhere.
    at: str

    @property
    def blocks(self) -> bool:
        """Whether something is not as it is meant."""
        return self.stage != CopyStage.AS_MEANT

    @classmethod
    def of(cls, form: Form) -> CopyStop:
        said = {name: form[name] for name in ("stage", "said", "remedy", "at")}
        placement = short_title(form["placement"]) if form["placement"] else ""
        return cls(placement=placement, since=moment(form["sinceMs"]), **said)


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause of what is wrong, however many errors it makes, with one example.

    `destinations` is None if nobody can tell at how many it is, and at least so many unless it is
    `exact`. `tiers` says by depth at how many nodes of how many.
    """

    stage: str
    element: str
    category: str
    destinations: int | None
    exact: bool
    # Whether it may pass by itself: something is at work still.
    at_work: bool
    placements: Sequence[str]
    tiers: Mapping[int, tuple[int, int]]
    since: dt.datetime | None
    # The example.
    path: str
    object: str
    reason: str
    remedy: str

    @classmethod
    def of(cls, form: Form) -> Cause:
        example = {name: form["example"][name] for name in ("path", "object", "reason")}
        return cls(
            stage=form["stage"],
            element=form["element"],
            category=form["category"],
            destinations=form["destinations"],
            exact=form["exact"],
            at_work=form["atWork"],
            placements=tuple(map(short_title, form["placements"])),
            tiers={tier["tier"]: (tier["nodes"], tier["of"]) for tier in form["tiers"]},
            since=moment(form["sinceMs"]),
            remedy=form["remedy"],
            **example,
        )


@dataclass(frozen=True, slots=True)
class Difference:
    """What applying would make of an object at the centre; None before if it is not there yet.

    Both are what people say of it, without status. Values of Secrets are in it.
    """

    key: ObjectKey
    # created, configured or unchanged.
    verb: str
    before: Object | None
    after: Object

    @classmethod
    def of(cls, write: PlannedWrite) -> Difference:
        before = wish_of(write.before) if write.before is not None else None
        return cls(write.wish.key, write.verb, before, wish_of(write.after))


@dataclass(frozen=True, slots=True)
class TraceStep:
    """A stage of a change at a node, by the clock of the centre as far as that can be told."""

    path: NodePath
    stage: str
    start: dt.datetime
    end: dt.datetime


@dataclass(frozen=True, slots=True)
class ChangeTrace:
    """Where the time of a change went, on its way to the node `at` and back as a count."""

    placement: str
    generation: int
    # As spans of OpenTelemetry have it.
    trace_id: str
    at: NodePath
    # Down the tree, of each node in the order of time.
    steps: Sequence[TraceStep]
    # By node: the stage that has not come yet.
    waits: Mapping[NodePath, str]
    # By node: why nothing, or not all, is known of it.
    gaps: Mapping[NodePath, str]

    @classmethod
    def of(cls, form: Form) -> ChangeTrace:
        nodes = [(NodePath.parse(node["path"]), node) for node in form["nodes"]]
        return cls(
            placement=short_title(form["placement"]),
            generation=form["generation"],
            trace_id=form["traceId"],
            at=NodePath.parse(form["path"]),
            steps=tuple(
                TraceStep(path, it["stage"], _moment(it["startMs"]), _moment(it["endMs"]))
                for path, node in nodes
                for it in node["spans"]
            ),
            waits={path: node["waits"] for path, node in nodes if node["waits"]},
            gaps={path: node["gap"] for path, node in nodes if node["gap"]},
        )


class RemovalsUnconfirmed(Exception):
    """A batch would take much off edges, so nothing was written. `removals` says what.

    Who means it applies it again with `confirm_removals`.
    """

    def __init__(self, removals: Removals) -> None:
        super().__init__(
            f"this {removals}; nothing was applied; if that is meant, apply it with "
            "confirm_removals=True"
        )
        self.removals = removals


class NotApplied(Exception):
    """Some of a batch was refused as it was written. `applied` was written, `refused` says why not.

    What is in neither was not begun.
    """

    def __init__(
        self, applied: Sequence[Applied], refused: Mapping[ObjectKey, str], count: int
    ) -> None:
        why = "; ".join(f"{key}: {reason}" for key, reason in refused.items())
        written = f"{len(applied)} of {many(count, 'object')} were applied"
        super().__init__(f"{written}; {why}; correct this, and apply all of it again")
        self.applied = tuple(applied)
        self.refused = dict(refused)


class TimeUp(Exception):
    """Placements were not as they should be in time. `placements` says how far all of them are."""

    def __init__(
        self, placements: Sequence[PlacementCounts], late: Sequence[str], what: str
    ) -> None:
        named = ", ".join(late)
        super().__init__(f"time is up, and {named} is not {what}; see: leafcast status {late[0]}")
        self.placements = tuple(placements)
        self.late = tuple(late)


def moment(ms: int | None) -> dt.datetime | None:
    """The moment of milliseconds since 1970, in UTC."""
    return _moment(ms) if ms is not None else None


def _moment(ms: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(ms / 1000, dt.UTC)
