"""One program over one object of a placement: what each child has of it, and their merge."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from relay.core.collectors.aggregates import Aggregate, AggregateAlgebra
from relay.core.collectors.merge_tree import MergeTree
from relay.core.collectors.ports import (
    HERE,
    MEMBERS_KNOWN,
    Bound,
    CollectorContext,
    CopyView,
    Evaluator,
    ProgramTraits,
    RowOwner,
    Sent,
)
from relay.core.collectors.tables import CollectedTable, Outcome, TableAlgebra
from relay.core.collectors.turns import Unfinished
from relay.core.collectors.upsynced import UpsyncedObject
from schemas.objects.objects import ObjectKey
from schemas.records.records import DIGEST_MODULUS
from schemas.reports.collectors import MEMBERS_BYTES, TABLE_MAX_BYTES, WHOLE, Collected, Program
from schemas.reports.upsync import UpsyncClause
from schemas.values.identity import DestinationId, MailKey
from schemas.values.ordered_values import pack_values
from schemas.values.refusals import RecordRefused

BLANKS_MAX = 2000
"""So many blank rows that differ are evaluated for one child; the rest are only counted."""
READ_MAX = 256
READ_STEPS, READ_BYTES_OF_STEP = 100, 16
"""What it takes to open an object or a status."""


class Algebra(Protocol):
    """What merges: tables of rows, or aggregates of a status."""

    @property
    def empty(self) -> Any: ...

    def merge(self, values: Sequence[Any]) -> Any: ...

    def write(self, value: Any, room: int = ...) -> bytes: ...

    def read(self, data: bytes) -> Any: ...


class SubtreeRows(NamedTuple):
    """What some destinations have: `unreached` counts while nobody hears from them, if given."""

    members: int
    rows: Any
    unreached: Any = None


class ProgramResults:
    """The merge of all children's shares; evaluates what only this node knows."""

    def __init__(
        self,
        placement: MailKey,
        key: ObjectKey,
        program: Program,
        sent: dict[ObjectKey, Sent],
        context: CollectorContext,
        evaluator: Evaluator,
        tables: TableAlgebra,
    ) -> None:
        """`tables` is of the program, and of all its items."""
        self.key, self.program, self.id = key, program, program.id
        self._placement = placement
        self._sent = sent
        self._context = context
        self._evaluator = evaluator
        self._tables = tables
        self._turns = context.turns
        self._algebra: Algebra = AggregateAlgebra() if program.is_aggregate else self._tables
        self._tree: MergeTree[SubtreeRows] = MergeTree(self._merge)
        self._stale: dict[str, None] = {}
        self._bounds = context.bounds
        self._known_traits: ProgramTraits | None = None
        self._blanks: dict[tuple[ObjectKey, bool], Outcome] = {}
        self._lacking: dict[tuple[ObjectKey, bool], bool] = {}
        # What was evaluated of a share that is not whole yet; of many objects, what is still so.
        self._evaluated: dict[tuple[ObjectKey, bool, str], tuple[CopyView, Outcome]] = {}
        self._read: dict[bytes, Any] = {}
        self._leaves: dict[
            ObjectKey, tuple[UpsyncedObject, CollectedTable, CollectedTable | None]
        ] = {}
        self._said: Collected | None = None
        self._shown: Any = None

    def is_over(self, sent: dict[ObjectKey, Sent]) -> bool:
        """Whether these are the objects that it is over."""
        return self._sent == sent

    def is_over_upsynced(self, key: ObjectKey) -> bool:
        """Whether it is over an object that comes up from a destination."""
        return self.program.source is not None and self.program.source.matches(key)

    def mark_dirty(self, child: str) -> None:
        """Look again at what a child has."""
        self._stale[child] = None

    def check_rows(self, said: Collected) -> None:
        """Refuse rows that no merge could take; raises RecordRefused."""
        for data in (said.rows, said.unreached):
            if data:
                self._value(data)

    @property
    def is_unfinished(self) -> bool:
        """Whether something is still to be evaluated, once it was asked for."""
        return bool(self._stale)

    def go_on(self, said_by: dict[str, Collected]) -> bool:
        """Evaluate what is to be; False if the turn ends before."""
        try:
            self._share(said_by)
        except Unfinished:
            return False
        return True

    def succeed(self, former: ProgramResults) -> None:
        """Show what another one showed, until this one is evaluated."""
        self._shown = former._shown
        for key in (*former._sent, WHOLE):
            self._bounds.pop((former, key))

    def collected(self, said_by: dict[str, Collected]) -> Collected | None:
        """What the subtree says; None if it has no destination that the placement is meant for.

        What is not evaluated yet counts as not reported yet: what was said last, or nothing.
        """
        try:
            share = self._share(said_by)
        except Unfinished:
            return self._said if self._is_said_of_same() else None
        if share is None:
            self._said = None
        elif self._said is None:
            self._said = self._written(share)
        return self._said

    def total(self, said_by: dict[str, Collected]) -> Any:
        """The rows of the subtree, merged: the last ones that were evaluated; None if none were."""
        try:
            share = self._share(said_by)
        except Unfinished:
            return self._shown
        self._shown = self._algebra.empty if share is None else share.rows
        return self._shown

    def assert_invariants(self) -> None:
        self._tree.assert_invariants()

    def _is_said_of_same(self) -> bool:
        """Whether what was said counts just who is meant: what the one here returned is new."""
        share = self._tree.get(HERE)
        if self._said is None or share is None or self._stale.keys() != {HERE}:
            return False
        members = self._context.members(HERE, self._placement)
        return share.members == self._sum(members)

    def _share(self, said_by: dict[str, Collected]) -> SubtreeRows | None:
        """Raises Unfinished."""
        for child in list(self._stale):
            share = self._of_child(child, said_by.get(child))
            if child != HERE or not self._keeps_evaluated:
                self._evaluated.clear()
            if share != self._tree.get(child):
                self._tree.set(child, share)
                self._said = None
            del self._stale[child]
        return self._tree.total()

    @property
    def _keeps_evaluated(self) -> bool:
        """Whether of many objects those that changed are evaluated alone."""
        traits = self._known_traits
        return self.key == WHOLE and traits is not None and not traits.uses_report_time

    def _outcome(self, key: ObjectKey, seen: CopyView) -> Outcome:
        """What the program says, evaluated once for a share; raises Unfinished."""
        place, view = (key, seen.reachable, seen.name), seen._replace(reported_ms=0)
        known = self._evaluated.get(place)
        if known is not None and known[0] == view:
            return known[1]
        bound = self._ready(key)
        outcome = bound.outcome(seen)
        self._turns.spend(bound.spent)
        self._evaluated[place] = (view, outcome)
        return outcome

    def _written(self, share: SubtreeRows) -> Collected:
        rows, unreached = self._tables_of(share, TABLE_MAX_BYTES)
        if unreached not in (b"", rows) and len(rows) + len(unreached) > TABLE_MAX_BYTES:
            # One part of a report takes both.
            rows, unreached = self._tables_of(share, TABLE_MAX_BYTES // 2)
        members = share.members.to_bytes(MEMBERS_BYTES, "big")
        return Collected(self.key, self.id, members, rows, b"" if unreached == rows else unreached)

    def _tables_of(self, share: SubtreeRows, room: int) -> tuple[bytes, bytes]:
        """The rows, and those that count while nobody hears from there, each in so many bytes."""
        rows = self._algebra.write(share.rows, room)
        return rows, b"" if share.unreached is None else self._algebra.write(share.unreached, room)

    def _merge(self, shares: Sequence[SubtreeRows]) -> SubtreeRows:
        if len(shares) == 1:
            return shares[0]
        merge = self._algebra.merge
        unreached = None
        if any(share.unreached is not None for share in shares):
            unreached = merge([s.rows if s.unreached is None else s.unreached for s in shares])
        members = sum(share.members for share in shares) % DIGEST_MODULUS
        return SubtreeRows(members, merge([share.rows for share in shares]), unreached)

    def _of_child(self, child: str, said: Collected | None) -> SubtreeRows | None:
        """What a child counts for now; None if the placement is meant for nobody there."""
        standing = self._context.standing(child, self._placement)
        if not standing.expected:
            return None
        if child == HERE:
            members = self._context.members(HERE, self._placement)
            return self._of_this_node(members[0]) or self._blank(members, there=True)
        if said is not None:
            share = self._reported(child, said, standing.edge, in_step=standing.in_step)
            if share is not None:
                if standing.there or share.unreached is None:
                    return share
                return SubtreeRows(share.members, share.unreached)
        if standing.edge is not None:
            return self._blank([standing.edge], there=standing.there)
        members = self._context.members(child, self._placement)
        return self._blank(members, there=standing.there)

    def _reported(
        self, child: str, said: Collected, edge: RowOwner | None, *, in_step: bool
    ) -> SubtreeRows | None:
        """What a child reported, if it counts just the destinations that are there.

        Of a child in step that is settled by its progress; of an edge, and of one that is away,
        by the sum of who is meant.
        """
        members = int.from_bytes(said.members, "big")
        if edge is not None:
            if members != member_hash(edge.destination):
                return None
        elif not in_step and members != self._sum(self._context.members(child, self._placement)):
            return None
        if not said.rows:
            # It found no room on its way: that many are known, and no more of them.
            return SubtreeRows(members, self._untold(child))
        try:
            rows = self._value(said.rows)
            unreached = self._value(said.unreached) if said.unreached else None
        except RecordRefused:
            return None
        said_tables = [table for table in (rows, unreached) if isinstance(table, CollectedTable)]
        if edge is None:
            return SubtreeRows(members, rows, unreached)
        if not all(self._is_of(edge.who, table) for table in said_tables):
            return None
        return SubtreeRows(members, self._of_one(rows), self._of_one(unreached))

    def _of_one(self, said: Any) -> Any:
        return self._tables.of_one(said) if isinstance(said, CollectedTable) else said

    def _untold(self, child: str) -> Any:
        if self.program.is_aggregate:
            return Aggregate()
        expected = self._context.standing(child, self._placement).expected
        return CollectedTable(expected * len(self._sent), truncated=True)

    def _is_of(self, who: bytes, table: CollectedTable) -> bool:
        """Whether a table of one destination names no other one."""
        named = [error.who for error in table.errors.values()]
        if self.program.select:
            named += table.rows
        for row in table.rows.values():
            pairs = zip(self.program.combined, row.cells, strict=False)
            named += [entry[1] for field, cell in pairs if field.type == "TOP" for entry in cell]
        return all(each.startswith(who) for each in named)

    def _value(self, data: bytes) -> Any:
        """A table that was read before is the same object; raises RecordRefused."""
        known = self._read.get(data)
        if known is None:
            known = self._algebra.read(data)
            if len(self._read) >= READ_MAX:
                self._read.clear()
            self._read[data] = known
        return known

    def _of_this_node(self, member: RowOwner) -> SubtreeRows | None:
        """The share of the destination at this node, from what its space returned."""
        if self.program.source is not None:
            return self._of_raised(member, self.program.source)
        found: list[tuple[bytes, Outcome, Outcome | None]] = []
        for key in self._sent:
            seen = self._context.own(self._placement, key)
            if seen is None or not isinstance(self._sent[key], bytes):
                return None
            if self.program.is_aggregate:
                aggregate = self._aggregate(key, seen)
                return SubtreeRows(member_hash(member.destination), aggregate)
            named = seen if seen.name == member.name else seen._replace(name=member.name)
            here, away = self._outcome(key, named), None
            if self._traits.uses_reachable:
                away = self._outcome(key, named._replace(reachable=False))
            found.append((self._place(key), here, away))
        who, leaf = member.who, self._tables.leaf
        tables = [leaf(here, who, place) for place, here, _ in found]
        others = [leaf(away, who, place) for place, _, away in found if away is not None]
        rows = self._tables.merge(tables)
        return SubtreeRows(
            member_hash(member.destination), rows, self._tables.merge(others) if others else None
        )

    def _of_raised(self, member: RowOwner, source: UpsyncClause) -> SubtreeRows:
        """The share of the destination at this node, from what of it came up."""
        there = dict(self._context.upsynced(source))
        self._leaves = {key: it for key, it in self._leaves.items() if key in there}
        for key, upsynced in there.items():
            known = self._leaves.get(key)
            if known is None or known[0] is not upsynced:
                self._leaves[key] = (upsynced, *self._leaf_of(key, upsynced, member))
        rows = self._tables.merge([table for _, table, _ in self._leaves.values()])
        others = [away for _, _, away in self._leaves.values() if away is not None]
        away = self._tables.merge(others) if others else None
        return SubtreeRows(member_hash(member.destination), rows, away)

    def _leaf_of(
        self, key: ObjectKey, upsynced: UpsyncedObject, member: RowOwner
    ) -> tuple[CollectedTable, CollectedTable | None]:
        place = self._place(key)
        seen = CopyView(member.name, upsynced.plain, upsynced.since_ms, self._context.wall_ms())
        here = self._tables.leaf(self._outcome(key, seen), member.who, place)
        if not self._traits.uses_reachable:
            return here, None
        outcome = self._outcome(key, seen._replace(reachable=False))
        return here, self._tables.leaf(outcome, member.who, place)

    def _aggregate(self, key: ObjectKey, seen: CopyView) -> Aggregate:
        if not self._context.books(self._placement, key):
            return Aggregate()
        self._turns.check()
        self._turns.spend(READ_STEPS + len(seen.status or b"") // READ_BYTES_OF_STEP)
        said = self._evaluator.merging(key, seen.status, seen.content, seen.generation)
        return Aggregate(1, *said) if said is not None else Aggregate()

    def _blank(self, members: Sequence[RowOwner], *, there: bool) -> SubtreeRows:
        """What counts for destinations of which nothing is reported."""
        total = self._sum(members)
        if self.program.is_aggregate:
            return SubtreeRows(total, Aggregate())
        rows = self._blank_rows(members, reachable=there)
        if not there or not self._sent or not self._traits.uses_reachable:
            return SubtreeRows(total, rows)
        return SubtreeRows(total, rows, self._blank_rows(members, reachable=False))

    def _blank_rows(self, members: Sequence[RowOwner], *, reachable: bool) -> CollectedTable:
        self._evaluate_blanks(members[:BLANKS_MAX], reachable=reachable)
        tables = []
        for key in self._sent:
            place = self._place(key)
            if self._lacking[key, reachable]:
                # Their rows cannot be said here: that many are known, and no more of them.
                tables.append(CollectedTable(len(members), truncated=True))
                continue
            if self._traits.uses_inventory:
                for member in members[:BLANKS_MAX]:
                    seen = CopyView(member.name, reachable=reachable)
                    outcome = self._outcome(key, seen)
                    tables.append(self._tables.leaf(outcome, member.who, place))
                if len(members) > BLANKS_MAX:
                    tables.append(CollectedTable(len(members) - BLANKS_MAX, truncated=True))
                continue
            whos = [member.who + place for member in members]
            tables.append(self._tables.many(self._blanks[key, reachable], sorted(whos)))
        return self._tables.merge(tables) if tables else self._tables.empty

    def _evaluate_blanks(self, members: Sequence[RowOwner], *, reachable: bool) -> None:
        """What blank rows are made of; raises Unfinished, and goes on from there."""
        for key in self._sent:
            case = (key, reachable)
            if case not in self._lacking:
                bound = self._ready(key)
                self._lacking[case] = bound.lacks_object(CopyView("", reachable=reachable))
                self._turns.spend(bound.spent)
            if self._lacking[case]:
                continue
            if self._traits.uses_inventory:
                for member in members:
                    self._outcome(key, CopyView(member.name, reachable=reachable))
            elif case not in self._blanks:
                bound = self._ready(key)
                self._blanks[case] = bound.outcome(CopyView("", reachable=reachable))
                self._turns.spend(bound.spent)

    def _ready(self, key: ObjectKey) -> Bound:
        """The program, ready to be evaluated at once; raises Unfinished.

        What was made ready only now is used in this turn: in the next one it may be gone again.
        """
        self._turns.check()
        # An item is itself alone: another one of its place is over other objects.
        bound = self._bounds.get((self, key))
        if bound is None:
            bound = self._evaluator.bind(self.program, self._sent.get(key, b""))
            self._bounds.put((self, key), bound, bound.weight)
            self._known_traits = bound.traits
            self._turns.spend(bound.spent)
        return bound

    @property
    def _traits(self) -> ProgramTraits:
        if self._known_traits is None:
            self._ready(next(iter(self._sent), WHOLE))
        assert self._known_traits is not None
        return self._known_traits

    def _place(self, key: ObjectKey) -> bytes:
        if self.key != WHOLE:
            return b""
        return pack_values([key.group, key.resource, key.namespace, key.name])

    @staticmethod
    def _sum(members: Sequence[RowOwner]) -> int:
        return sum(member_hash(member.destination) for member in members) % DIGEST_MODULUS


@lru_cache(MEMBERS_KNOWN)
def member_hash(destination: DestinationId) -> int:
    """What a destination adds to the sum of who is counted."""
    return int.from_bytes(hashlib.sha256(destination.encode()).digest()[:MEMBERS_BYTES], "big")
