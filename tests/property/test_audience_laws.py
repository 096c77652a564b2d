"""Laws of the audience: it is what trying each destination with each alternative says."""

from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from relay.core.audience import HERE, Audience, audience
from schemas.objects.selectors import LabelSelector, Requirement
from schemas.records.records import Alternative, LocationRecord, Profile, Source
from schemas.values.identity import DestinationId, NodePath
from schemas.values.wire import replace
from tests.property.examples import examples
from tests.property.wire_records import label_sets
from tests.property.wire_records import selectors as any_selectors

OWNER = NodePath.parse("/r")
PATHS = [
    NodePath.parse(path)
    for path in ("/r", "/r/a", "/r/a/x", "/r/a/y", "/r/b", "/r/b/x", "/r/c/x/y", "/s", "/s/a", "/")
]
CHILDREN = (HERE, "a", "b", "c", "d")
SPACES = ("inv", "own")
odd_labels = st.sampled_from([{"env=a": "b"}, {"": "inv"}, {"env": "a=b"}, {"env=a": ""}])


def profile(number, space, path, labels):
    source = Source("edge.kubestellar.io/SyncTarget", space, "", f"t{number}")
    who = DestinationId(f"{space}-mb-{number}")
    return Profile(source, 1, "", "", who, path, labels, {}, {})


def location(number, space, labels, selector):
    source = Source("edge.kubestellar.io/Location", space, "", f"l{number}")
    return LocationRecord(source, 1, "", "", labels, {}, selector)


# Most that is drawn freely selects nothing, so some select much.
broad = st.sampled_from([LabelSelector(), LabelSelector((Requirement("env", "Exists"),))])
selectors = any_selectors | broad
alternatives = st.lists(
    st.builds(
        Alternative,
        st.sampled_from(["location", "synctarget"]),
        selectors,
        st.sampled_from(["", *SPACES]),
    ),
    max_size=3,
).map(tuple)
labels = st.one_of(label_sets, label_sets, odd_labels)
numbers, few = st.integers(0, 11), st.integers(0, 2)
spaces = st.sampled_from(("inv", *SPACES))
profiles = st.builds(profile, numbers, spaces, st.sampled_from(PATHS), labels)
locations = st.builds(location, few, spaces, labels, st.none() | selectors | broad)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("profile"), numbers, st.none() | profiles),
        st.tuples(st.just("profile"), numbers, profiles),
        st.tuples(st.just("location"), few, st.none() | locations),
        st.tuples(st.just("relabel"), few, label_sets),
        st.tuples(st.just("placement"), few, st.none() | alternatives),
        st.tuples(st.just("placement"), few, alternatives),
        st.tuples(st.just("ask"), few, st.sampled_from(CHILDREN)),
        st.tuples(st.just("drain"), few, st.none()),
    ),
    max_size=40,
)
# Where a life begins, so that few steps suffice to change what counts.
beginning = [
    *(
        ("profile", at, profile(at, "inv", PATHS[at], {"env": "ab"[at % 2], "tier": "abc"[at % 3]}))
        for at in range(1, 7)
    ),
    ("location", 0, location(0, "inv", {"env": "a"}, LabelSelector())),
    ("placement", 0, (Alternative("location", LabelSelector((Requirement("env", "Exists"),))),)),
    ("placement", 1, (Alternative("synctarget", LabelSelector()),)),
    ("drain", 0, None),
]
# A price of nothing has all counted anew, a high one has each destination judged alone. The last
# is how many destinations are few: none, some, all.
costs = st.sampled_from(
    [(*cost, few_max) for cost in [(0, 0), (2, 0), (0, 1), (1000, 10)] for few_max in (0, 4, 64)]
)


class Model:
    """The same by brute force."""

    def __init__(self):
        self.tables = {"placement": {}, "location": {}, "profile": {}}

    def put(self, kind, key, value):
        self.tables[kind].pop(key, None)
        if value is not None:
            self.tables[kind][key] = value

    def below(self, child):
        for key, one in self.tables["profile"].items():
            if OWNER.holds(one.path) and (OWNER.step_towards(one.path) or HERE) == child:
                yield key, one

    def meant(self, key, one):
        if key in self.tables["location"]:
            return holds(self.tables["location"][key], one)
        return any(
            self.fits(alternative, one) for alternative in self.tables["placement"].get(key, ())
        )

    def fits(self, alternative, one):
        if alternative.space not in ("", one.source.space):
            return False
        if alternative.over == "synctarget":
            return alternative.selector.matches(one.labels)
        return any(
            holds(place, one) and alternative.selector.matches(place.labels)
            for place in self.tables["location"].values()
        )

    def expected(self, key, child):
        return sum(self.meant(key, one) for _, one in self.below(child))

    def all_expected(self):
        keys = [*self.tables["placement"], *self.tables["location"]]
        counts = {(key, child): self.expected(key, child) for key in keys for child in CHILDREN}
        return {pair: count for pair, count in counts.items() if count}


def holds(place, one):
    return (
        place.source.space == one.source.space
        and place.instance_selector is not None
        and place.instance_selector.matches(one.labels)
    )


def put(tested, model, kind, number, value):
    key = f"{kind}{number}"
    model.put(kind, key, value)
    {
        "profile": tested.put_profile,
        "location": tested.put_location,
        "placement": tested.put_placement,
    }[kind](key, value)


def run(changes, cost, each=None):
    """Take the steps; `each` looks at what is drained and at what was and is expected.

    With it all invariants are asserted after each step, without it in the end.
    """
    tested, model, drained = Audience(OWNER), Model(), {}
    with (
        patch.object(audience, "JUDGED_MIN", cost[0]),
        patch.object(audience, "RECOUNT_COST", cost[1]),
        patch("relay.core.audience.label_sets.FEW_MAX", cost[2]),
    ):
        for kind, number, value in [*beginning, *changes]:
            if kind == "drain" and each is not None:
                before, drained = drained, model.all_expected()
                each(tested, model, before, drained)
            elif kind == "drain":
                pass
            elif kind == "ask":
                key = f"placement{number}"
                assert tested.expected(key, value) == model.expected(key, value)
            elif kind != "relabel":
                put(tested, model, kind, number, value)
            elif place := model.tables["location"].get(f"location{number}"):
                put(tested, model, "location", number, replace(place, labels=value))
            if each is not None:
                tested.assert_invariants()
        if each is not None:
            each(tested, model, drained, model.all_expected())
        tested.assert_invariants()
    return tested, model


@settings(max_examples=examples(300))
@given(steps, costs)
def test_what_is_drained_is_exactly_where_expected_changed(changes, cost):
    def each(tested, _model, before, now):
        differing = {
            pair for pair in before.keys() | now.keys() if before.get(pair) != now.get(pair)
        }
        found = tested.drain()
        assert {(key, child) for key, children in found.items() for child in children} == differing
        assert all(len(set(children)) == len(children) for children in found.values())
        assert tested.drain() == {}

    run(changes, cost, each)


@settings(max_examples=examples(300))
@given(steps, costs)
def test_every_answer_is_what_trying_each_destination_says(changes, cost):
    def each(tested, model, _before, now):
        for key in [*model.tables["placement"], *model.tables["location"], "unknown"]:
            counts = {child: tested.expected(key, child) for child in CHILDREN}
            assert counts == {child: now.get((key, child), 0) for child in CHILDREN}
            concerned = tested.concerned(key)
            assert sorted(concerned) == [child for child in CHILDREN[1:] if counts[child]]
        for child in CHILDREN:
            concerning = list(tested.placements_concerning(child))
            assert sorted(concerning) == sorted(key for key, name in now if name == child)
            for key in model.tables["placement"]:
                meant = [its for its, one in model.below(child) if model.meant(key, one)]
                assert sorted(tested.profiles(key, child)) == sorted(meant)

    run(changes, cost, each)


@settings(max_examples=examples(300))
@given(steps, profiles, locations)
def test_a_destination_knows_its_placements_and_locations(changes, other, place):
    tested, model = run(
        changes,
        (1000, 10, 4),
    )
    for child in CHILDREN:
        for key, one in model.below(child):
            for kind, answer in (
                ("placement", tested.placements_of(key)),
                ("location", tested.locations_of(key)),
            ):
                found = list(answer)
                assert sorted(found) == sorted(
                    key for key in model.tables[kind] if model.meant(key, one)
                )
    for key, listed in model.tables["placement"].items():
        assert tested.bears_on(other, key) == model.meant(key, other)
        assert tested.bears_on(place, key) == any(
            place.instance_selector is not None
            and alternative.over == "location"
            and alternative.space in ("", place.source.space)
            and alternative.selector.matches(place.labels)
            for alternative in listed
        )
    assert not tested.bears_on(other, "unknown")


@settings(max_examples=examples(100))
@given(steps, costs)
def test_what_all_leave_leaves_nothing_behind(changes, cost):
    tested, model = run(
        changes,
        cost,
    )
    for kind, table in model.tables.items():
        for key in list(table):
            put(tested, model, kind, key.removeprefix(kind), None)
    tested.drain()
    tested.assert_invariants()
    for part in (tested._targets, tested._locations):
        assert not part._ids
    for index in (tested._by_instance, tested._over_target, tested._over_location):
        assert not index._by_term
    assert not tested._numbering.by_child
    assert not tested._selections
    assert not tested._stale


@given(st.lists(st.tuples(st.sampled_from("abc"), label_sets), min_size=1, max_size=60), selectors)
def test_the_order_of_profiles_does_not_depend_on_how_often_a_range_moved(members, selector):
    tested = Audience(OWNER)
    tested.put_placement("p", (Alternative("synctarget", selector),))
    expected = {child: [] for child in "abc"}
    for at, (child, its) in enumerate(members):
        path = OWNER.child(child).child(f"e{at}")
        tested.put_profile(f"t{at}", profile(at, "inv", path, its))
        if selector.matches(its):
            expected[child].append(f"t{at}")
    assert {child: list(tested.profiles("p", child)) for child in "abc"} == expected
    tested.assert_invariants()


everything = (Alternative("synctarget", LabelSelector()),)


@given(st.lists(st.tuples(st.integers(0, 30), st.sampled_from("abcdefgh")), max_size=120))
def test_destinations_that_move_to_and_fro_are_each_counted_once(moves):
    tested, now = Audience(OWNER), {}
    tested.put_placement("p", everything)
    for number, child in moves:
        now[number] = child
        path = OWNER.child(child).child(f"e{number}")
        tested.put_profile(f"t{number}", profile(number, "inv", path, {"id": f"v{number}"}))
    tested.assert_invariants()
    counts = {child: tested.expected("p", child) for child in "abcdefgh"}
    assert counts == {child: [*now.values()].count(child) for child in "abcdefgh"}
    tested.drain()
    tested.assert_invariants()
