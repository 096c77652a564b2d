"""What waits at a destination for another placement, and what is left of which goes first."""

from relay.core.events import BlobArrived, ObjectObserved
from relay.core.instant import Instant
from schemas.content.manifest import build_manifest
from schemas.objects.selectors import LabelSelector
from schemas.records.records import (
    OVER_LOCATION,
    OVER_SYNC_TARGET,
    Alternative,
    DeltaBody,
    DeltaHead,
    Dependency,
    Gate,
    Source,
)
from schemas.reports.states import AT_WORK
from schemas.values.groups import API_PLACEMENT
from schemas.values.wire import replace
from tests.unit.test_destination import NOW, Bench, X, Y, mine, named
from tests.unit.test_destination import done as applied

SHOP, PLATFORM = "shop", "platform"
(Z,) = named("z")
HERE = (Alternative(OVER_SYNC_TARGET, LabelSelector.from_kubernetes({"matchLabels": {"a": "b"}})),)
ELSEWHERE = (Alternative(OVER_LOCATION, LabelSelector()),)


def key_of(name):
    return Source(API_PLACEMENT, "s", "", name).key


class Ordered(Bench):
    """Placements by name; `after` names the one that is waited for, from a generation on."""

    def put_named(self, name, generation, entries, after=()):
        stored = build_manifest(entries)
        self.values |= {a: v for blob in stored for a, v in blob.values.items()}
        self.content.keep(entry.address for entry in entries)
        body = DeltaBody((), (Gate(stored[0].reference),), after=tuple(after))
        self.look(name, generation, body)
        while self.out:
            wanted = self.out.pop()
            arrived = BlobArrived(wanted.reference, self.values[wanted.reference.address], True)
            for owner in self.content.arrived(arrived, 0.0):
                self.edge.content_ready(owner.key)
        self.resolve()

    def look(self, name, generation, body=None, cause=None):
        source = Source(API_PLACEMENT, "s", "", name)
        head = DeltaHead(source, generation, "", "", b"h" * 32, (), generation)
        self.edge.evaluate(
            source.key, head, body, cause=generation if cause is None else cause, now=Instant(0, 5)
        )

    def see(self, entry, health="healthy"):
        told = super().see(entry, health)
        if self.edge.is_stale:
            self.resolve()
        return told

    def gone(self, key):
        super().gone(key)
        if self.edge.is_stale:
            self.resolve()

    def drop(self, name):
        self.edge.drop(key_of(name))
        self.resolve()

    def said(self, name):
        summary = self.edge.summary(key_of(name), NOW)
        return next(iter(summary.states), ""), [it.reason for it in summary.exceptions]

    def wants(self):
        return {key.name: self.edge.wanted[key].address for key in self.edge.wanted}


def platform(generation=10, alternatives=HERE):
    return [Dependency(PLATFORM, generation, alternatives)]


def test_new_content_waits_until_the_other_is_healthy_here():
    bench = Ordered()
    bench.put_named(SHOP, 20, [X], platform())
    waiting = ("waiting", ["Waiting: for the placement platform to be healthy here"])
    assert (bench.wants(), bench.said(SHOP)) == ({}, waiting)
    (sample,) = bench.edge.summary(key_of(SHOP), NOW).exceptions
    assert sample.severity == AT_WORK
    bench.put_named(PLATFORM, 10, [Y])
    assert bench.wants().keys() == {"y"}
    bench.see(Y, "progressing")
    assert bench.said(SHOP) == waiting
    bench.see(Y)
    assert bench.wants().keys() == {"x", "y"}
    assert bench.said(SHOP)[0] == "pending"
    bench.see(X)
    # What is in force goes on whatever becomes of the other.
    bench.see(Y, "degraded")
    assert (bench.wants().keys(), bench.said(SHOP)[0]) == ({"x", "y"}, "synced")


def test_old_content_of_the_other_does_not_count():
    bench = Ordered()
    bench.put_named(PLATFORM, 10, [Y])
    bench.see(Y)
    bench.put_named(SHOP, 21, [X], platform(20))
    assert bench.wants().keys() == {"y"}
    newer = replace(Y, address="e" * 64, revision=2)
    bench.put_named(PLATFORM, 20, [newer])
    assert bench.wants().keys() == {"y"}
    bench.see(newer)
    assert bench.wants().keys() == {"x", "y"}


def test_where_the_other_is_not_meant_nothing_waits():
    bench = Ordered()
    bench.put_named(SHOP, 20, [X], platform(alternatives=ELSEWHERE))
    assert bench.wants().keys() == {"x"}


def test_what_was_here_stays_as_it_was_meanwhile_and_old_content_comes_back_at_once():
    bench = Ordered()
    bench.put_named(PLATFORM, 10, [Y])
    bench.put_named(SHOP, 11, [X])
    bench.see(X)
    newer = replace(X, address="e" * 64, revision=2)
    bench.put_named(SHOP, 20, [newer, Z], platform())
    assert bench.wants() == {"x": X.address, "y": Y.address}
    assert not bench.edge.may_prune(X.key, 99)
    bench.put_named(SHOP, 30, [X], platform())
    assert bench.said(SHOP)[0] == "synced"


def test_after_a_restart_what_was_applied_before_is_not_new():
    done = applied("x", 0)
    bench = Ordered([replace(done, placements=(key_of(SHOP),))])
    bench.put_named(SHOP, 20, [X], platform())
    assert bench.wants().keys() == {"x"}
    bench.put_named(SHOP, 21, [X, Z], platform())
    assert bench.wants().keys() == {"x"}


def test_a_dependency_that_is_taken_back_lets_go():
    bench = Ordered()
    bench.put_named(SHOP, 20, [X], platform())
    bench.put_named(SHOP, 21, [X])
    assert bench.wants().keys() == {"x"}


def test_content_that_waits_is_let_go_with_its_placement():
    bench = Ordered()
    bench.put_named(SHOP, 20, [X], platform())
    bench.drop(SHOP)
    bench.put_named(PLATFORM, 10, [Y])
    bench.see(Y)
    assert bench.wants().keys() == {"y"}


def test_a_head_alone_lets_nothing_go_on():
    bench = Ordered()
    bench.put_named(SHOP, 20, [X], platform())
    bench.look(SHOP, 21)
    bench.put_named(PLATFORM, 10, [Y])
    bench.see(Y)
    assert bench.wants().keys() == {"y"}
    bench.put_named(SHOP, 21, [X], platform())
    assert bench.wants().keys() == {"x", "y"}


def test_an_object_that_waits_for_another_names_it_as_what_is_left_does():
    bench = Ordered()
    bench.put_named(SHOP, 20, [X, Y])
    bench.see(X, "progressing")
    waits = "deployments.apps/shop/web of wave 0"
    bench.edge.observe(
        ObjectObserved(Y.key, False, "", "", "unknown", None, waits=f"{waits}: 0 of 2 available")
    )
    state, said = bench.said(SHOP)
    assert (state, said) == ("pending", [f"Waiting: for {waits}: 0 of 2 available"])
    bench.see(Y)
    bench.put_named(SHOP, 21, [X])
    bench.edge.observe(ObjectObserved(Y.key, True, Y.address, "", "healthy", None, waits=waits))
    assert bench.said(SHOP)[1] == [f"Waiting: for {waits}"]


# What is left.


def both():
    bench = Ordered()
    bench.put_named(PLATFORM, 10, [Y])
    bench.see(Y)
    bench.put_named(SHOP, 20, [X], platform())
    bench.see(X)
    return bench


def test_what_goes_goes_in_reverse():
    for names in ((SHOP, PLATFORM), (PLATFORM, SHOP)):
        bench = both()
        for name in names:
            bench.drop(name)
        assert bench.edge.may_prune(X.key, 99)
        assert not bench.edge.may_prune(Y.key, 99)
        bench.gone(X.key)
        assert bench.edge.may_prune(Y.key, 99)
        bench.gone(Y.key)
        assert bench.edge.is_clean(key_of(PLATFORM))


def test_the_other_stays_while_a_placement_here_needs_it_and_goes_once_that_says_so():
    bench = both()
    bench.drop(PLATFORM)
    assert not bench.edge.may_prune(Y.key, 99)
    bench.put_named(SHOP, 30, [X])
    assert bench.edge.may_prune(Y.key, 99)
    bench = both()
    bench.drop(PLATFORM)
    bench.put_named(SHOP, 30, [X], platform(alternatives=ELSEWHERE))
    assert bench.edge.may_prune(Y.key, 99)


def test_what_the_other_loses_stays_until_new_content_came():
    bench = both()
    other = replace(Z, address="e" * 64)
    bench.put_named(SHOP, 30, [replace(X, address="f" * 64, revision=2)], platform(31))
    bench.put_named(PLATFORM, 31, [other])
    assert not bench.edge.may_prune(Y.key, 99)
    bench.see(other)
    assert bench.edge.may_prune(Y.key, 99)


def test_an_object_that_both_left_waits_for_neither():
    bench = Ordered()
    bench.put_named(PLATFORM, 10, [X])
    bench.see(X)
    bench.put_named(SHOP, 20, [X], platform())
    bench.drop(SHOP)
    bench.drop(PLATFORM)
    assert bench.edge.may_prune(X.key, 99)


def test_a_change_of_labels_may_let_go():
    bench = Ordered()
    body = platform()
    bench.put_named(SHOP, 20, [X], body)
    assert not bench.wants()
    bench.edge.put_profile(b"other", replace(mine(2), labels={"a": "c"}))
    bench.put_named(SHOP, 20, [X], body)
    assert bench.wants().keys() == {"x"}


def test_what_is_seen_of_objects_tells_the_syncer_nothing_new_unless_something_is_gone():
    bench = both()
    bench.edge.resolve()
    for health in ("degraded", "healthy"):
        for entry in (X, Y):
            Bench.see(bench, entry, health)
            assert not bench.edge.is_stale or not bench.edge.resolve().wants_changed
    bench.drop(SHOP)
    bench.edge.resolve()
    Bench.gone(bench, X.key)
    assert bench.edge.resolve().wants_changed


def test_an_error_of_the_other_is_no_health():
    bench = Ordered()
    bench.put_named(PLATFORM, 10, [Y])
    bench.edge.observe(ObjectObserved(Y.key, True, Y.address, "no", "healthy", None))
    bench.resolve()
    bench.put_named(SHOP, 20, [X], platform())
    assert bench.wants().keys() == {"y"}
