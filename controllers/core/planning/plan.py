"""What a change of what is delivered does at every destination, before it is made.

Who is meant, what an object becomes and who wins it is asked of the very parts by which relays and
edges decide it. Destinations for which the same placements are meant are judged once.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, NamedTuple

from controllers.core.planning.audiences import AudienceChange, Audiences
from controllers.core.planning.copies import Copies
from controllers.core.planning.reasons import Reasons
from controllers.core.planning.states import Contents, Delivery, PlannedState
from controllers.core.planning.verdicts import (
    ACTIONS,
    FROZEN,
    HELD,
    NONE,
    REMOVALS,
    DestinationGroup,
    Judge,
    ObjectOutcome,
    PlannedAction,
    PlanPosition,
    PlanSide,
)
from schemas.objects.objects import ObjectKey
from schemas.records.hold_reasons import MAINTENANCE
from schemas.records.maintenance import NONE as NOT_MAINTAINED
from schemas.records.maintenance import maintenance_of
from schemas.records.moves import former_paths
from schemas.records.records import Profile
from schemas.values.identity import MailKey, NodePath

SAMPLE_MAX = 10
"""So many rows of each action are at hand at once."""
GROUPS_MAX = 4096


class PlanRow(NamedTuple):
    """What becomes of one object at one destination, and why; `fields` are those it is about."""

    path: NodePath
    key: ObjectKey
    action: PlannedAction
    why: str = ""
    fields: tuple[str, ...] = ()


class Objects(NamedTuple):
    """An object as it is meant at a destination before and after, None if not, or not known."""

    key: ObjectKey
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    # Whether its copy is kept in step.
    kept: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """How much would be done, the first rows of each action, and on demand all of them."""

    counts: Mapping[PlannedAction, int]
    # How many of them do something, or are kept from it, and at how many destinations.
    placements: int
    destinations: int
    sample: tuple[PlanRow, ...]
    _survey: _Survey

    def rows(self) -> Iterator[PlanRow]:
        """All rows, removals before all others, by path."""
        yield from self._survey.rows(REMOVALS)
        yield from self._survey.rows(frozenset(ACTIONS) - REMOVALS)

    def rows_at(self, path: NodePath) -> Iterator[PlanRow]:
        """The rows of one destination."""
        return self._survey.rows_at(path)

    def objects(self, path: NodePath) -> Iterator[Objects]:
        """What the rows at a destination are about."""
        return self._survey.objects(path)


def plan(
    before: PlannedState,
    after: PlannedState,
    contents: Contents,
    named: AbstractSet[ObjectKey] = frozenset(),
    *,
    now_ms: int = 0,
) -> Plan:
    """Compare two states at all destinations; of `named` objects is told also if nothing changes.

    Looks once at each profile, and twice more where all rows are asked for.
    """
    survey = _Survey(before, after, contents, named, now_ms)
    return survey.plan()


class _Pair(NamedTuple):
    """Who hangs at one place before and after; one who moves with all it has is where it goes."""

    was: Profile | None
    now: Profile | None

    @property
    def path(self) -> NodePath:
        profile = self.now or self.was
        assert profile is not None
        return profile.path


class _Meant(NamedTuple):
    """What destinations of one group have, and are to have; whether their place stays."""

    before: tuple[Delivery, ...]
    after: tuple[Delivery, ...]
    same_place: bool


class _Affected(NamedTuple):
    """A destination where something is to be told, without what is known of it."""

    names: tuple[str, ...]
    was: MailKey | None
    now: MailKey | None
    actions: frozenset[PlannedAction]


_STILL: AbstractSet[PlannedAction] = frozenset({HELD, FROZEN, NONE})
"""Nothing becomes of these anyway."""


@dataclass(slots=True)
class _Sample:
    """The first rows of one action, by path."""

    kept: list[tuple[tuple[str, ...], ObjectKey, _Pair, ObjectOutcome]] = field(
        default_factory=list
    )

    def offer(self, pair: _Pair, verdict: ObjectOutcome) -> None:
        if len(self.kept) >= 2 * SAMPLE_MAX:
            self.kept = self.first()
        elif len(self.kept) >= SAMPLE_MAX and pair.path.names > self.kept[SAMPLE_MAX - 1][0]:
            return
        self.kept.append((pair.path.names, verdict.key, pair, verdict))

    def first(self) -> list[tuple[tuple[str, ...], ObjectKey, _Pair, ObjectOutcome]]:
        return heapq.nsmallest(SAMPLE_MAX, self.kept, key=lambda item: item[:2])


class _Survey:
    """The comparison under way."""

    def __init__(
        self,
        before: PlannedState,
        after: PlannedState,
        contents: Contents,
        named: AbstractSet[ObjectKey],
        now_ms: int,
    ) -> None:
        self._before, self._after, self._now_ms = before, after, now_ms
        self._copies = Copies(contents)
        self._judge = Judge(before, after, self._copies, named)
        self._reasons = Reasons(before, after, self._copies)
        self._audiences = Audiences(before, after)
        self._groups: dict[_Meant, DestinationGroup] = {}
        # Where something is to be told: in the order of paths once all were looked at.
        self._told: list[_Affected] = []
        self._sets: dict[frozenset[PlannedAction], frozenset[PlannedAction]] = {}

    def plan(self) -> Plan:
        counts: Counter[PlannedAction] = Counter()
        samples = {action: _Sample() for action in ACTIONS}
        destinations = 0
        for pair in self._pairs():
            verdicts = self._verdicts(pair)
            for verdict in verdicts:
                counts[verdict.action] += 1
                samples[verdict.action].offer(pair, verdict)
            destinations += any(verdict.action != NONE for verdict in verdicts)
            if verdicts:
                actions = frozenset(verdict.action for verdict in verdicts)
                was, now = (None if side is None else side.source.key for side in pair)
                # Few sets of actions are shared by very many destinations.
                actions = self._sets.setdefault(actions, actions)
                self._told.append(_Affected(pair.path.names, was, now, actions))
        self._told.sort(key=lambda told: told.names)
        sample = (self._row(item[2], item[3]) for one in samples.values() for item in one.first())
        return Plan(
            {action: counts[action] for action in ACTIONS},
            len(self._judge.concerned),
            destinations,
            (*sample,),
            self,
        )

    def rows(self, actions: AbstractSet[PlannedAction]) -> Iterator[PlanRow]:
        for told in self._told:
            if told.actions.isdisjoint(actions):
                continue
            pair = self._pair(told)
            for verdict in self._verdicts(pair):
                if verdict.action in actions:
                    yield self._row(pair, verdict)

    def rows_at(self, path: NodePath) -> Iterator[PlanRow]:
        for pair in self._pairs_at(path):
            for verdict in self._verdicts(pair):
                yield self._row(pair, verdict)

    def objects(self, path: NodePath) -> Iterator[Objects]:
        for pair in self._pairs_at(path):
            for verdict in self._verdicts(pair):
                yield Objects(
                    verdict.key,
                    self._copies.at_place(verdict.key, verdict.before, pair.was),
                    self._copies.at_place(verdict.key, verdict.after, pair.now),
                    self._judge.is_kept(verdict),
                )

    def _pairs_at(self, path: NodePath) -> Iterator[_Pair]:
        """Who hangs at a place where something is to be told."""
        first = bisect_left(self._told, path.names, key=lambda told: told.names)
        following = range(first, len(self._told))
        for at in takewhile(lambda at: self._told[at].names == path.names, following):
            yield self._pair(self._told[at])

    def _pairs(self) -> Iterator[_Pair]:
        before, after = self._before.profiles, self._after.profiles
        # Who leaves a place and who comes to one may be two: the place has both.
        leaving: dict[NodePath, Profile] = {}
        coming: dict[NodePath, Profile] = {}
        for key, was in before.items():
            now = was if before is after else after.get(key)
            # One that moves there takes all that it has along.
            if now is not None and was.path in (now.path, *former_paths(now.annotations)):
                yield _Pair(was, now)
                continue
            leaving[was.path] = was
            if now is not None:
                coming[now.path] = now
        if before is not after:
            coming |= {after[key].path: after[key] for key in after if key not in before}
        for path in leaving.keys() | coming.keys():
            yield _Pair(leaving.get(path), coming.get(path))

    def _pair(self, told: _Affected) -> _Pair:
        before, after = self._before.profiles, self._after.profiles
        was = None if told.was is None else before[told.was]
        if before is after:
            return _Pair(was, was)
        return _Pair(was, None if told.now is None else after[told.now])

    def _row(self, pair: _Pair, verdict: ObjectOutcome) -> PlanRow:
        place = self._place(pair, self._audiences.meant(*pair))
        why, fields = self._reasons.of(verdict, place)
        return PlanRow(pair.path, verdict.key, verdict.action, why, fields)

    def _verdicts(self, pair: _Pair) -> tuple[ObjectOutcome, ...]:
        meant = self._audiences.meant(*pair)
        before, after, same_place = meant
        if same_place and before == after and self._judge.is_unchanged(after):
            return ()
        asked = self._deliveries(pair, meant)
        group = self._groups.get(asked)
        if group is None:
            if len(self._groups) >= GROUPS_MAX:
                self._groups.clear()
            group = self._judge.group(asked.before, asked.after, same_place=same_place)
            self._groups[asked] = group
        place = self._place(pair, meant) if group.customizes else None
        return self._as_maintained(pair.now, self._judge.verdicts(group, place))

    def _as_maintained(
        self, now: Profile | None, verdicts: tuple[ObjectOutcome, ...]
    ) -> tuple[ObjectOutcome, ...]:
        """While a person works at a place nothing becomes of it."""
        said = NOT_MAINTAINED if now is None else maintenance_of(now.annotations)
        if not said.is_on(self._now_ms):
            return verdicts
        why = f"{MAINTENANCE}: {said}; leafcast maintenance list"
        return tuple(
            verdict if verdict.action in _STILL else verdict._replace(action=HELD, why=why)
            for verdict in verdicts
        )

    def _deliveries(self, pair: _Pair, meant: AudienceChange) -> _Meant:
        """What a destination has, and is to have, of the placements that are meant for it."""
        were = [self._before.placements[key] for key in meant.before]
        are = [self._after.placements[key] for key in meant.after]
        if not any(delivery.arms for delivery in (*were, *are)):
            return _Meant((*were,), (*are,), meant.same_place)
        were_at, are_at = self._audiences.located(*pair)
        return _Meant(
            tuple(delivery.at(pair.was, were_at) for delivery in were),
            tuple(delivery.at(pair.now, are_at) for delivery in are),
            meant.same_place,
        )

    def _place(self, pair: _Pair, meant: AudienceChange) -> PlanPosition:
        were_at, are_at = self._audiences.located(*pair)
        before = PlanSide(pair.was, were_at, meant.before)
        return PlanPosition(before, PlanSide(pair.now, are_at, meant.after))
