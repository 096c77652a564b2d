"""What a destination wants, reports and may prune; one change costs as much beside many others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.core.content.content import Content
from relay.core.destination import claims
from relay.core.destination.copies_here import CopiesHere
from relay.core.destination.destination import LocalDestination
from relay.core.destination.inputs import FormerRun, SignedInventory
from relay.core.destination.withheld import WITHHELD, WITHHELD_AFTER_SECONDS
from relay.core.effects import LoadBlob
from relay.core.events import BlobArrived, ObjectObserved
from relay.core.instant import Instant
from schemas.content.manifest import ManifestEntry, build_manifest
from schemas.objects.objects import ObjectKey
from schemas.records.moves import MOVED_ANNOTATION
from schemas.records.records import API_SYNC_TARGET, DeltaBody, DeltaHead, Gate, Profile, Source
from schemas.reports.reports import Done, Repaired
from schemas.reports.states import AT_WORK, NOT_WORKING
from schemas.values.groups import API_PLACEMENT
from schemas.values.identity import DestinationId, NodePath, short_key
from schemas.values.wire import replace

PATH = NodePath.parse("/r/e")
MANY = 300
NOW = Instant(5.0, 5)


def mail_key(number):
    return short_key(number.to_bytes(20, "big"))


def listed(number, revision=1, objects=1):
    """The entries of a placement; no two placements list the same object."""
    return [
        ManifestEntry(
            "", "configmaps", "shop", f"c{number}-{at}", f"{number * 1000 + at:063x}{revision:x}",
            10, "s", revision, order=12,
        )
        for at in range(objects)
    ]  # fmt: skip


def mine(generation=1, path=PATH, former=()):
    source = Source(API_SYNC_TARGET, "i", "", "e")
    said = {MOVED_ANNOTATION: ",".join(map(str, former))} if former else {}
    return Profile(source, generation, "", "", DestinationId("d"), path, {"a": "b"}, said, {})


class Bench:
    """One destination, told of deltas whose content is at hand."""

    def __init__(self, done=(), last_loss=0, taken=None):
        self.out, self.values, self.unselected = [], {}, set()
        self.content = Content((), self.out)
        inventory = SignedInventory(
            lambda _profile, key: key not in self.unselected, lambda _profile: ()
        )
        self.edge = LocalDestination(
            PATH, inventory, self.content, FormerRun(done, last_loss, taken=taken or {})
        )
        self.edge.put_profile(mail_key(0), mine())

    def put(self, number, revision=1, objects=1, names=None, serve=True, entries=()):
        """A delta; names the placements of which something else may be to be said."""
        if not entries:
            entries = listed(number, revision, objects) if names is None else named(names)
        stored = build_manifest(entries)
        self.values |= {a: v for blob in stored for a, v in blob.values.items()}
        self.content.keep(entry.address for entry in entries)
        self.evaluate(number, revision, DeltaBody((), (Gate(stored[0].reference),)))
        return self.serve() if serve else None

    def evaluate(self, number, revision, body=None, cause=None, now=0.0):
        key, source = mail_key(number + 1), Source(API_PLACEMENT, "s", "", f"p{number}")
        head = DeltaHead(source, revision, "", "", b"h" * 32, (), 0)
        self.edge.evaluate(
            key, head, body, cause=revision if cause is None else cause, now=Instant(now, 5)
        )

    def serve(self):
        while self.out:
            wanted = self.out.pop()
            assert isinstance(wanted, LoadBlob)
            value = self.values[wanted.reference.address]
            for owner in self.content.arrived(BlobArrived(wanted.reference, value, True), 0.0):
                self.edge.content_ready(owner.key)
        return self.resolve()

    def resolve(self):
        touched = self.edge.resolve().touched
        self.edge.assert_invariants()
        self.content.assert_invariants()
        return touched

    def see(self, entry, health="healthy", wish=None):
        """The syncer's word on an object, for the present wish or a former one."""
        wanted = self.edge.wanted.get(entry.key)
        number = wanted.wish if wish is None and wanted is not None else wish or 0
        said = ObjectObserved(entry.key, True, entry.address, "", health, None, wish=number)
        return self.edge.observe(said)

    def why(self, number):
        """What is said of the placement: severity, object and reason."""
        found = self.edge.summary(mail_key(number + 1), NOW).exceptions
        return [(sample.severity, sample.object, sample.reason) for sample in found]

    def gone(self, key):
        return self.edge.observe(ObjectObserved(key, False, "", "", "unknown", None))

    def state(self, number, now=NOW):
        (state,) = self.edge.summary(mail_key(number + 1), now).states
        return state


def named(names):
    """The entries of objects by name, which several placements may list."""
    return [
        ManifestEntry("", "configmaps", "shop", name, f"{ord(name):064x}", 10, "s", 1, order=12)
        for name in names
    ]


X, Y = named("xy")


def test_what_a_destination_forgot_stays_while_any_content_is_to_come():
    bench = Bench()
    bench.put(1, names="x", serve=False)
    assert not bench.edge.may_prune(X.key, 99)
    assert not bench.edge.may_prune(Y.key, 99)
    bench.serve()
    assert not bench.edge.may_prune(X.key, 99)
    assert bench.edge.may_prune(Y.key, 99)


def counted(monkeypatch, owner, name):
    """Count the calls of a function."""
    honest, calls = getattr(owner, name), []

    def counting(*args):
        calls.append(args)
        return honest(*args)

    monkeypatch.setattr(owner, name, counting)
    return calls


def test_a_change_of_one_placement_chooses_of_its_objects_only_and_touches_no_other(monkeypatch):
    bench = Bench()
    for number in range(MANY):
        assert bench.put(number).keys() == {mail_key(number + 1)}
    monkeypatch.setattr(LocalDestination, "assert_invariants", lambda _edge: None)
    chosen = counted(monkeypatch, claims, "choose")
    assert bench.put(7, revision=2).keys() == {mail_key(8)}
    assert [key.name for key, _ in chosen] == ["c7-0"]


def test_what_is_seen_of_one_object_judges_no_other(monkeypatch):
    bench = Bench()
    bench.put(0, objects=MANY)
    bench.edge.summary(mail_key(1), NOW)
    judged = counted(monkeypatch, CopiesHere, "judged")
    entries = listed(0, objects=MANY)
    for entry in entries:
        assert bench.see(entry) == [mail_key(1)]
        bench.edge.summary(mail_key(1), NOW)
    assert len(judged) == MANY
    assert bench.edge.summary(mail_key(1), NOW).states == {"synced": 1}


def test_a_delta_looked_at_again_without_news_leaves_nothing_to_choose():
    bench = Bench()
    bench.put(0)
    former = dict(bench.edge.wanted)
    root = build_manifest(listed(0))[0].reference
    bench.evaluate(0, 1, DeltaBody((), (Gate(root),)))
    assert not bench.edge.is_stale
    assert bench.edge.wanted == former


def test_an_object_that_is_degraded_or_well_again_is_said_so():
    bench = Bench()
    bench.put(0, objects=2)
    one, other = listed(0, objects=2)
    for entry, health in ((one, "degraded"), (other, "healthy")):
        bench.see(entry, health)
    summary = bench.edge.summary(mail_key(1), NOW)
    assert (summary.health, [sample.object for sample in summary.exceptions]) == (
        {"degraded": 1},
        [str(one.key)],
    )
    bench.see(one)
    summary = bench.edge.summary(mail_key(1), NOW)
    assert (summary.health, summary.exceptions) == ({"healthy": 1}, ())


# What may be pruned.


def test_what_a_new_version_lost_goes_once_its_generation_is_settled():
    bench = Bench()
    bench.put(0, 10, names="xy")
    assert not bench.edge.may_prune(X.key, 99)
    bench.put(0, 20, names="y")
    assert [bench.edge.may_prune(X.key, settled) for settled in (19, 20)] == [False, True]
    bench.put(0, 30, names="y")
    assert bench.edge.may_prune(X.key, 20)


def test_what_moves_from_one_placement_to_another_is_never_to_be_pruned():
    bench = Bench()
    bench.put(0, 10, names="x")
    bench.put(0, 20, names="y")
    bench.put(1, 21, names="x")
    assert not bench.edge.may_prune(X.key, 99)
    bench.put(1, 30, names="y")
    assert [bench.edge.may_prune(X.key, settled) for settled in (29, 30)] == [False, True]


def dropped(bench):
    bench.edge.drop(mail_key(1))
    bench.resolve()
    bench.put(0, 30, names="x")


def renamed(bench):
    bench.put(0, 20, names="y")
    bench.put(0, 30, names="x")
    bench.gone(Y.key)


def unselected(bench):
    bench.unselected.add(mail_key(1))
    bench.evaluate(0, 10, cause=20)
    bench.resolve()
    bench.unselected.clear()
    bench.put(0, 30, names="x")


def taken_by_another(bench):
    """Which brings it once the first one is gone, so that nobody wanted it in between."""
    bench.edge.drop(mail_key(1))
    bench.resolve()
    bench.put(1, 30, names="x")


@pytest.mark.parametrize(
    ("change", "number"), [(dropped, 0), (renamed, 0), (unselected, 0), (taken_by_another, 1)]
)
def test_what_is_wanted_again_is_there_by_a_word_that_was_said_since(change, number):
    """The syncer may have begun to take it away."""
    bench = Bench()
    bench.put(0, 10, names="x")
    bench.see(X)
    assert bench.state(0) == "synced"
    change(bench)
    assert bench.state(number) == "pending"
    bench.see(X, wish=0)
    assert bench.state(number) == "pending"
    bench.see(X)
    assert bench.state(number) == "synced"


def test_what_is_wanted_as_before_is_there_by_a_word_that_was_said_since():
    """The syncer may be about to apply what was wanted in between."""
    bench = Bench()
    bench.put(0, 10, entries=[X])
    bench.see(X)
    bench.put(0, 20, entries=[replace(X, address="e" * 64, revision=2)])
    bench.put(0, 30, entries=[replace(X, revision=3)])
    assert bench.edge.wanted[X.key].address == X.address
    assert bench.state(0) == "pending"
    bench.see(X)
    assert bench.state(0) == "synced"


@pytest.mark.parametrize(("cause", "settled"), [(50, 50), (0, 1)])
def test_what_matches_no_more_waits_for_the_profile_that_says_so_or_for_nothing(cause, settled):
    bench = Bench()
    bench.put(0, 10, names="x")
    bench.unselected.add(mail_key(1))
    bench.evaluate(0, 10, cause=cause)
    bench.resolve()
    assert not bench.edge.may_prune(X.key, settled - 1) or not cause
    assert bench.edge.may_prune(X.key, settled)


def test_a_drop_does_not_hurry_what_another_record_took_before():
    bench = Bench()
    bench.put(0, 10, names="x")
    bench.put(1, 11, names="x")
    bench.put(0, 20, names="y")
    bench.edge.drop(mail_key(2))
    bench.resolve()
    assert [bench.edge.may_prune(X.key, settled) for settled in (19, 20)] == [False, True]


def done(name, placement):
    (entry,) = named(name)
    return Done(entry.key, "u", entry.address, (mail_key(placement + 1),), made=True, order=12)


def test_after_a_restart_what_is_not_wanted_waits_for_all_that_was_held():
    bench = Bench([done("x", 0), done("y", 1)], last_loss=40)
    bench.put(1, 10, names="y")
    assert [bench.edge.may_prune(X.key, settled) for settled in (39, 40)] == [False, True]
    assert not bench.edge.may_prune(Y.key, 99)
    bench.edge.drop(mail_key(2))
    bench.resolve()
    assert bench.edge.may_prune(Y.key, 0)


def test_who_does_not_know_who_he_is_lets_go_of_what_he_remembers_and_of_nothing_else():
    found = Done(Y.key, "u", Y.address, (), made=True, order=12)
    bench = Bench([done("x", 0), found], last_loss=40)
    bench.edge.put_profile(mail_key(0), None)
    namespace = ObjectKey("", "namespaces", "", "shop")
    assert [bench.edge.may_prune(key, 99) for key in (X.key, namespace)] == [True, True]
    assert not bench.edge.may_prune(Y.key, 99)
    bench.edge.put_profile(mail_key(0), mine())
    assert bench.edge.may_prune(Y.key, 99)


def test_nothing_goes_of_a_placement_whose_content_is_still_to_come():
    bench = Bench([done("x", 0)], last_loss=40)
    bench.put(0, 50, names="y", serve=False)
    assert not bench.edge.may_prune(X.key, 99)
    bench.serve()
    assert [bench.edge.may_prune(X.key, settled) for settled in (49, 50)] == [False, True]


def test_what_somebody_took_away_is_not_given_up_while_the_content_is_still_to_come():
    bench = Bench([done("x", 0)], last_loss=40)
    bench.put(0, 50, names="x", serve=False)
    bench.gone(X.key)
    assert not bench.edge.may_prune(X.key, 99)
    bench.serve()
    assert X.key in bench.edge.wanted


def test_an_implied_namespace_waits_for_what_it_held():
    bench = Bench(last_loss=5)
    namespace = ObjectKey("", "namespaces", "", "shop")
    bench.put(0, 10, names="x")
    bench.put(0, 20, names="")
    assert [bench.edge.may_prune(namespace, settled) for settled in (19, 20)] == [False, True]
    bench.gone(X.key)
    assert bench.edge.may_prune(namespace, 5)


def test_a_placement_is_pending_until_what_it_lost_is_gone():
    bench = Bench()
    bench.put(0, 10, names="xy")
    for entry in (X, Y):
        bench.see(entry)
    assert bench.state(0) == "synced"
    bench.put(0, 20, names="y")
    assert bench.state(0) == "pending"
    bench.edge.observe(ObjectObserved(X.key, True, X.address, "no", "unknown", None))
    assert bench.state(0) == "failing"
    assert mail_key(1) in bench.gone(X.key)
    assert bench.state(0) == "synced"
    bench.edge.drop(mail_key(1))
    bench.resolve()
    assert bench.state(0) == "leaving"
    bench.gone(Y.key)
    assert bench.edge.is_clean(mail_key(1))
    bench.edge.assert_invariants()


def test_why_an_object_is_at_work_is_said_after_what_is_wrong():
    bench = Bench()
    bench.put(0, 10, names="xy")
    bench.see(X, "progressing")
    bench.see(Y)
    assert not bench.why(0)
    for entry, health in ((X, "progressing"), (Y, "degraded")):
        told = ObjectObserved(entry.key, True, entry.address, "", health, None, f"is {health}")
        bench.edge.observe(told)
    assert bench.state(0) == "synced"
    assert bench.why(0) == [
        (NOT_WORKING, "configmaps/shop/y", "is degraded"),
        (AT_WORK, "configmaps/shop/x", "is progressing"),
    ]
    bench.see(X)
    bench.see(Y)
    assert not bench.why(0)


def test_what_another_placement_wants_leaves_nothing_to_wait_for():
    bench = Bench()
    bench.put(0, 10, names="xy")
    bench.put(1, 11, names="x")
    for entry in (X, Y):
        bench.see(entry)
    bench.put(0, 20, names="y")
    assert bench.state(0) == "synced"


# Heads.


def test_a_head_keeps_what_was_held_and_is_withheld_after_a_minute():
    bench = Bench()
    bench.put(0, 10, names="x")
    bench.see(X)
    bench.evaluate(0, 20, now=100.0)
    bench.resolve()
    assert X.key in bench.edge.wanted
    assert bench.state(0) == "pending"
    assert bench.edge.deadline() == 100.0 + WITHHELD_AFTER_SECONDS
    assert bench.edge.tick(159.0) == []
    assert bench.edge.tick(160.0) == [mail_key(1)]
    assert bench.edge.deadline() is None
    summary = bench.edge.summary(mail_key(1), NOW)
    assert summary.states == {"failing": 1}
    assert [sample.reason for sample in summary.exceptions] == [WITHHELD]
    assert mail_key(1) in bench.put(0, 20, names="x")
    assert bench.state(0) == "synced"


def test_a_head_that_nothing_signed_selects_lets_go():
    bench = Bench()
    bench.put(0, 10, names="x")
    bench.unselected.add(mail_key(1))
    bench.evaluate(0, 20)
    bench.resolve()
    assert not bench.edge.wanted
    assert bench.edge.may_prune(X.key, 20)


def test_after_a_restart_a_head_prunes_nothing():
    bench = Bench([done("x", 0)], last_loss=40)
    bench.evaluate(0, 50)
    bench.resolve()
    assert not bench.edge.may_prune(X.key, 99)


steps = st.lists(
    st.tuples(
        st.sampled_from(["put", "late", "head", "unselect", "drop", "seen", "gone", "serve"]),
        st.integers(0, 2),
        st.text("xyz", max_size=3),
    ),
    max_size=25,
)


def follow(bench, step, number, names, generation):
    """Let something happen at a destination."""
    key = mail_key(number + 1)
    match step:
        case "put" | "late":
            bench.unselected.discard(key)
            bench.put(number, generation, names=names, serve=step == "put")
        case "head":
            bench.evaluate(number, generation)
        case "unselect":
            bench.unselected.add(key)
            bench.evaluate(number, 1, cause=generation)
        case "drop":
            bench.edge.drop(key)
        case "seen":
            for entry in named(names):
                bench.see(entry)
        case "gone":
            for entry in named(names):
                if entry.key not in bench.edge.wanted:
                    bench.gone(entry.key)
        case _:
            bench.serve()
    bench.resolve()


@given(steps)
def test_nothing_goes_that_is_wanted_or_before_what_took_it_is_settled(some):
    bench, late = Bench(), False
    for generation, (step, number, text) in enumerate(some, 10):
        before = set(bench.edge.wanted)
        follow(bench, step, number, "".join(dict.fromkeys(text)), generation)
        for key in bench.edge.wanted:
            assert not bench.edge.may_prune(key, 2**62)
        for key in before - bench.edge.wanted.keys():
            # What is served late was taken by an earlier record; what is dropped, by none.
            if step in ("put", "unselect") and not late:
                assert not bench.edge.may_prune(key, generation - 1)
        late = step == "late" or (late and step not in ("put", "serve"))


# Whom it takes itself for.

OLD, NEW, FAR = map(NodePath.parse, ("/r1/s1", "/r2/s1", "/r3/s1"))


def at(path, *former):
    inventory = SignedInventory(lambda _profile, _key: False, lambda _profile: ())
    return LocalDestination(path, inventory, Content((), []), FormerRun(paths=former))


def test_at_its_new_place_it_stays_who_it_was_until_that_place_is_told():
    edge = at(NEW, OLD)
    before, after = mine(path=OLD), mine(2, NEW, (OLD,))
    assert edge.put_profile(mail_key(0), before)
    assert edge.profile == before
    assert edge.put_profile(mail_key(0), after)
    assert edge.profile == after
    assert not edge.put_profile(mail_key(1), mine(path=FAR))
    assert edge.profile == after
    assert edge.put_profile(mail_key(0), None)
    assert edge.profile is None


def test_at_its_old_place_it_keeps_what_moved_and_gives_back_what_was_only_hung_elsewhere():
    edge = at(OLD)
    edge.put_profile(mail_key(0), mine(path=OLD))
    moved = mine(2, NEW, (OLD,))
    assert edge.put_profile(mail_key(0), moved)
    assert edge.profile == moved
    edge = at(OLD)
    edge.put_profile(mail_key(0), mine(path=OLD))
    assert edge.put_profile(mail_key(0), mine(2, NEW))
    assert edge.profile is None


def kept(entry, why="left in place: kept: it holds data"):
    return ObjectObserved(entry.key, True, "", "", "unknown", None, reason=why, kept=True)


def test_what_is_kept_is_told_of_under_its_placement_and_waits_for_nothing():
    bench = Bench()
    bench.put(0, names="xy")
    for entry in (X, Y):
        bench.see(entry)
    bench.put(0, 2, names="y")
    assert bench.state(0) == "pending"
    key = mail_key(1)
    assert bench.edge.observe(kept(X)) == [key]
    assert bench.edge.observe(kept(X)) == []
    summary = bench.edge.summary(key, NOW)
    assert dict(summary.states) == {"synced": 1}
    [copy] = summary.kept_copies
    assert (summary.kept, copy.object, copy.path) == (1, str(X.key), str(PATH))
    bench.unselected.add(key)
    bench.evaluate(0, 3)
    bench.resolve()
    bench.edge.observe(kept(Y))
    summary = bench.edge.summary(key, NOW)
    assert (summary.kept, dict(summary.states)) == (2, {})
    assert bench.edge.is_clean(key)
    assert bench.edge.is_over(key, in_force=False)
    assert not bench.edge.is_over(key, in_force=True)
    bench.gone(X.key)
    bench.gone(Y.key)
    assert bench.edge.is_over(key, in_force=True)


def test_what_is_kept_and_wanted_again_is_kept_no_more():
    bench = Bench([replace(done("x", 0), kept=True)])
    assert bench.edge.traces.is_kept(X.key)
    assert bench.edge.is_clean(mail_key(1))
    bench.put(0, names="x")
    assert bench.edge.summary(mail_key(1), NOW).kept == 0
    bench.see(X)
    assert not bench.edge.traces.is_kept(X.key)
    assert bench.state(0) == "synced"


def test_repairs_are_a_level_of_what_a_placement_has_here():
    def seen(entry, count):
        repaired = Repaired(count, 1000 * count, "data.a", "they") if count else None
        form = ObjectObserved(entry.key, True, entry.address, "", "healthy", None)
        return bench.edge.observe(replace(form, repaired=repaired))

    bench = Bench([replace(done("x", 0), repaired=Repaired(2, 5))])
    bench.put(0, names="xy")
    assert bench.edge.summary(mail_key(1), NOW).repaired == 2
    assert seen(X, 3)
    assert not seen(X, 3)
    seen(Y, 4)
    summary = bench.edge.summary(mail_key(1), NOW)
    assert summary.repaired == 7
    assert [(it.object, it.count, it.manager) for it in summary.repairs] == [
        (str(Y.key), 4, "they"),
        (str(X.key), 3, "they"),
    ]
    bench.put(0, 2, names="y")
    assert bench.edge.summary(mail_key(1), NOW).repaired == 4
