"""Who is not judged again under a new snapshot stands as if he had been."""

from hypothesis import given
from hypothesis import strategies as st

from relay.core.records.accepted import AcceptedRecord, Version
from relay.core.records.judge import SnapshotJudge, VerifiedSnapshot
from relay.core.records.snapshot import SnapshotInterest
from relay.core.records.tree import SnapshotTree
from relay.core.records.verdict import RecordStanding, standing
from schemas.records.records import LocationRecord, NodeRecord, Source
from schemas.records.snapshots import TermEntry, mail_entry_key
from schemas.values.identity import NodePath, mail_key
from tests.snapshots import TERM, view_of

EMEA = NodePath.parse("/emea")
FOREIGN = "ff" * 8
PATHS = [EMEA.child(f"s{number}") for number in range(6)]
SOURCES = {
    **{mail_key("Location", "inventory", "", str(n)): None for n in range(6)},
    **{mail_key("Node", "inventory", "", str(path)): path for path in PATHS},
}
ALL = sorted(SOURCES)
# So many that a tree of them has several leaves; nobody here holds them.
OTHERS = {mail_entry_key(mail_key("Location", "x", "", str(n))): 5 for n in range(300)}


def record(key, generation, term):
    source, version = Source("any", "inventory", "", "any"), Version(generation, 0, full=True)
    path = SOURCES[key]
    if path is None:
        location = LocationRecord(source, generation, term, "", {}, {}, None)
        return AcceptedRecord(key, "location", location, b"", b"", version)
    return AcceptedRecord(
        key, "node", NodeRecord(source, generation, term, "", path, ""), b"", b"", version
    )


class Holder:
    """A node that takes and lets go of records as it likes, and reads snapshots of a tree."""

    def __init__(self):
        self.held = {}
        self.judge = SnapshotJudge(self.held, self.interest, EMEA)
        self.tree = SnapshotTree.empty().changed(OTHERS)
        self.generation, self.reign = 10, 0
        self.nodes = {}
        for key in ALL:
            self.take(key, 0, TERM.hex())
            self.list_as_held(key)
        self.snapshot(known=True)
        self.reach()

    def interest(self):
        entries = [it.entry_key for key, it in self.held.items() if SOURCES[key] is None]
        return SnapshotInterest(entries, EMEA)

    def take(self, key, back, term):
        held = record(key, max(self.generation - back, 1), term)
        self.judge.accepted(held)
        self.held[key] = held
        self.judge.rejudge()

    def drop(self, key):
        if self.held.pop(key, None) is not None:
            self.judge.forget(key)

    def list(self, key, back):
        """The centre lists the key at this generation; not at all without one."""
        entry = record(key, 1, "").entry_key
        listed = None if back is None else max(self.generation - back, 1)
        self.tree = self.tree.changed({entry: listed})

    def list_as_held(self, key):
        held = self.held.get(key)
        if held is not None:
            self.tree = self.tree.changed({held.entry_key: held.generation})

    def snapshot(self, known):
        """A new one is signed; its terms know that of the records up to now, or to an old one."""
        self.generation += 10
        terms = [TermEntry(TERM, None if known else self.generation - 15)]
        self.view = view_of(self.tree, generation=self.generation, terms=terms, reign=self.reign)
        self.nodes |= self.view.nodes
        self.judge.offer(
            VerifiedSnapshot(self.view.record, b"", b"", Version(self.generation, 0, full=True)),
            1,
            0.0,
        )

    def promote(self, back):
        """Another centre signs from now on, whose counter may be behind."""
        self.reign += 1
        self.generation = max(self.generation - back, 10)

    def read(self, rounds):
        while rounds and (missing := self.judge.read_more()):
            rounds -= 1
            for reference in missing:
                self.judge.take(reference.address, self.nodes[reference.address])

    def reach(self):
        """Read all that there is, and reach the newest."""
        self.read(1000)
        while self.judge.candidate is not None:
            self.judge.reach()

    def agrees(self):
        """By a new snapshot all stand as each alone would."""
        self.reach()
        self.snapshot(known=True)
        self.reach()
        expected = {kind: set() for kind in RecordStanding}
        for it in self.held.values():
            listing = self.view.generation_of(it.entry_key)
            expected[standing(it.held, listing, self.view)].add(it.key)
        found = self.judge.standings
        assert found.outdated.keys() == expected[RecordStanding.OUTDATED]
        assert found.orphaned.keys() == expected[RecordStanding.ORPHANED]
        assert found.dropped.keys() == expected[RecordStanding.DROPPED]


KEYS, BACK = st.sampled_from(ALL), st.integers(-15, 30)
STEPS = st.one_of(
    st.tuples(st.just("take"), KEYS, BACK, st.sampled_from([TERM.hex(), FOREIGN])),
    st.tuples(st.just("drop"), KEYS),
    st.tuples(st.just("list"), KEYS, st.none() | BACK),
    st.tuples(st.just("list_as_held"), KEYS),
    st.tuples(st.just("snapshot"), st.booleans()),
    st.tuples(st.just("promote"), BACK),
    st.tuples(st.just("read"), st.integers(1, 4)),
    st.tuples(st.just("reach")),
)


@given(st.lists(STEPS, max_size=40))
def test_who_is_not_judged_again_stands_as_if_he_had_been(steps):
    holder = Holder()
    for what, *arguments in steps:
        getattr(holder, what)(*arguments)
        holder.judge.assert_invariants()
    holder.agrees()
