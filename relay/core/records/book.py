"""All records that a node holds, each the newest of its key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from relay.core.records.accepted import AcceptedRecord, is_delta
from schemas.records.records import DeltaHead, NodeRecord, Profile, ReleaseRecord
from schemas.values.identity import MailKey, NodePath


class RecordBook:
    """The newest record of each key, found by child and by kind."""

    def __init__(self, path: NodePath) -> None:
        self._by_key: dict[MailKey, AcceptedRecord] = {}
        self._path = path
        self._deltas: dict[MailKey, None] = {}
        self._locations: dict[MailKey, None] = {}
        self._releases: dict[MailKey, None] = {}
        # Those of them that are under a rollout.
        self._gated: dict[MailKey, None] = {}
        # By child: profiles, and the nodes below it, that are on their way through it.
        self._through: dict[str, dict[MailKey, None]] = {}
        # By child: how many of these are how many names deep.
        self._depths: dict[str, Counter[int]] = {}

    @property
    def by_key(self) -> Mapping[MailKey, AcceptedRecord]:
        """All records."""
        return self._by_key

    @property
    def gated(self) -> Mapping[MailKey, None]:
        """The keys of deltas that are under a rollout."""
        return self._gated

    def get(self, key: MailKey) -> AcceptedRecord | None:
        return self._by_key.get(key)

    def put(self, accepted: AcceptedRecord) -> None:
        """Hold a record, in place of the one of its key."""
        self.drop(accepted.key)
        self._by_key[accepted.key] = accepted
        if is_delta(accepted):
            self._deltas[accepted.key] = None
            if isinstance(accepted.record, DeltaHead) and accepted.record.is_gated:
                self._gated[accepted.key] = None
        elif accepted.kind == "location":
            self._locations[accepted.key] = None
        elif isinstance(accepted.record, ReleaseRecord):
            self._releases[accepted.key] = None
        step = self.step_of(accepted)
        if step is not None:
            self._through.setdefault(step, {})[accepted.key] = None
            self._depths.setdefault(step, Counter())[_depth(accepted)] += 1

    def drop(self, key: MailKey) -> AcceptedRecord | None:
        """Hold nothing of the key any more."""
        former = self._by_key.pop(key, None)
        if former is None:
            return None
        self._deltas.pop(key, None)
        self._locations.pop(key, None)
        self._releases.pop(key, None)
        self._gated.pop(key, None)
        step = self.step_of(former)
        if step is not None:
            self._through[step].pop(key, None)
            self._depths[step][_depth(former)] -= 1
        return former

    def deltas(self) -> list[AcceptedRecord]:
        return [self._by_key[key] for key in self._deltas]

    def releases(self) -> tuple[MailKey, ...]:
        return tuple(self._releases)

    def is_location(self, key: MailKey) -> bool:
        return key in self._locations

    def through(self, child: str) -> Iterable[MailKey]:
        """The profiles and nodes that are passed on to a child."""
        return self._through.get(child, {})

    def levels_below(self, child: str) -> int:
        """How many levels of nodes and destinations lie below a child."""
        depths = +self._depths.get(child, Counter[int]())
        return max(max(depths, default=0) - len(self._path.names) - 1, 0)

    def nodes_at(self, child: str) -> int:
        """How many nodes signed records tell of at and below a child."""
        found = (self._by_key[key].record for key in self.through(child))
        paths = {it.path for it in found if isinstance(it, Profile | NodeRecord)}
        return len(paths | {self._path.child(child)})

    def is_edge(self, child: str) -> bool:
        """Whether all that hangs at a child is one destination at the child itself."""
        found = [self._by_key[key].record for key in self.through(child)]
        at = self._path.child(child)
        return len(found) == 1 and isinstance(found[0], Profile) and found[0].path == at

    def step_of(self, accepted: AcceptedRecord) -> str | None:
        """The child to which a profile or node is passed on; None if that is nobody."""
        return way_of(self._path, accepted)

    def without_path(self) -> tuple[MailKey, ...]:
        """What a snapshot lists by its key: deltas, Locations, releases; all others by a path."""
        return (*self._deltas, *self._locations, *self._releases)

    def assert_invariants(self) -> None:
        """Assert that the indexes agree with what is held."""
        assert self._deltas.keys() == {k for k, a in self._by_key.items() if is_delta(a)}
        locations = {k for k, a in self._by_key.items() if a.kind == "location"}
        assert self._locations.keys() == locations
        through: dict[str, set[MailKey]] = {}
        for key, accepted in self._by_key.items():
            step = self.step_of(accepted)
            if step is not None:
                through.setdefault(step, set()).add(key)
        held: Mapping[str, set[MailKey]] = {s: set(k) for s, k in self._through.items() if k}
        assert held == through
        depths = {s: Counter(_depth(self._by_key[key]) for key in k) for s, k in held.items()}
        assert depths == {s: +counts for s, counts in self._depths.items() if +counts}


def _depth(accepted: AcceptedRecord) -> int:
    record = accepted.record
    return len(record.path.names) if isinstance(record, Profile | NodeRecord) else 0


def way_of(path: NodePath, accepted: AcceptedRecord) -> str | None:
    """The child of `path` that a profile goes to, or the record of a node deeper than its child."""
    record = accepted.record
    if isinstance(record, Profile):
        return path.step_towards(record.path)
    if isinstance(record, NodeRecord) and len(record.path.names) >= len(path.names) + 2:
        return path.step_towards(record.path)
    return None
