"""Laws of gates: who is in stays in, a closed window takes nothing, and waves are disjoint."""

from hypothesis import given
from hypothesis import strategies as st

from relay.core.gates import Candidate, admit, arm_name, names_in, wave_of
from schemas.content.blobs import Reference
from schemas.objects.selectors import LabelSelector, Requirement
from schemas.records.records import (
    API_LOCATION,
    API_SYNC_TARGET,
    BUCKETS,
    OVER_LOCATION,
    Gate,
    LocationRecord,
    Profile,
    Source,
)
from schemas.records.windows import Window
from schemas.values.identity import DestinationId, NodePath
from schemas.values.wire import replace

ARMS = tuple(Reference("manifest", digit * 64, 1) for digit in "123")
PATHS = tuple(map(NodePath.parse, ("/", "/a", "/a/e", "/b")))
# Open from midnight to one; 0 ms is a midnight.
NIGHT, OPEN, CLOSED = Window("0 0 * * *", 3600, "UTC"), 1000, 7_200_000

selectors = st.sampled_from(["x", "y"]).map(
    lambda value: LabelSelector((Requirement("ring", "In", (value,)),))
)
gates = st.builds(
    Gate,
    st.sampled_from(ARMS) | st.none(),
    st.integers(0, BUCKETS) | st.just(BUCKETS),
    st.just("salt"),
    st.sampled_from(["synctarget", OVER_LOCATION]),
    selectors | st.none(),
    st.sampled_from(["", "7.0", "7.1", "6.9"]),
    st.sampled_from(PATHS),
    st.just(()) | st.just((NIGHT,)),
)
last = st.builds(Gate, st.sampled_from(ARMS), name=st.sampled_from(["", "1.0"]))
lists = st.builds(lambda some, end: (*some, end), st.lists(gates, max_size=5), last)
rings = st.sampled_from([{}, {"ring": "x"}, {"ring": "y"}])


@st.composite
def candidates(draw):
    where, number = draw(st.sampled_from(["/a/e", "/b/f"])), draw(st.integers(0, 999))
    common = (1, "", "")
    profile = Profile(
        Source(API_SYNC_TARGET, "i", "", "e"),
        *common,
        DestinationId(f"i-mb-{number}"),
        NodePath.parse(where),
        draw(rings),
        {},
        {},
    )
    located = [
        LocationRecord(Source(API_LOCATION, "i", "", "l"), *common, labels, {}, LabelSelector())
        for labels in draw(st.lists(rings, max_size=2))
    ]
    return Candidate(profile, lambda _profile: located)


arms = st.sets(st.sampled_from(list(map(arm_name, ARMS))))


@given(lists, candidates(), arms)
def test_in_an_open_window_the_first_gate_that_matches_decides(some, who, taken):
    first = next(gate for gate in some if who.matches(gate))
    assert admit(some, who, taken, OPEN) == (first.arm, first.name, ())
    assert wave_of(some, who) == first.name


@given(lists, candidates(), arms)
def test_who_waits_counts_where_it_waits_and_gets_nothing_that_is_closed(some, who, taken):
    said = admit(some, who, taken, CLOSED)
    first = next(gate for gate in some if who.matches(gate))
    assert said.wave == wave_of(some, who)
    assert bool(said.awaits) == (said.arm != first.arm)
    open_now = [gate.arm for gate in some if who.matches(gate) and not gate.windows]
    assert said.arm in open_now or arm_name(said.arm) in taken


@given(lists, candidates())
def test_a_window_that_closes_stops_nobody(some, who):
    taken = admit(some, who, (), OPEN)
    assert admit(some, who, [arm_name(taken.arm)], CLOSED) == taken


@given(st.integers(0, BUCKETS), st.integers(0, BUCKETS), candidates())
def test_who_is_in_stays_in_as_a_percentage_rises(one, other, who):
    few, many = (Gate(ARMS[0], below=below, salt="s") for below in sorted((one, other)))
    assert who.matches(many) or not who.matches(few)


@given(lists, candidates())
def test_names_decide_nothing(some, who):
    renamed = tuple(replace(gate, name=f"{at}.0") for at, gate in enumerate(some))
    assert names_in(renamed).waves == {gate.name for gate in renamed}
    assert names_in(some).arms == {gate.arm.address for gate in some if gate.arm is not None}
    assert admit(renamed, who, (), OPEN).arm == admit(some, who, (), OPEN).arm
