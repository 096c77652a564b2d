"""The audience of each placement and Location at one node, from the inventory of its subtree.

A destination that changes is judged alone, by the selectors that its labels lead to. Only where
that would cost more is a placement counted anew as a whole, when it is next asked for or drained.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping

from relay.core.audience.label_sets import LabelSets
from relay.core.audience.numbering import Numbering, Range
from relay.core.audience.numbers import Numbers, between, in_order, rank_in, union
from relay.core.audience.selection import Counts, Selection, changed_indices
from relay.core.audience.selector_index import SelectorIndex, selectable
from schemas.objects.selectors import LabelSelector
from schemas.records.records import (
    OVER_LOCATION,
    Alternative,
    LocationHead,
    LocationRecord,
    Profile,
)
from schemas.values.identity import MailKey, NodePath

HERE = ""
"""The child name under which destinations at the node itself count; no child has it."""

JUDGED_MIN = 1000
"""So many changed destinations between two drains are always judged alone."""

RECOUNT_COST = 10
"""To count one placement anew costs about as much as to judge so many destinations alone."""


class Audience:
    """Who is meant, at one node. Records of other subtrees are as good as absent."""

    def __init__(self, owner: NodePath) -> None:
        self._owner = owner
        self._numbering = Numbering()
        self._targets = LabelSets()
        # Profile key to number, and by number the profile's key and path.
        self._numbers: dict[MailKey, int] = {}
        self._keys: list[MailKey] = []
        self._paths: list[str] = []
        # Locations with an instance selector; their numbers have nothing to do with destinations.
        self._locations = LabelSets()
        self._location_numbers: dict[MailKey, int] = {}
        self._location_keys: list[MailKey] = []
        self._instance_selectors: list[LabelSelector] = []
        self._free_locations: list[int] = []
        self._by_instance: SelectorIndex[int] = SelectorIndex()
        # Placements with equal alternatives share a selection.
        self._placements: dict[MailKey, Selection] = {}
        self._selections: dict[tuple[Alternative, ...], Selection] = {}
        # Alternatives as (selection, position in its list).
        self._over_target: SelectorIndex[tuple[Selection, int]] = SelectorIndex()
        self._over_location: SelectorIndex[tuple[Selection, int]] = SelectorIndex()
        # Selections whose counts are to be made anew.
        self._stale: dict[Selection, None] = {}
        # What changed since the last drain: selections; placements with other alternatives, and
        # what they counted; Locations, by how much by child index; children that became empty.
        self._changed: dict[Selection, None] = {}
        self._reassigned: dict[MailKey, Counts | None] = {}
        self._location_changes: dict[MailKey, dict[int, int]] = {}
        self._vacant: dict[str, None] = {}
        # Destinations judged alone since the last drain.
        self._judged = 0

    def put_profile(self, key: MailKey, profile: Profile | None) -> None:
        """Put a destination in force where its path says; None takes it out."""
        number = self._numbers.get(key)
        if profile is None or not self._owner.holds(profile.path):
            if number is not None:
                self._remove_destination(number)
            return
        space, path = profile.source.space, str(profile.path)
        if number is not None:
            same = path == self._paths[number] and space == self._targets.space(number)
            if same and self._targets.labels(number) == profile.labels:
                return
            self._remove_destination(number)
        number = self._take_number(self._owner.step_towards(profile.path) or HERE)
        self._numbers[key], self._keys[number], self._paths[number] = number, key, path
        self._targets.put(number, space, profile.labels)
        self._judge(number, 1)

    def put_location(self, key: MailKey, location: LocationRecord | None) -> None:
        """Put a Location in force; None takes it out."""
        number, relabelled = self._location_numbers.get(key), True
        selector = location.instance_selector if location is not None else None
        if number is not None and location is not None:
            space, labels = self._locations.space(number), self._locations.labels(number)
            relabelled = space != location.source.space or labels != location.labels
            if not relabelled and selector == self._instance_selectors[number]:
                return
        affected = self._over_location_of(number)
        before, after = self._members(key).copy(), self._targets.numbers()
        if location is not None and selector is not None:
            after = self._targets.select(location.source.space, selector).copy()
            affected |= self._selecting(location.source.space, location.labels)
        judged = self._start_change(before | after if relabelled else before ^ after, affected)
        if number is not None:
            self._remove_location(number)
        if location is not None and selector is not None:
            self._add_location(key, location, selector)
        self._add_each(judged, affected, 1)
        self._note_location(key, before, -1)
        self._note_location(key, after, 1)

    def put_placement(self, key: MailKey, alternatives: tuple[Alternative, ...] | None) -> None:
        """Put a placement's alternatives in force; None takes the placement out."""
        held = self._placements.get(key)
        if held is not None and held.alternatives == alternatives:
            return
        if key not in self._reassigned:
            self._reassigned[key] = held.drained_counts() if held is not None else None
        if held is not None:
            del self._placements[key], held.placements[key]
            if not held.placements:
                self._remove_selection(held)
        if alternatives is not None:
            selection = self._selections.get(alternatives)
            if selection is None:
                selection = self._add_selection(alternatives)
            selection.placements[key] = None
            self._placements[key] = selection

    def expected(self, key: MailKey, child: str) -> int:
        """For how many destinations at and below a child a placement or Location is meant."""
        held = self._numbering.by_child.get(child)
        if held is None:
            return 0
        if key in self._placements:
            return self._counted(self._placements[key]).count(held.index)
        return between(self._members(key), held.start, held.stop)

    def concerned(self, key: MailKey) -> list[str]:
        """The children that a placement or Location concerns, without the node itself."""
        if key in self._placements:
            found: Iterable[str] = self._meant_at(self._placements[key])
        else:
            found = self._named(self._count(self._members(key)))
        return [child for child in found if child != HERE]

    def placements_concerning(self, child: str) -> Iterator[MailKey]:
        """The placements, then the Locations, that concern a child, each once."""
        held = self._numbering.by_child.get(child)
        if held is None:
            return
        for key, selection in self._placements.items():
            if self._counted(selection).count(held.index):
                yield key
        if len(self._locations) < held.used:
            for key in self._location_numbers:
                if self.expected(key, child):
                    yield key
            return
        found: dict[MailKey, None] = {}
        for offset in held.offsets():
            found.update(dict.fromkeys(self.locations_of(self._keys[held.start + offset])))
        yield from found

    def placements_of(self, profile: MailKey) -> Iterator[MailKey]:
        """The placements that are meant for one destination."""
        number = self._numbers.get(profile)
        if number is not None:
            for selection in self._selections_of(number):
                yield from selection.placements

    def locations_of(self, profile: MailKey) -> Iterator[MailKey]:
        """The Locations that one destination belongs to."""
        number = self._numbers.get(profile)
        if number is not None:
            space, labels = self._targets.space(number), self._targets.labels(number)
            for location in self._by_instance.matching(space, labels):
                yield self._location_keys[location]

    def profiles(self, placement: MailKey, child: str) -> Iterator[MailKey]:
        """The destinations at and below a child that a placement means, by their profiles."""
        selection, held = self._placements.get(placement), self._numbering.by_child.get(child)
        if selection is not None and held is not None:
            below = self._targets.numbers(range(held.start, held.stop))
            for number in in_order(self._select(selection.alternatives, below)):
                yield self._keys[number]

    def bears_on(self, record: Profile | LocationRecord, placement: MailKey) -> bool:
        """Whether an inventory record, in force or not, matches an alternative of a placement.

        A profile does so itself, or by a Location in force.
        """
        selection = self._placements.get(placement)
        if selection is None:
            return False
        space, labels = record.source.space, selectable(record.labels)
        if isinstance(record, LocationRecord):
            selects = record.instance_selector is not None
            return selects and selection.selects_location(space, labels)
        return selection.selects_target(space, labels) or any(
            selection.selects_location(self._locations.space(at), self._locations.labels(at))
            for at in self._by_instance.matching(space, labels)
        )

    def has_instances(self, location: LocationHead, other: Profile | None) -> bool:
        """Whether a Location, in force or not, selects a destination in force, or another one."""
        space, selector = location.source.space, location.instance_selector
        if selector is None:
            return False
        if self._targets.select(space, selector):
            return True
        return other is not None and other.source.space == space and selector.matches(other.labels)

    def meant_for(self, profile: Profile) -> Iterator[MailKey]:
        """The placements that are meant for a destination, in force or not."""
        space, labels = profile.source.space, profile.labels
        located = self._by_instance.matching(space, labels)
        for selection in self._matching(space, labels, located):
            yield from selection.placements

    def located_at(self, profile: Profile) -> Iterator[MailKey]:
        """The Locations that a destination belongs to, in force or not."""
        for location in self._by_instance.matching(profile.source.space, profile.labels):
            yield self._location_keys[location]

    def drain(self) -> dict[MailKey, tuple[str, ...]]:
        """The placements and Locations whose `expected` changed since the last drain, by child."""
        for selection in list(self._stale):
            self._counted(selection)
        children = self._children()
        drained: dict[MailKey, tuple[str, ...]] = {}
        for key, before in self._reassigned.items():
            now = self._placements.get(key)
            if before is None:
                drained[key] = self._meant_at(now) if now is not None else ()
                continue
            after = now.counts if now is not None else array("I")
            drained[key] = tuple(children[index] for index in changed_indices(before, after))
        for selection in self._changed:
            names = tuple(children[index] for index in selection.drain())
            for key in selection.placements:
                drained.setdefault(key, names)
        for key, changes in self._location_changes.items():
            drained[key] = tuple(children[index] for index, by in changes.items() if by)
        self._changed, self._reassigned, self._location_changes = {}, {}, {}
        for child in self._vacant:
            held = self._numbering.by_child[child]
            if not held.used:
                self._numbering.release(held)
        self._vacant, self._judged = {}, 0
        return {key: names for key, names in drained.items() if names}

    # Destinations

    def _take_number(self, child: str) -> int:
        held = self._numbering.range_for(child)
        if held.is_full:
            self._widen(held)
        self._reach_end()
        return held.take()

    def _reach_end(self) -> None:
        missing = self._numbering.end - len(self._keys)
        self._keys += [MailKey("")] * missing
        self._paths += [""] * missing

    def _widen(self, held: Range) -> None:
        """Double a child's range, and number its destinations anew."""
        former = self._numbering.widen(held)
        self._reach_end()
        for offset in held.offsets():
            old, new = former + offset, held.start + offset
            self._targets.renumber(old, new)
            key = self._keys[new] = self._keys[old]
            self._numbers[key] = new
            self._paths[new] = self._paths[old]
            self._keys[old], self._paths[old] = MailKey(""), ""

    def _remove_destination(self, number: int) -> None:
        self._judge(number, -1)
        self._targets.discard(number)
        del self._numbers[self._keys[number]]
        self._keys[number], self._paths[number] = MailKey(""), ""
        held = self._numbering.range_at(number)
        held.give_back(number)
        if not held.used:
            self._vacant[held.child] = None

    def _judge(self, number: int, by: int) -> None:
        """Count one destination more or less wherever it is meant."""
        index = self._numbering.range_at(number).index
        space, labels = self._targets.space(number), self._targets.labels(number)
        locations = list(self._by_instance.matching(space, labels))
        for location in locations:
            self._note_change(self._location_keys[location], index, by)
        self._judged += 1
        if self._judged > max(JUDGED_MIN, RECOUNT_COST * len(self._selections)):
            self._stale = dict.fromkeys(self._selections.values())
        if len(self._stale) < len(self._selections):
            self._add(self._matching(space, labels, locations), index, by)

    def _add(self, selections: Iterable[Selection], index: int, by: int) -> None:
        for selection in selections:
            if selection not in self._stale:
                selection.add(index, by)
                self._changed[selection] = None

    def _selections_of(self, number: int) -> dict[Selection, None]:
        space, labels = self._targets.space(number), self._targets.labels(number)
        return self._matching(space, labels, self._by_instance.matching(space, labels))

    def _matching(
        self, space: str, labels: Mapping[str, str], locations: Iterable[int]
    ) -> dict[Selection, None]:
        """The selections that select these labels, or one of the Locations."""
        found = {selection: None for selection, _ in self._over_target.matching(space, labels)}
        for location in locations:
            found |= self._over_location_of(location)
        return found

    # Locations

    def _over_location_of(self, location: int | None) -> dict[Selection, None]:
        """The selections that a Location bears on."""
        if location is None:
            return {}
        return self._selecting(self._locations.space(location), self._locations.labels(location))

    def _selecting(self, space: str, labels: Mapping[str, str]) -> dict[Selection, None]:
        """The selections that select a Location with these labels."""
        return {selection: None for selection, _ in self._over_location.matching(space, labels)}

    def _start_change(self, touched: Numbers, affected: Mapping[Selection, None]) -> Numbers:
        """Before a Location changes: the destinations to be judged, no longer counted.

        Where to judge them costs more than to count the selections anew, it is the latter.
        """
        if len(touched) > RECOUNT_COST * len(affected):
            self._stale.update(affected)
            return self._targets.numbers()
        self._add_each(touched, affected, -1)
        return touched

    def _add_each(self, numbers: Numbers, affected: Mapping[Selection, None], by: int) -> None:
        """Count destinations more or less, as far as these selections are meant for them."""
        for number in in_order(numbers):
            index = self._numbering.range_at(number).index
            self._add(self._selections_among(affected, number), index, by)

    def _selections_among(
        self, affected: Mapping[Selection, None], number: int
    ) -> Iterator[Selection]:
        """Those of the selections that are meant for a destination."""
        space, labels = self._targets.space(number), self._targets.labels(number)
        found: dict[Selection, None] = {}
        for location in self._by_instance.matching(space, labels):
            found |= self._over_location_of(location)
        for selection in affected:
            if selection in found or selection.selects_target(space, labels):
                yield selection

    def _add_location(
        self, key: MailKey, location: LocationRecord, selector: LabelSelector
    ) -> None:
        if self._free_locations:
            number = self._free_locations.pop()
            self._location_keys[number], self._instance_selectors[number] = key, selector
        else:
            number = len(self._location_keys)
            self._location_keys.append(key)
            self._instance_selectors.append(selector)
        self._location_numbers[key] = number
        self._locations.put(number, location.source.space, location.labels)
        self._by_instance.put(number, location.source.space, selector)

    def _remove_location(self, number: int) -> None:
        del self._location_numbers[self._location_keys[number]]
        self._locations.discard(number)
        self._by_instance.discard(number)
        self._location_keys[number] = MailKey("")
        self._instance_selectors[number] = LabelSelector()
        self._free_locations.append(number)

    def _members(self, location: MailKey) -> Numbers:
        """The destinations of a Location; not to be changed."""
        number = self._location_numbers.get(location)
        if number is None:
            return self._targets.numbers()
        selector = self._instance_selectors[number]
        return self._targets.select(self._locations.space(number), selector)

    def _note_location(self, key: MailKey, members: Numbers, by: int) -> None:
        for index, count in enumerate(self._count(members)):
            if count:
                self._note_change(key, index, by * count)

    def _note_change(self, location: MailKey, index: int, by: int) -> None:
        changes = self._location_changes.setdefault(location, {})
        changes[index] = changes.get(index, 0) + by

    # Selections

    def _add_selection(self, alternatives: tuple[Alternative, ...]) -> Selection:
        selection = self._selections[alternatives] = Selection(alternatives)
        for at, alternative in enumerate(alternatives):
            self._index(alternative).put((selection, at), alternative.space, alternative.selector)
        self._stale[selection] = None
        return selection

    def _remove_selection(self, selection: Selection) -> None:
        for at, alternative in enumerate(selection.alternatives):
            self._index(alternative).discard((selection, at))
        del self._selections[selection.alternatives]
        self._stale.pop(selection, None)
        self._changed.pop(selection, None)

    def _index(self, alternative: Alternative) -> SelectorIndex[tuple[Selection, int]]:
        return self._over_location if alternative.over == OVER_LOCATION else self._over_target

    def _counted(self, selection: Selection) -> Selection:
        """The selection, its counts in order."""
        if selection in self._stale:
            del self._stale[selection]
            selection.set_counts(self._count(self._select(selection.alternatives)))
            self._changed[selection] = None
        return selection

    def _select(
        self, alternatives: tuple[Alternative, ...], within: Numbers | None = None
    ) -> Numbers:
        """The destinations that match an alternative; not to be changed."""
        parts = []
        for alternative in alternatives:
            space, selector = alternative.space, alternative.selector
            if alternative.over != OVER_LOCATION:
                parts.append(self._targets.select(space, selector))
                continue
            for location in self._locations.select(space, selector):
                instances = self._instance_selectors[location]
                parts.append(self._targets.select(self._locations.space(location), instances))
        if within is not None:
            parts = [part & within for part in parts]
        return union(parts) if parts else self._targets.numbers()

    def _count(self, members: Numbers) -> Counts:
        """How many of these destinations each child has."""
        ranges = self._numbering.ordered
        counts = array("I", bytes(4 * self._numbering.indices))
        if len(members) < len(ranges):
            for number in members:
                counts[self._numbering.range_at(number).index] += 1
            return counts
        # The numbers between ranges are nobody's, so a rank tells all below a range's end.
        below, rank_of = 0, rank_in(members)
        for held in ranges:
            rank = rank_of(held.stop - 1)
            counts[held.index], below = rank - below, rank
        return counts

    def _meant_at(self, selection: Selection) -> tuple[str, ...]:
        """The children that have destinations which it selects."""
        counted = self._counted(selection)
        if counted.children is None:
            counted.children = self._named(counted.counts)
        return counted.children

    def _named(self, counts: Counts) -> tuple[str, ...]:
        """The children that are counted."""
        children = self._children()
        return tuple(children[index] for index, count in enumerate(counts) if count)

    def _children(self) -> list[str]:
        """The children's names by index."""
        children = [HERE] * self._numbering.indices
        for child, held in self._numbering.by_child.items():
            children[held.index] = child
        return children

    # Invariants

    def assert_invariants(self) -> None:
        """Assert that all sets and counts equal what each destination's own labels say."""
        for part in (self._numbering, self._targets, self._locations):
            part.assert_invariants()
        for index in (self._by_instance, self._over_target, self._over_location):
            index.assert_invariants()
        assert set(self._numbers.values()) == {
            held.start + offset for held in self._numbering.ordered for offset in held.offsets()
        }
        assert len(self._numbers) == len(self._targets)
        for key, number in self._numbers.items():
            path = NodePath.parse(self._paths[number])
            child = self._owner.step_towards(path) or HERE
            assert self._keys[number] == key
            assert number in self._targets
            assert self._numbering.range_at(number).child == child
        assert all(held.used or held.child in self._vacant for held in self._numbering.ordered)
        assert len(self._location_numbers) == len(self._locations)
        for key, number in self._location_numbers.items():
            assert self._location_keys[number] == key
        self._check_selections()

    def _check_selections(self) -> None:
        for alternatives, selection in self._selections.items():
            assert selection.alternatives == alternatives
            assert selection.placements
            assert all(self._placements[key] is selection for key in selection.placements)
            assert not selection.before or selection in self._changed or selection in self._stale
            if selection not in self._stale:
                counts = array("I", bytes(4 * self._numbering.indices))
                for number in self._numbers.values():
                    meant = any(self._is_meant(number, item) for item in alternatives)
                    counts[self._numbering.range_at(number).index] += meant
                assert not list(changed_indices(selection.counts, counts))
                assert selection.children in (None, self._named(counts))
        assert sum(len(item.placements) for item in self._selections.values()) == len(
            self._placements
        )

    def _is_meant(self, number: int, alternative: Alternative) -> bool:
        """Whether an alternative selects a destination, by trying it with all Locations."""
        space, labels = self._targets.space(number), self._targets.labels(number)
        if alternative.space not in ("", space):
            return False
        if alternative.over != OVER_LOCATION:
            return alternative.selector.matches(labels)
        return any(
            self._locations.space(location) == space
            and self._instance_selectors[location].matches(labels)
            and alternative.selector.matches(self._locations.labels(location))
            for location in self._location_numbers.values()
        )
