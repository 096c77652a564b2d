"""Where a record goes: from deltas, locations, profiles and label digests to children.

Per child only counts of labels are kept, of its destinations and of the Locations they belong to:
so a delta costs a step per child, however many destinations lie behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from relay.core.labels import (
    LabelCount,
    SelectorIndex,
    digest_may_match,
    fit_digests,
    merge_digests,
)
from schemas.identity import DestinationId, MailKey, NodePath
from schemas.moves import former_paths
from schemas.records import OVER_LOCATION, Alternative, LocationRecord, Profile, Record
from schemas.reports import SpaceLabels

Digests = Mapping[str, SpaceLabels]
AltId = tuple[MailKey, int]
_NO, _YES = 1, 2


class Branch:
    """What is known of the destinations at and below one child; `place` is a number of its own.

    It lasts while the child is `here`, or destinations hang there by their records.
    """

    def __init__(self, place: int = 0) -> None:
        self.place = place
        self.here = False
        self.profiles: dict[MailKey, None] = {}
        self.direct: MailKey | None = None
        self.labels: dict[str, LabelCount] = {}
        self.locations: dict[MailKey, None] = {}
        self.location_labels: dict[str, LabelCount] = {}
        self.digests: Digests | None = None

    @property
    def is_edge(self) -> bool:
        """Whether all that hangs here is one destination at the child itself, known exactly."""
        return self.direct is not None and len(self.profiles) == 1 and not self.foreign()

    def foreign(self) -> list[str]:
        """Inventory spaces that only the child's digest knows: someone below holds them."""
        if self.digests is None or self.digests.keys() <= self.labels.keys():
            return []
        return [space for space in self.digests if space not in self.labels]


class Where:
    """The resolving of one node."""

    def __init__(self, path: NodePath) -> None:
        self.path = path
        self.branches: dict[str, Branch] = {}
        self._free_places: list[int] = []
        self.locations: dict[MailKey, LocationRecord] = {}
        self.profiles: dict[MailKey, Profile] = {}
        self._at: dict[NodePath, tuple[MailKey, ...]] = {}
        self._come_to_know: dict[str, None] = {}
        self._all: dict[str, LabelCount] = {}
        self._noted: dict[MailKey, bytearray] = {}
        self._alternatives: dict[MailKey, tuple[Alternative, ...]] = {}
        self._over_location: SelectorIndex[AltId] = SelectorIndex()
        self._over_target: SelectorIndex[AltId] = SelectorIndex()
        self._instances: SelectorIndex[MailKey] = SelectorIndex()

    def set_delta(self, key: MailKey, alternatives: tuple[Alternative, ...] | None) -> None:
        """Put a delta's alternatives in force; None takes the delta out."""
        self._noted.pop(key, None)
        for at, held in enumerate(self._alternatives.pop(key, ())):
            self._index(held).put((key, at), None)
        if alternatives is not None:
            self._alternatives[key] = alternatives
            for at, alternative in enumerate(alternatives):
                self._index(alternative).put((key, at), alternative.selector)

    def set_location(self, key: MailKey, record: LocationRecord | None) -> None:
        """Put a location record in force; None takes it out."""
        self._noted.clear()
        held = self.locations.pop(key, None)
        if held is not None:
            for branch in self.branches.values():
                if key in branch.locations:
                    self._detach(branch, key, held)
        self._instances.put(key, record.instance_selector if record else None)
        if record is None or record.instance_selector is None:
            return
        self.locations[key] = record
        for branch in self.branches.values():
            count = branch.labels.get(record.source.space)
            if count is not None and count.may_match(record.instance_selector):
                self._attach(branch, key, record)

    def set_profile(self, key: MailKey, profile: Profile | None) -> None:
        """Put a destination in force where its path says; None takes it out."""
        self._noted.clear()
        held = self.profiles.pop(key, None)
        if held is not None:
            self._drop(key, held)
            self._all[held.source.space].remove(held.labels)
            left = tuple(other for other in self._at.pop(held.path) if other != key)
            if left:
                self._at[held.path] = left
        if profile is None or not self.path.holds(profile.path):
            return
        self.profiles[key] = profile
        self._at[profile.path] = (*self._at.get(profile.path, ()), key)
        self._all.setdefault(profile.source.space, LabelCount()).add(profile.labels)
        step = self.path.step_towards(profile.path)
        if step is None:
            return
        branch = self.branch(step)
        branch.profiles[key] = None
        if profile.path == self.path.child(step):
            branch.direct = key
        here_before = held is not None and self.path.step_towards(held.path) == step
        if profile.source.space in branch.foreign() and not here_before:
            self._come_to_know[step] = None
        branch.labels.setdefault(profile.source.space, LabelCount()).add(profile.labels)
        self._refresh(branch, profile)

    def take_come_to_know(self) -> list[str]:
        """The children of which an inventory space was known by their word only until now.

        By that any delta may have concerned them. Each is told once.
        """
        children, self._come_to_know = list(self._come_to_know), {}
        return children

    def set_digests(self, child: str, digests: Digests | None) -> None:
        """Put in force what a child says of its subtree's labels; None: nothing is known."""
        self._noted.clear()
        self.branch(child).digests = digests

    def come(self, child: str) -> None:
        """The child is a node of the tree."""
        self.branch(child).here = True

    def leave(self, child: str) -> None:
        """The child is none any more; once no destination hangs there its place is another's."""
        branch = self.branch(child)
        branch.here, branch.digests = False, None
        self._noted.clear()
        self._let_go(child, branch)

    def branch(self, child: str) -> Branch:
        branch = self.branches.get(child)
        if branch is None:
            place = self._free_places.pop() if self._free_places else len(self.branches)
            branch = self.branches[child] = Branch(place)
        return branch

    def destination_of(self, child: str) -> DestinationId | None:
        """The destination that a child is, if it is an edge and its profile is here."""
        branch = self.branches.get(child)
        if branch is None or not branch.is_edge or branch.direct is None:
            return None
        return self.profiles[branch.direct].destination

    def is_moved(self, child: str) -> bool:
        """Whether a child is a destination that hung elsewhere before."""
        branch = self.branches.get(child)
        direct = branch.direct if branch is not None else None
        return direct is not None and bool(former_paths(self.profiles[direct].annotations))

    def count_meant(self, key: MailKey, branch: Branch) -> int:
        """For how many destinations of a branch a delta is meant, by the profiles here."""
        return sum(self.matches(key, self.profiles[profile]) for profile in branch.profiles)

    def concerns(self, key: MailKey, child: str) -> bool:
        """Whether a delta in force may concern a destination at or below the child.

        Asked several times for each child, so the answer is noted until something changes.
        """
        branch, noted = self.branch(child), self._noted.get(key)
        if noted is None or branch.place >= len(noted):
            noted = self._noted[key] = bytearray(len(self.branches) + len(self._free_places))
        if not noted[branch.place]:
            noted[branch.place] = _YES if self._concerns(key, branch) else _NO
        return noted[branch.place] == _YES

    def _concerns(self, key: MailKey, branch: Branch) -> bool:
        alternatives = self._alternatives.get(key, ())
        if branch.is_edge and branch.direct is not None:
            return self.matches(key, self.profiles[branch.direct], branch.locations)
        if branch.digests is None:
            return bool(alternatives)
        return any(self._may(branch, alternative) for alternative in alternatives)

    def matches(
        self, key: MailKey, profile: Profile, among: Mapping[MailKey, None] | None = None
    ) -> bool:
        """Whether the delta is meant for this destination, exactly."""
        for alternative in self._alternatives.get(key, ()):
            if alternative.space not in ("", profile.source.space):
                continue
            if alternative.over != OVER_LOCATION:
                if alternative.selector.matches(profile.labels):
                    return True
                continue
            for location in self.locations_of(profile) if among is None else among:
                if alternative.selector.matches(self.locations[location].labels):
                    return True
        return False

    def locations_of(self, profile: Profile) -> Iterator[MailKey]:
        """The locations that a destination belongs to."""
        for key in self._instances.matching(profile.labels):
            if self.locations[key].source.space == profile.source.space:
                yield key

    def children_of_location(self, key: MailKey) -> list[str]:
        """The children with destinations that the location's instanceSelector may select."""
        return [name for name, branch in self.branches.items() if key in branch.locations]

    def deltas_of_location(self, record: LocationRecord) -> dict[MailKey, None]:
        """The deltas with an alternative that the location matches."""
        found = self._over_location.matching(record.labels)
        return {
            key: None
            for key, at in found
            if self._alternatives[key][at].space in ("", record.source.space)
        }

    def deltas_of_profile(self, profile: Profile) -> dict[MailKey, None]:
        """The deltas that a destination matches, itself or by a location."""
        found = {key: None for key, _ in self._over_target.matching(profile.labels)}
        for location in self.locations_of(profile):
            found |= self.deltas_of_location(self.locations[location])
        return found

    def deltas_of(self, record: Record) -> dict[MailKey, None]:
        """The deltas that a record bears on; none, if it is no profile or location in force."""
        match record:
            case Profile(deleted=False):
                return self.deltas_of_profile(record)
            case LocationRecord(deleted=False):
                return self.deltas_of_location(record)
            case _:
                return {}

    def deltas_at(self, path: NodePath) -> dict[MailKey, None]:
        """The deltas of the destination that hangs at a path, or of all that claim it."""
        found: dict[MailKey, None] = {}
        for key in self._at.get(path, ()):
            found |= self.deltas_of_profile(self.profiles[key])
        return found

    def bears_on(self, record: Profile | LocationRecord, delta: MailKey) -> bool:
        """Whether the delta is among those of the profile, or of the location."""
        alternatives = self._alternatives.get(delta, ())
        if isinstance(record, LocationRecord):
            return any(_over(record, alternative) for alternative in alternatives)
        if any(a.over != OVER_LOCATION and a.selector.matches(record.labels) for a in alternatives):
            return True
        among = [a for a in alternatives if a.over == OVER_LOCATION]
        return bool(among) and any(
            _over(self.locations[key], alternative)
            for key in self.locations_of(record)
            for alternative in among
        )

    def digest(self) -> dict[str, SpaceLabels]:
        """The label digest of this node's subtree, by inventory space."""
        parts = {space: [count.summary()] for space, count in self._all.items() if count.total}
        for branch in self.branches.values():
            for space in branch.foreign():
                parts.setdefault(space, []).append((branch.digests or {})[space])
        merged = {space: merge_digests(digests) for space, digests in sorted(parts.items())}
        return fit_digests(merged)

    def _may(self, branch: Branch, alternative: Alternative) -> bool:
        over = alternative.over == OVER_LOCATION
        counts = branch.location_labels if over else branch.labels
        for space, count in counts.items():
            if alternative.space in ("", space) and count.may_match(alternative.selector):
                return True
        for space in branch.foreign():
            if alternative.space not in ("", space):
                continue
            if over or digest_may_match((branch.digests or {})[space], alternative.selector):
                return True
        return False

    def _index(self, alternative: Alternative) -> SelectorIndex[AltId]:
        return self._over_location if alternative.over == OVER_LOCATION else self._over_target

    def _drop(self, key: MailKey, held: Profile) -> None:
        step = self.path.step_towards(held.path)
        if step is None:
            return
        branch = self.branch(step)
        del branch.profiles[key]
        if branch.direct == key:
            others = [other for other in self._at[held.path] if other != key]
            branch.direct = others[-1] if others else None
        count = branch.labels[held.source.space]
        count.remove(held.labels)
        if not count.total:
            del branch.labels[held.source.space]
        self._refresh(branch, held)
        self._let_go(step, branch)

    def _let_go(self, child: str, branch: Branch) -> None:
        if not branch.here and not branch.profiles and branch.digests is None:
            del self.branches[child]
            self._free_places.append(branch.place)

    def _refresh(self, branch: Branch, changed: Profile) -> None:
        """Look again at the locations that the changed destination is, or was, selected by."""
        space = changed.source.space
        count = branch.labels.get(space)
        keys = dict.fromkeys(self.locations_of(changed))
        if count is None or count.total == 1:
            # Of one destination the answer is exact, so what several only may have had goes.
            keys |= branch.locations
        for key in keys:
            record = self.locations[key]
            if record.source.space != space:
                continue
            selector = record.instance_selector
            belongs = count is not None and selector is not None and count.may_match(selector)
            if belongs and key not in branch.locations:
                self._attach(branch, key, record)
            elif not belongs and key in branch.locations:
                self._detach(branch, key, record)

    def _attach(self, branch: Branch, key: MailKey, record: LocationRecord) -> None:
        branch.locations[key] = None
        branch.location_labels.setdefault(record.source.space, LabelCount()).add(record.labels)

    def _detach(self, branch: Branch, key: MailKey, record: LocationRecord) -> None:
        del branch.locations[key]
        branch.location_labels[record.source.space].remove(record.labels)


def _over(record: LocationRecord, alternative: Alternative) -> bool:
    if alternative.over != OVER_LOCATION or alternative.space not in ("", record.source.space):
        return False
    return alternative.selector.matches(record.labels)
