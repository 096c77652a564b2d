"""All that is collected at one node: by placement, object and program.

What children reported is kept as it came; what each counts for is looked at when it is asked for.
A destination of which nothing is reported counts with its blank row; one for which the placement is
not meant any more has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple, TypeVar

from relay.core.collectors.ports import (
    BOUND_BYTES_MAX,
    HERE,
    CollectorContext,
    CopyView,
    Evaluator,
    Sent,
)
from relay.core.collectors.program_results import ProgramResults
from relay.core.collectors.tables import TableAlgebra
from relay.core.collectors.turns import Turns
from relay.core.collectors.upsynced import Sources, UpsyncedObjects
from relay.core.content.content import Content, manifest_of
from relay.core.content.destination_keys import DestinationKeys
from relay.core.content.owners import ContentOwner, OwnerKind
from schemas.content.blobs import Reference
from schemas.content.sealing import NotOpened, SealingKey
from schemas.objects.objects import ObjectKey
from schemas.records.records import DeltaBody
from schemas.reports.collectors import (
    SCOPE_PLACEMENT,
    WHOLE,
    Collected,
    Program,
    ProgramSet,
    read_program_set,
)
from schemas.values.bounded_cache import BoundedCache
from schemas.values.identity import ContentHash, MailKey, TreeId
from schemas.values.refusals import RecordRefused, WireRefused
from schemas.values.wire import replace

NAMES_MAX = 20_000

T = TypeVar("T")

Place = tuple[ObjectKey, str]
"""An object, or WHOLE, and a program by its id."""


class Result(NamedTuple):
    """What a program collected of an object; `rows` is a table, or an aggregate."""

    key: ObjectKey
    program: Program
    rows: Any


@dataclass(slots=True)
class _Placement:
    """What is collected of one placement; no items before its content is here."""

    programs: tuple[Reference, ...]
    arms: tuple[Reference, ...]
    # The keys of what is sealed, those that this node has.
    keys: tuple[SealingKey, ...] = ()
    found: ProgramSet | None = field(init=False, default=None)
    # Where objects lie, and under which key; nobody tells that of a manifest that is closed here.
    references: dict[ObjectKey, tuple[Reference, SealingKey | None]] = field(
        init=False, default_factory=dict
    )
    is_closed: bool = field(init=False, default=False)
    items: dict[Place, ProgramResults] = field(init=False, default_factory=dict)
    by_object: dict[ObjectKey, list[ProgramResults]] = field(init=False, default_factory=dict)
    # Children to be looked at in all items.
    stale: dict[str, None] = field(init=False, default_factory=dict)
    # What a turn ended before.
    unfinished: dict[Place, None] = field(init=False, default_factory=dict)

    def plain(self, key: ObjectKey, plains: Mapping[ContentHash, bytes]) -> bytes | None:
        """An object's bytes; None if it is closed here."""
        if key not in self.references:
            return None
        reference, sealed = self.references[key]
        if sealed is None:
            return plains[reference.address]
        with suppress(WireRefused):
            return sealed.unseal(reference.kind, plains[reference.address])
        return None


class CollectedReports:
    """What children reported, by placement and place, as it came."""

    def __init__(self) -> None:
        self._parts: dict[MailKey, dict[str, dict[int, dict[Place, Collected]]]] = {}
        self._places: dict[MailKey, dict[Place, dict[str, Collected]]] = {}
        self._names: dict[Place, Place] = {}

    def at(self, key: MailKey, place: Place) -> dict[str, Collected]:
        """What children say of a place, by child."""
        return self._places.get(key, {}).get(place, {})

    def put(
        self, key: MailKey, child: str, part: int, said: tuple[Collected, ...]
    ) -> Iterator[Place]:
        """Keep what a child says in a part; the places of which it says something else."""
        now = dict(map(self._shared, said))
        former = self._swap(key, child, part, now)
        places = self._places.setdefault(key, {})
        for place in former.keys() - now.keys():
            if places.get(place, {}).get(child) is former[place]:
                del places[place][child]
                if not places[place]:
                    del places[place]
                yield place
        for place, item in now.items():
            if former.get(place) != item or places.get(place, {}).get(child) != item:
                places.setdefault(place, {})[child] = item
                yield place
        if not places:
            del self._places[key]

    def _shared(self, each: Collected) -> tuple[Place, Collected]:
        """A row under names that all children's rows share: there may be very many."""
        place = (each.key, each.program)
        known = self._names.get(place)
        if known is None:
            if len(self._names) >= NAMES_MAX:
                self._names.clear()
            known = self._names[place] = place
        return known, replace(each, key=known[0], program=known[1])

    def _swap(
        self, key: MailKey, child: str, part: int, said: dict[Place, Collected]
    ) -> dict[Place, Collected]:
        """Keep what a part says; what it said before."""
        children = self._parts.setdefault(key, {})
        parts = children.setdefault(child, {})
        former = parts.pop(part, {})
        if said:
            parts[part] = said
        if not parts:
            del children[child]
            if not children:
                del self._parts[key]
        return former

    def parts_of(self, child: str) -> list[tuple[MailKey, int]]:
        """The parts in which a child says something."""
        return [(key, part) for key, said in self._parts.items() for part in said.get(child, ())]

    def children(self, key: MailKey) -> Iterable[str]:
        return self._parts.get(key, {})


class StandingCache:
    """What children are, asked once for all that is looked at together: nothing moves meanwhile."""

    def __init__(self, context: CollectorContext) -> None:
        self.standing, self.members = cache(context.standing), cache(context.members)

    def __enter__(self) -> None:
        self.standing.cache_clear()
        self.members.cache_clear()

    def __exit__(self, *_: object) -> None:
        self.__enter__()


class CollectedResults:
    """What is collected at one node; without an evaluator nothing is."""

    def __init__(
        self,
        content: Content,
        evaluator: Evaluator | None,
        destination_keys: DestinationKeys | None = None,
    ) -> None:
        self._content = content
        self._destination_keys = destination_keys or DestinationKeys(TreeId(""))
        self._evaluator = evaluator
        self._context: CollectorContext
        self._standing_cache: StandingCache
        self._own_status: Callable[[MailKey, ObjectKey], CopyView | None]
        # What the destination here returned of each object, and since when it says so.
        self._returned: dict[ObjectKey, tuple[bytes | None, int]] = {}
        self._placements: dict[MailKey, _Placement] = {}
        self._reports = CollectedReports()
        self._upsynced = UpsyncedObjects()
        self._turns = Turns()
        # Placements of which something is to be evaluated, the one that waits longest first.
        self._unfinished: dict[MailKey, None] = {}

    def settle(self, context: CollectorContext) -> None:
        """Learn what is around, once all of that is there."""
        self._standing_cache = StandingCache(context)
        self._context = context._replace(
            own=self._own,
            standing=self._standing_cache.standing,
            members=self._standing_cache.members,
            upsynced=self._upsynced.over,
            turns=self._turns,
            bounds=BoundedCache(BOUND_BYTES_MAX, 1),
        )
        self._own_status = context.own

    # What is in force.

    def put(self, key: MailKey, body: DeltaBody | None) -> None:
        """Take a delta in force; what it collects begins when its content is here."""
        if body is None or not body.collectors or self._evaluator is None:
            self.drop(key)
            return
        arms = tuple(gate.arm for gate in body.gates if gate.arm is not None)
        keys = self._keys(key, body)
        held, said = self._placements.get(key), (body.collectors, arms, keys)
        if held is not None and (held.programs, held.arms, held.keys) == said:
            return
        placement = _Placement(*said)
        if held is not None:
            # What was collected before stays until the new content is here.
            placement.items, placement.by_object = held.items, held.by_object
            placement.stale = held.stale
        self._placements[key] = placement
        self._content.end(_objects(key))
        if self._content.begin(_programs(key), (*body.collectors, *arms), read=True):
            self.programs_ready(key)

    def _keys(self, key: MailKey, body: DeltaBody) -> tuple[SealingKey, ...]:
        try:
            return tuple(self._destination_keys.keys(key, body.key))
        except NotOpened:
            return ()

    def drop(self, key: MailKey) -> None:
        """The placement is none any more, or collects nothing."""
        if self._placements.pop(key, None) is not None:
            self._content.end(_programs(key))
            self._content.end(_objects(key))
            self._find_sources()

    # What changed.

    def take(self, key: MailKey, child: str, part: int, said: tuple[Collected, ...]) -> bool:
        """Keep what a child says in a part of its report; whether it said another thing there."""
        if not said and child not in self._reports.children(key):
            return False
        places = list(self._reports.put(key, child, part, said))
        for place in places:
            self._stale_at(key, place, child)
        return bool(places)

    def forget_child(self, child: str) -> None:
        """The child is none any more."""
        for key, part in self._reports.parts_of(child):
            self.take(key, child, part, ())
        for key in self._placements:
            self.mark_dirty(key, child)

    def mark_dirty(self, key: MailKey, child: str) -> None:
        """Look at a child again: what is known of it, or who is meant below it, changed."""
        placement = self._placements.get(key)
        if placement is not None:
            placement.stale[child] = None

    def mark_child_dirty(self, child: str) -> None:
        """The same in all placements: its presence changed."""
        for key in self._placements:
            self.mark_dirty(key, child)

    def observed(self, obj: ObjectKey, placements: Iterable[MailKey]) -> None:
        """The destination here returned something else of an object."""
        for key in placements:
            placement = self._placements.get(key)
            for item in placement.by_object.get(obj, ()) if placement is not None else ():
                item.mark_dirty(HERE)

    def upsynced(self, obj: ObjectKey, copy: bytes | None) -> None:
        """An object of the destination here came up as another one, or is none any more."""
        if not self._upsynced.put(obj, copy, self._context.wall_ms()):
            return
        for key, placement in self._placements.items():
            items = [it for it in placement.items.values() if it.is_over_upsynced(obj)]
            for item in items:
                item.mark_dirty(HERE)
            if items:
                self._context.touch(key)

    @property
    def sources(self) -> Sources:
        """What collectors are over of what comes up."""
        return self._upsynced.sources

    def admits(self, key: MailKey, said: Sequence[Collected], *, current: bool) -> None:
        """Raise RecordRefused of rows that no merge takes, or of a collector not in `current`."""
        placement = self._placements.get(key)
        if placement is None or placement.found is None:
            return
        for each in said:
            item = placement.items.get((each.key, each.program))
            if item is not None:
                item.check_rows(each)
            elif current and placement.items and not self._content.knows(_objects(key)):
                raise RecordRefused(f"rows of {each.program[:40]!r}, which nothing collects by")

    # What is evaluated when.

    def begin_turn(self, now: float) -> None:
        """A turn begins: so much may be evaluated in it as is due by now."""
        self._turns.begin(now)

    def go_on(self) -> None:
        """Evaluate more of what waits, each placement in its turn."""
        with self._standing_cache:
            for key in list(self._unfinished):
                del self._unfinished[key]
                if not self._finish(key):
                    self._unfinished[key] = None
                    return
                self._context.touch(key)

    def deadline(self) -> float | None:
        """The monotonic second at which to go on; None if all is evaluated."""
        return self._turns.next() if self._unfinished else None

    def is_evaluated(self, key: MailKey) -> bool:
        """Whether nothing of the placement is to be evaluated, or it could be now."""
        self._of_items(key, ProgramResults.go_on)
        return key not in self._unfinished

    def _finish(self, key: MailKey) -> bool:
        placement = self._placements.get(key)
        if placement is None:
            return True
        for place in list(placement.unfinished):
            item = placement.items.get(place)
            if item is not None and not item.go_on(self._reports.at(key, place)):
                return False
            del placement.unfinished[place]
        return True

    # What follows.

    def collected(self, key: MailKey) -> tuple[Collected, ...]:
        """What the subtree says of a placement, in order."""
        said = self._of_items(key, ProgramResults.collected)
        return tuple(each for each in said if each is not None)

    def results(self, key: MailKey) -> list[Result]:
        """The same as values."""

        def result(item: ProgramResults, said_by: dict[str, Collected]) -> Result:
            return Result(item.key, item.program, item.total(said_by))

        return [each for each in self._of_items(key, result) if each.rows is not None]

    def assert_invariants(self) -> None:
        """Assert that what is merged is the merge of what is there."""
        for key, placement in self._placements.items():
            self.collected(key)
            for item in placement.items.values():
                item.assert_invariants()
            assert not placement.stale

    def _of_items(
        self, key: MailKey, ask: Callable[[ProgramResults, dict[str, Collected]], T]
    ) -> list[T]:
        """What each item says by what children said of it; it goes on if the turn has ended."""
        placement = self._placements.get(key)
        if placement is None:
            return []
        items, placement.stale, stale = placement.items, {}, placement.stale
        for child in stale:
            for item in items.values():
                item.mark_dirty(child)
        with self._standing_cache:
            said = [ask(item, self._reports.at(key, place)) for place, item in items.items()]
        unfinished = (place for place, item in items.items() if item.is_unfinished)
        placement.unfinished |= dict.fromkeys(unfinished)
        if placement.unfinished:
            self._unfinished.setdefault(key)
        return said

    def _own(self, key: MailKey, obj: ObjectKey) -> CopyView | None:
        """What the destination here returned, and when; and that this is reported now."""
        seen, now_ms = self._own_status(key, obj), self._context.wall_ms()
        if seen is None:
            return None
        status, since = self._returned.get(obj, (None, 0))
        if seen.status is None:
            self._returned.pop(obj, None)
            since = 0
        elif status != seen.status:
            since = now_ms
            self._returned[obj] = (seen.status, now_ms)
        return seen._replace(returned_ms=since, reported_ms=now_ms)

    def _stale_at(self, key: MailKey, place: Place, child: str) -> None:
        placement = self._placements.get(key)
        item = placement.items.get(place) if placement is not None else None
        if item is not None:
            item.mark_dirty(child)

    def programs_ready(self, key: MailKey) -> None:
        """The programs and the list of objects are here: have the objects themselves read."""
        placement, plains = self._placements[key], self._content.plains(_programs(key))
        try:
            placement.found = read_program_set(plains[placement.programs[0].address])
        except RecordRefused:
            placement.found = ProgramSet(1, (), ())
        wanted = {item.key for item in placement.found.objects}
        placement.references, placement.is_closed = {}, False
        for arm in placement.arms:
            try:
                manifest = manifest_of(plains, arm, placement.keys)
            except NotOpened:
                placement.is_closed = True
                continue
            placement.references |= {
                entry.key: (entry.reference, manifest.key)
                for entry in manifest.entries
                if entry.key in wanted
            }
        self._content.end(_programs(key))
        references = tuple(dict.fromkeys(it for it, _ in placement.references.values()))
        if self._content.begin(_objects(key), references, read=True, expand=False, objects=True):
            self.objects_ready(key)

    def objects_ready(self, key: MailKey) -> None:
        """All content is here: begin anew with what is collected now."""
        placement, plains = self._placements[key], self._content.plains(_objects(key))
        assert placement.found is not None
        assert self._evaluator is not None
        sources: dict[tuple[ObjectKey, Program], dict[ObjectKey, Sent]] = {}
        for listed in placement.found.objects:
            if listed.key == WHOLE:
                programs = [placement.found.programs[at] for at in listed.programs]
                sources |= {(WHOLE, it): {} for it in programs if it.source is not None}
                continue
            is_there = placement.is_closed or listed.key in placement.references
            plain = placement.plain(listed.key, plains)
            blanks = listed.blanks or ((),) * len(listed.programs)
            for at, blank in zip(listed.programs if is_there else (), blanks, strict=False):
                program = placement.found.programs[at]
                whole = program.scope == SCOPE_PLACEMENT
                place = (WHOLE if whole else listed.key, program)
                sources.setdefault(place, {})[listed.key] = blank if plain is None else plain
        self._content.end(_objects(key))
        former, placement.items, placement.by_object = placement.items, {}, {}
        tables = {program: TableAlgebra(program) for _, program in sources}
        for (obj, program), objects in sources.items():
            item = former.get((obj, program.id))
            if item is None or not item.is_over(objects):
                before, algebra = item, tables[program]
                item = ProgramResults(
                    key, obj, program, objects, self._context, self._evaluator, algebra
                )
                if before is not None:
                    item.succeed(before)
            placement.items[obj, item.id] = item
            for each in objects:
                placement.by_object.setdefault(each, []).append(item)
        self._find_sources()
        for child in self._context.children(key):
            placement.stale[child] = None
        self._context.touch(key)

    def _find_sources(self) -> None:
        items = (item for it in self._placements.values() for item in it.items.values())
        found = {item.program.source for item in items}
        self._upsynced.set_sources(frozenset(source for source in found if source is not None))


def _programs(key: MailKey) -> ContentOwner:
    return ContentOwner(OwnerKind.PROGRAMS, key)


def _objects(key: MailKey) -> ContentOwner:
    return ContentOwner(OwnerKind.COLLECTED, key)
