"""Laws of resolving: a delta never misses a child with a destination that it is meant for."""

from hypothesis import given, settings
from hypothesis import strategies as st

from relay.core.labels import LabelCount
from relay.core.where import Where
from schemas.identity import DestinationId, NodePath
from schemas.records import Alternative, LocationRecord, Profile, Source
from schemas.selectors import LabelSelector
from tests.property.wire_records import label_sets, selectors

ROOT = NodePath()
SPACES = ("inv", "own")
PATHS = [NodePath.parse(path) for path in ("/", "/a", "/a/x", "/b", "/b/x", "/b/y", "/b/y/z")]
FOREIGN = {"a": NodePath.parse("/a/f"), "b": NodePath.parse("/b/f")}
alternatives = st.lists(
    st.builds(
        Alternative,
        st.sampled_from(["location", "synctarget"]),
        selectors,
        st.sampled_from(["", *SPACES]),
    ),
    max_size=3,
).map(tuple)


def profile(number, space, path, labels):
    source = Source("edge.kubestellar.io/SyncTarget", space, "", f"t{number}")
    who = DestinationId(f"{space}-mb-{number}")
    return Profile(source, 1, False, "", (), who, path, labels, {}, {})


def location(number, space, labels, selector):
    source = Source("edge.kubestellar.io/Location", space, "", f"l{number}")
    return LocationRecord(source, 1, False, "", (), labels, {}, selector)


keys = st.integers(0, 3)
space_names = st.sampled_from(SPACES)
steps = st.one_of(
    st.tuples(st.just("delta"), keys, st.none() | alternatives),
    st.tuples(
        st.just("location"),
        keys,
        st.none() | st.builds(location, keys, space_names, label_sets, st.none() | selectors),
    ),
    st.tuples(
        st.just("profile"),
        keys,
        st.none() | st.builds(profile, keys, space_names, st.sampled_from(PATHS), label_sets),
    ),
    st.tuples(st.just("foreign"), st.sampled_from("ab"), st.lists(label_sets, max_size=2)),
)


class Model:
    """The same by brute force: every destination tried with every alternative."""

    def __init__(self):
        self.deltas, self.locations, self.profiles = {}, {}, {}
        self.foreign = {}

    def matches(self, key, one):
        return any(self._fits(alternative, one) for alternative in self.deltas.get(key, ()))

    def _fits(self, alternative, one):
        space = one.source.space
        if alternative.space not in ("", space):
            return False
        if alternative.over == "synctarget":
            return alternative.selector.matches(one.labels)
        return any(
            place.source.space == space
            and place.instance_selector is not None
            and place.instance_selector.matches(one.labels)
            and alternative.selector.matches(place.labels)
            for place in self.locations.values()
        )

    def below(self, child):
        own = [p for p in self.profiles.values() if ROOT.step_towards(p.path) == child]
        return own, self.foreign.get(child)

    def apply(self, where, step, key, value):
        table = {"delta": self.deltas, "location": self.locations, "profile": self.profiles}
        if step == "foreign":
            self.foreign[key] = value
            where.set_digests(key, digest_of(value))
            return
        table[step].pop(key, None)
        if value is not None:
            table[step][key] = value
        {"delta": where.set_delta, "location": where.set_location, "profile": where.set_profile}[
            step
        ](f"{step}{key}", value)


def digest_of(members):
    """What a child reports that holds an inventory of its own."""
    if not members:
        return {}
    count = LabelCount()
    for labels in members:
        count.add(labels)
    return {"hidden": count.summary()}


@settings(max_examples=400)
@given(st.lists(steps, max_size=25))
def test_a_child_with_a_destination_that_matches_is_never_passed_by(changes):
    where, model = Where(ROOT), Model()
    for step, key, value in changes:
        model.apply(where, step, key, value)
        for child in "ab":
            own, foreign = model.below(child)
            for number in range(4):
                delta = f"delta{number}"
                answer = where.concerns(delta, child)
                truth = any(model.matches(number, one) for one in own)
                hidden = any(
                    alternative.over == "synctarget"
                    and alternative.space in ("", "hidden")
                    and alternative.selector.matches(labels)
                    for alternative in model.deltas.get(number, ())
                    for labels in foreign or ()
                )
                assert answer or not (truth or hidden)
                edge = [str(p.path) for p in own] == [f"/{child}"]
                if edge and not foreign:
                    assert answer == truth


@settings(max_examples=200)
@given(st.lists(steps, max_size=20))
def test_a_destination_is_meant_exactly_if_trying_all_says_so(changes):
    where, model = Where(ROOT), Model()
    for step, key, value in changes:
        model.apply(where, step, key, value)
    for one in model.profiles.values():
        locations = {
            f"location{number}"
            for number, place in model.locations.items()
            if place.source.space == one.source.space
            and place.instance_selector is not None
            and place.instance_selector.matches(one.labels)
        }
        assert set(where.locations_of(one)) == locations
        found = {f"delta{number}" for number in model.deltas if model.matches(number, one)}
        assert {f"delta{n}" for n in range(4) if where.matches(f"delta{n}", one)} == found
        assert found <= set(where.deltas_of_profile(one))
        claimants = [other for other in model.profiles.values() if other.path == one.path]
        of_each = [set(where.deltas_of_profile(other)) for other in claimants]
        assert set(where.deltas_at(one.path)) == set().union(*of_each)


def test_of_two_that_claim_a_path_the_one_that_stays_is_still_known_there():
    where, path = Where(ROOT), NodePath.parse("/a")
    where.set_delta("d", (Alternative("synctarget", LabelSelector(()), ""),))
    where.set_profile("first", profile(0, "inv", path, {}))
    where.set_profile("second", profile(1, "inv", path, {}))
    where.set_profile("second", None)
    assert where.deltas_at(path) == {"d": None}
    where.set_profile("first", None)
    assert not where.deltas_at(path)


def test_of_two_that_claim_a_child_the_one_that_stays_is_the_edge():
    where, child = Where(ROOT), NodePath(("a",))
    first, second = (profile(number, "inv", child, {}) for number in range(2))
    for key, one in (("first", first), ("second", second)):
        where.set_profile(key, one)
    assert where.destination_of("a") is None
    where.set_profile("second", None)
    assert where.destination_of("a") == first.destination


def test_of_a_space_that_only_a_child_knew_it_is_told_once_that_it_is_known_here():
    where, target = Where(ROOT), NodePath.parse("/a/x")
    count = LabelCount()
    count.add({"env": "prod"})
    where.set_digests("a", {"inv": count.summary()})
    where.set_profile("t", profile(0, "inv", target, {"env": "prod"}))
    assert where.take_come_to_know() == ["a"]
    assert where.take_come_to_know() == []
    # What only changes was known here before.
    where.set_profile("t", profile(0, "inv", target, {"env": "dev"}))
    assert where.take_come_to_know() == []
    where.set_profile("t", None)
    where.set_profile("t", profile(0, "own", target, {}))
    assert where.take_come_to_know() == []


@settings(max_examples=200)
@given(st.lists(steps, max_size=20))
def test_a_location_goes_to_each_child_with_a_destination_it_selects(changes):
    where, model = Where(ROOT), Model()
    for step, key, value in changes:
        model.apply(where, step, key, value)
    for number, place in model.locations.items():
        children = set(where.children_of_location(f"location{number}"))
        for one in model.profiles.values():
            child = ROOT.step_towards(one.path)
            selects = place.instance_selector is not None and (
                place.source.space == one.source.space
                and place.instance_selector.matches(one.labels)
            )
            assert child is None or child in children or not selects


@given(st.lists(steps, max_size=20))
def test_what_all_leave_leaves_nothing_behind(changes):
    where, model = Where(ROOT), Model()
    for step, key, value in changes:
        if step != "foreign":
            model.apply(where, step, key, value)
    for number in range(4):
        where.set_delta(f"delta{number}", None)
        where.set_profile(f"profile{number}", None)
        where.set_location(f"location{number}", None)
    assert not where.locations
    assert not where.profiles
    assert not where._at
    assert not where.digest()
    for branch in where.branches.values():
        assert not branch.profiles
        assert not branch.locations
        assert not branch.labels
        assert branch.direct is None
