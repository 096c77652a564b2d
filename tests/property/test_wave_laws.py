"""Laws of waves: how they stand in an order, and who waits for whom."""

from hypothesis import given
from hypothesis import strategies as st

from relay.syncer.waves import UnfinishedObject, Waves
from schemas.objects.objects import ObjectKey
from schemas.objects.order import (
    ARGO_WAVE,
    FIRST_WAVE,
    WAVE,
    WAVE_MAX,
    order_of,
    place_of,
    wave_fault,
)
from schemas.objects.order import wave_of as read_wave

NAMESPACE, DEFINITION, CONFIG = 0, 1, 12
waves = st.integers(-WAVE_MAX, WAVE_MAX)
ranks = st.integers(2, 21)
keys = st.sampled_from([ObjectKey("", "configmaps", "shop", name) for name in "abcdef"])
placements = st.sets(st.sampled_from(["p", "q"]), min_size=1).map(lambda s: tuple(sorted(s)))


def annotated(value, name=WAVE):
    return {"metadata": {"name": "x", "annotations": {name: str(value)}}}


def in_wave(wave, rank=CONFIG):
    return order_of(rank, annotated(wave))


@given(waves, ranks, waves, ranks)
def test_orders_sort_by_wave_and_then_by_kind(wave, rank, other_wave, other_rank):
    order, other = in_wave(wave, rank), in_wave(other_wave, other_rank)
    assert (read_wave(order), order >= 0) == (wave, True)
    assert (place_of(order) < place_of(other)) == ((wave, rank) < (other_wave, other_rank))


@given(ranks)
def test_without_a_wave_the_order_is_the_kinds_rank(rank):
    assert order_of(rank, {"metadata": {"name": "x"}}) == in_wave(0, rank) == rank


@given(waves, waves, ranks)
def test_namespaces_and_definitions_come_before_all_waves(wave, other, rank):
    for first in (NAMESPACE, DEFINITION):
        assert read_wave(in_wave(wave, first)) == FIRST_WAVE
        assert place_of(in_wave(wave, first)) < place_of(in_wave(other, rank))


def test_what_is_no_wave_is_a_fault_that_names_field_and_remedy():
    for bad in ("two", "1.5", "1e3", str(WAVE_MAX + 1), "--1", "²"):
        said = str(wave_fault(annotated(bad)))
        assert "metadata.annotations[leafcast.io/wave]" in said
        assert f'"{bad}" is not a wave; write an integer' in said
    for good in ("-5", "+3", " 7 ", "", str(-WAVE_MAX)):
        assert wave_fault(annotated(good)) is None
    assert ARGO_WAVE in str(wave_fault(annotated("x", ARGO_WAVE)))
    both = {"metadata": {"annotations": {WAVE: "2", ARGO_WAVE: "9"}}}
    assert read_wave(order_of(CONFIG, both)) == 2


standings = st.one_of(
    st.none(),
    st.builds(UnfinishedObject, placements, st.integers(-2, 2).map(in_wave), st.booleans()),
)


def blocks(key, mine, other, theirs, named):
    """Whether an object waits for another, by the definition."""
    shared = {name for name in mine.placements if name in theirs.placements and name in named}
    if key == other or not shared:
        return False
    if not mine.left:
        return not theirs.left and theirs.wave < mine.wave
    return not theirs.left or theirs.wave > mine.wave


@given(st.lists(st.tuples(keys, placements, st.integers(-2, 2), standings), max_size=30))
def test_an_object_waits_just_while_another_is_in_its_way(steps):
    held, named, kept = Waves(), {}, {}
    told_free = {}
    for key, asking, wave, standing in steps:
        order = standing.order if standing else in_wave(wave)
        of = standing.placements if standing else asking
        touched = held.put(key, of, order, standing)
        named[key] = of if read_wave(order) else ()
        kept.pop(key, None)
        if standing is not None:
            kept[key] = standing
        held.assert_invariants()
        waved = {name for names in named.values() for name in names}
        for one, mine in kept.items():
            awaited = {o for o, its in kept.items() if blocks(one, mine, o, its, waved)}
            assert (held.blocker(one) in awaited) if awaited else held.blocker(one) is None
            if one != key and one not in touched and one in told_free:
                assert told_free[one] == (not awaited)
        told_free = {one: held.blocker(one) is None for one in kept}
